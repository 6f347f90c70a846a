import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ["aiosqlite", "fastapi", "langchain_openai", "langgraph", "openai", "pymongo", "qdrant_client", "qdrant_edge"]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sysconfig.get_path("scripts")) / "lint-imports", "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_imports_point_one_way() -> None:
    result = lint_imports(ROOT)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layers")
    for package in ("api", "graph", "memory"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("memory/intruder.py", "import graph"),
        ("memory/intruder.py", "import pymongo"),
        ("memory/intruder.py", "import settings"),
        ("memory/intruder.py", "from memory import stores"),
        ("memory/stores/intruder.py", "import settings"),
        ("graph/intruder.py", "import api"),
        ("graph/intruder.py", "from memory import providers"),
        ("graph/intruder.py", "import settings"),
    ],
)
def test_an_import_the_other_way_is_found(copy: Path, module: str, line: str) -> None:
    intruder = copy / module
    intruder.write_text(f"{line}\n", encoding="utf-8")
    result = lint_imports(copy)
    intruder.unlink()

    assert result.returncode != 0
    assert "BROKEN" in result.stdout


def test_domain_files_load_nothing_heavy() -> None:
    modules = [f"memory.{path.stem}" for path in (ROOT / "memory").glob("*.py") if path.stem != "mem_agent"]
    script = (
        "import importlib, json, sys; [importlib.import_module(name) for name in json.loads(sys.argv[1])];"
        "print(json.dumps([name for name in json.loads(sys.argv[2]) if name in sys.modules]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, json.dumps(modules), json.dumps(HEAVY)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == []
