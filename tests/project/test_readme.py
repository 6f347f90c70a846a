import os
import re
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from recollect.api.cli.main import app
from recollect.memory.values import errors
from recollect.settings import Settings
from tests.project.readme import (
    GUIDE,
    README,
    ROOT,
    blocks,
    conversation,
    generated,
    providers_table,
    settings_table,
)
from tests.service.support.events import data_of, names, stream
from tests.service.support.running import Service, service

SHOWN_PORT = 8000
MARKDOWN = sorted(
    {
        *ROOT.glob("*.md"),
        *(page for folder in ("docs", "memory", "graph", "api") for page in (ROOT / folder).rglob("*.md")),
    }
)


def shown_port() -> int | None:
    """Return the port that the README shows, where it is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", SHOWN_PORT))
        except OSError:
            return None
    return SHOWN_PORT


def with_commands() -> dict[str, str]:
    """Return the environment of somebody who has the commands of this installation at hand."""
    return {**os.environ, "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Service]:
    with Service(tmp_path, port=shown_port()) as started:
        yield started


def test_every_answer_that_it_shows_is_true(running: Service) -> None:
    steps = list(conversation())

    assert len(steps) >= 7
    for step in steps:
        command = step.command.replace(f"127.0.0.1:{SHOWN_PORT}", f"127.0.0.1:{running.port}")
        done = subprocess.run(
            ["bash", "-c", command], env=with_commands(), capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.stdout.strip(), done.stderr) == (step.printed, ""), f"{step.command}\n{running.log}"


def test_its_own_agent_answers(tmp_path: Path) -> None:
    (source,) = [block for block in blocks("python") if "def answer" in block]
    assert len(source.splitlines()) <= 15
    (tmp_path / "my_agent.py").write_text(source, encoding="utf-8")

    # As an installed command starts: its working directory is not on the path.
    with service(tmp_path, AGENT="my_agent:answer", PYTHONSAFEPATH="1") as running:
        first = running.turn("Hi, I'm Ada.", wait_for_memory=True)
        second = running.turn("Do you know me?")

    assert (first["reply"], first["model"]) == ("Hello stranger, this is turn 1.", "greeter")
    assert (second["reply"], second["model"]) == ("Hello Ada, this is turn 2.", "greeter")


def test_its_own_agent_speaks_while_it_works(tmp_path: Path) -> None:
    (source,) = [block for block in blocks("python") if "def talk" in block]
    (tmp_path / "talking_agent.py").write_text(source, encoding="utf-8")

    with service(tmp_path, AGENT="talking_agent:talk") as running:
        events = stream(running, "Hi.", user="ada")

    assert names(events)[2:-2] == ["tool_call", "tool_result", *["token"] * 4]
    assert data_of(events, "message")["reply"] == "Hello in the snow!"


def test_the_library_prints_what_it_shows(tmp_path: Path) -> None:
    (source,) = [block for block in blocks("python") if "MemoryAgent" in block]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout == blocks("text")[0], done.stderr


def test_an_openai_client_gets_the_memory_that_it_shows(running: Service) -> None:
    (source,) = [block for block in blocks("python") if "OpenAI(base_url" in block]
    source = source.replace(f"127.0.0.1:{SHOWN_PORT}", f"127.0.0.1:{running.port}")
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, check=False)

    assert done.stdout == "Nice to meet you, Ada.\n", done.stderr
    assert [message["content"] for message in running.get("/api/threads/t1/messages", user_id="ada")["items"]] == [
        "Hi, I'm Ada.",
        "Nice to meet you, Ada.",
    ]


def test_its_retriever_uses_what_there_is() -> None:
    (source,) = [block for block in blocks("python") if "as_retriever" in block]
    given = {
        "OPENAI_API_KEY": "test-key",
        "PYTHONPATH": str(ROOT),
    }
    unsent = source.replace(
        "QdrantVectorStore(client, name,", "QdrantVectorStore(client, name, validate_collection_config=False,"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{unsent}\nprint(name, retriever.search_kwargs['k'])"],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert re.fullmatch(r"recollect__text-embedding-3-small-[0-9a-f]{8}-1536\.current 5\n", done.stdout), done.stderr


def test_its_settings_table_is_the_settings() -> None:
    assert generated("settings") == settings_table()


def test_its_providers_table_is_the_presets() -> None:
    assert generated("providers") == providers_table()


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_inside_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(((?!https?:)[^)\s]+)\)", text)
    broken = [link for link in links if not _leads_somewhere(page, link)]

    assert broken == []


def _leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    if not target.exists():
        return False
    headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
    anchors = {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
    return not anchor or anchor in anchors


def test_every_make_target_that_it_names_exists() -> None:
    named = set(re.findall(r"\bmake ([a-z]+)\b", "\n".join(blocks("sh") + re.findall(r"`([^`\n]+)`", GUIDE))))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))

    assert {"run", "test", "studio"} <= named
    assert named <= targets


def test_every_command_that_it_names_exists() -> None:
    commands = set(getattr(get_command(app), "commands", {}))
    named = set(re.findall(r"\brecollect ([a-z]+)\b", "\n".join(blocks("sh") + re.findall(r"`([^`\n]+)`", GUIDE))))

    assert "serve" in named
    assert named <= commands


def test_every_setting_that_it_sets_exists() -> None:
    named = set(re.findall(r"\b([A-Z][A-Z0-9_]+)=", GUIDE))

    assert {"MONGODB_URL", "OPENAI_API_KEY", "AGENT"} <= named
    assert named <= {name.upper() for name in Settings.model_fields}


def test_every_error_code_that_it_explains_exists() -> None:
    table = re.search(r"^\| status \|.*?\n\n", GUIDE, re.MULTILINE | re.DOTALL)
    assert table is not None
    explained = set(re.findall(r"`([a-z]+_[a-z]+)`", table[0])) - {"turn_id"}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    raised = {kind.code for kind in kinds if issubclass(kind, errors.RecollectError)}

    assert explained - raised == {"foreign_host", "foreign_origin"}


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 250


def test_every_folder_on_its_map_exists() -> None:
    section = README.partition("## The map")[2]
    paths = [path.removesuffix("*.py") for path in re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)]

    assert len(paths) >= 8
    assert [path for path in paths if not (ROOT / path).exists()] == []
