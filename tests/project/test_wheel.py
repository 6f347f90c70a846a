import json
import os
import socket
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.service.support.running import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TURN = {"user_id": "ada", "thread_id": "t1", "message": "Hi, I'm Ada."}
LIBRARY = """
import asyncio
from recollect import MemoryAgent

async def main():
    async with MemoryAgent("ada", "t1") as memory:
        await memory.update_facts_and_embeddings("Hi, I'm Ada.", "Hello!")
        print(await memory.get_user_facts())

asyncio.run(main())
"""


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
        f"recollect/{path.relative_to(ROOT).as_posix()}"
        for package in ("api", "graph", "memory")
        for path in (ROOT / package).rglob("*.py")
    }

    assert sources | {"recollect/__init__.py", "recollect/settings.py"} <= names(wheel)


def test_it_holds_what_pages_are_made_of(wheel: zipfile.Path) -> None:
    folder = ROOT / "api" / "inspector"
    data = {
        f"recollect/{path.relative_to(ROOT).as_posix()}"
        for name in ("templates", "static")
        for path in (folder / name).rglob("*.*")
    }

    assert len(data) > 10
    assert data <= names(wheel)


def test_it_adds_one_name(wheel: zipfile.Path) -> None:
    tops = {name.split("/", 1)[0] for name in names(wheel)}

    assert {top for top in tops if not top.endswith(".dist-info")} == {"recollect"}


def test_it_installs_the_command_and_carries_the_licence(wheel: zipfile.Path) -> None:
    (entry_points,) = (name for name in names(wheel) if name.endswith(".dist-info/entry_points.txt"))

    assert "recollect = recollect.api.cli.main:main" in wheel.root.read(entry_points).decode()
    assert any(name.endswith("/licenses/LICENSE") for name in names(wheel))


@pytest.fixture(scope="module")
def project(wheel: zipfile.Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a program whose own modules have the names that ours once had, with the wheel in its environment."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("memory", "graph", "api"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise ImportError('another program')\n", encoding="utf-8")
    (folder / "settings.py").write_text("raise ImportError('another program')\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / ".venv"], check=True)
    uv = Path(sysconfig.get_path("scripts")) / "uv"
    command = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--offline",
        "--no-deps",
        "--python",
        folder / ".venv",
        wheel.root.filename,
    ]
    subprocess.run(list(map(str, command)), check=True)
    return folder


def environment(**more: str) -> dict[str, str]:
    """Make an environment with this one's dependencies, but without its editable install of the checkout."""
    return {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib"), **more}


def test_a_library_beside_modules_of_the_same_names(project: Path) -> None:
    command = [project / ".venv" / "bin" / "python", "-c", f"import sys; sys.path.insert(0, ''){LIBRARY}"]
    done = subprocess.run(
        command, cwd=project, env=environment(), capture_output=True, text=True, timeout=60, check=False
    )

    assert done.stdout == "{'name': 'Ada'}\n", done.stderr


def test_a_service_beside_modules_of_the_same_names(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    log = project / "log"
    with log.open("w", encoding="utf-8") as written:
        process = subprocess.Popen(
            [project / ".venv" / "bin" / "recollect", "serve", "--port", str(port)],
            cwd=project,
            env=environment(PYTHONPATH=f"{sysconfig.get_path('purelib')}{os.pathsep}{project}"),
            stdout=written,
            stderr=written,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            until(lambda: _is_up(client))
            answer = client.post("/api/agent", json=TURN)
            page = client.get("/", follow_redirects=True)
            styles = [client.get(part).status_code for part in page.text.split('"') if part.startswith("/static/")]
    finally:
        process.terminate()
        process.wait(30)

    assert answer.status_code == 200, log.read_text(encoding="utf-8")
    assert json.loads(answer.text)["reply"]
    assert "<h1>Talk</h1>" in page.text
    assert len(styles) > 3
    assert set(styles) == {200}


def _is_up(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False
