"""Runs what docs/clients.md shows, from top to bottom, against one service."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.support.running import PROJECT, Service, service

PAGE = (PROJECT / "docs" / "clients.md").read_text(encoding="utf-8")
SHOWN = "127.0.0.1:8000"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("page")) as started:
        yield started


def blocks(language: str, running: Service) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [block.replace(SHOWN, f"127.0.0.1:{running.port}") for block in found]


def ran(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(PROJECT), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_two_calls_answer_what_it_shows(running: Service, tmp_path: Path) -> None:
    (block,) = blocks("console", running)
    for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, printed = step.rsplit("'\n", 1)
        assert ran(["bash", "-c", f"{command}'"], tmp_path).strip() == printed.strip()


def test_the_clients_print_what_it_shows(running: Service, tmp_path: Path) -> None:
    shown = [block for block in blocks("python", running) if "langgraph" not in block]
    for source, printed in zip(shown, blocks("text", running), strict=True):
        assert ran([sys.executable, "-W", "error", "-c", source], tmp_path) == printed


def test_the_graph_remembers(running: Service) -> None:
    (source,) = [block for block in blocks("python", running) if "langgraph" in block]
    made = dict[str, Any](__name__="made")
    exec(compile(source, "docs/clients.md", "exec"), made)

    async def said(*texts: str) -> list[str]:
        states = [await made["app"].ainvoke({"messages": [("user", text)]}) for text in texts]
        await made["client"].aclose()
        return [state["messages"][-1].content for state in states]

    assert asyncio.run(said("My name is Barbara.", "Hello again.")) == ["Who are you?", "Hello Barbara!"]
