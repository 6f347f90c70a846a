import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.Path(path)


def names(wheel: zipfile.Path) -> set[str]:
    return set(wheel.root.namelist())


def test_it_holds_every_source_file(wheel: zipfile.Path) -> None:
    sources = {
        path.relative_to(ROOT).as_posix()
        for package in ("api", "graph", "memory")
        for path in (ROOT / package).rglob("*.py")
    }

    assert sources | {"settings.py"} <= names(wheel)


def test_it_holds_no_tests_and_no_benchmarks(wheel: zipfile.Path) -> None:
    tops = {name.split("/", 1)[0] for name in names(wheel)}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"api", "graph", "memory", "settings.py"}


def test_it_installs_the_command_and_carries_the_licence(wheel: zipfile.Path) -> None:
    (entry_points,) = (name for name in names(wheel) if name.endswith(".dist-info/entry_points.txt"))

    assert "recollect = api.cli:main" in wheel.root.read(entry_points).decode()
    assert any(name.endswith("/licenses/LICENSE") for name in names(wheel))
