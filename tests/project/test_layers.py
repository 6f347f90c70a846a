import ast
import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.source_trees import tree

ROOT = Path(__file__).parents[2]
FOLDERS = ("api", "graph", "memory")
HEAVY = ["aiosqlite", "fastapi", "langchain_openai", "langgraph", "openai", "pymongo", "qdrant_client", "qdrant_edge"]
OUTSIDE = {"agents", "mem_agent", "opening", "providers", "stores"}
"""The parts of `memory/` that may load the outside world."""
MOST_FILES = 25
"""How many files a room may hold."""


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sysconfig.get_path("scripts")) / "lint-imports", "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_imports_point_one_way() -> None:
    result = lint_imports(ROOT)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layers")
    for package in FOLDERS:
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "recollect", folder / "recollect", symlinks=True)
    shutil.copy(ROOT / "settings.py", folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("memory/values/intruder.py", "import recollect.graph.state"),
        ("memory/values/intruder.py", "import pymongo"),
        ("memory/values/intruder.py", "import recollect.settings"),
        ("memory/values/intruder.py", "from recollect.memory.ports import store"),
        ("memory/facts/intruder.py", "from recollect.memory.learning import plan"),
        ("memory/recall/intruder.py", "from recollect.memory import stores"),
        ("memory/stores/intruder.py", "import recollect.settings"),
        ("memory/transfer/intruder.py", "from recollect.memory.stores import points"),
        ("graph/intruder.py", "import recollect.api.app"),
        ("graph/intruder.py", "from recollect.memory import providers"),
        ("graph/intruder.py", "import recollect.settings"),
        ("api/auth/intruder.py", "from recollect.api.routes import facts"),
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
    modules = [
        ".".join(("recollect", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for path in (ROOT / "memory").rglob("*.py")
        if not OUTSIDE & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
        and path.parent.name != "sources"
    ]
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

    assert len(modules) > 100
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == []


def sources() -> Iterator[Path]:
    for folder in (*FOLDERS, "benchmarks", "tests"):
        yield from (ROOT / folder).rglob("*.py")
    yield ROOT / "settings.py"


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_no_file_imports_a_folder_by_its_bare_name() -> None:
    # Two names for one file would be two modules, whose classes are not each other's.
    bare = {*FOLDERS, "settings"}
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources()
        for name in imported(path)
        if name.split(".")[0] in bare
    ]

    assert found == []


def test_graph_and_api_ask_the_memory_for_verbs_and_reach_for_no_part() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("graph", "api")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute)
        and node.attr == "parts"
        and ast.unparse(node.value).removesuffix(".operations").endswith("memory")
    ]

    assert found == []


def test_no_room_is_a_hall() -> None:
    rooms = {path.parent for folder in (*FOLDERS, "benchmarks", "tests") for path in (ROOT / folder).rglob("*.py")}
    counts = {str(room.relative_to(ROOT)): len([*room.glob("*.py")]) - 1 for room in rooms}

    assert {room: count for room, count in counts.items() if count > MOST_FILES} == {}
    assert counts["memory"] <= 8
