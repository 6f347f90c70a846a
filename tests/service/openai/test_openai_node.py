"""OpenAI's own Node client, and the AI SDK, against a real server.

They need node and npm, and what `npm ci` installs.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.chats import Json
from tests.service.support.running import PROJECT, Service, until
from tests.service.support.scripts import texts

CLIENT = PROJECT / "tests" / "clients" / "node"
PASSED_ON = ("PATH", "HOME", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the client installed as its lock says."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node or npm is not installed")
    folder = tmp_path_factory.mktemp("node")
    for file in CLIENT.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    done = subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"npm ci failed, so that there is no client: {done.stderr[-300:]}")
    return folder


def drive(folder: Path, url: str, user: str, script: str = "drive.mjs") -> Json:
    """Return what the script saw."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    done = subprocess.run(
        [shutil.which("node") or "node", script, f"{url}/v1", user],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: Json = json.loads(done.stdout)
    return seen


def test_the_node_client(served: Service, model: FakeOpenAI, user: str, installed: Path) -> None:
    story = " ".join(f"word{number}" for number in range(20))
    model.script("Hello, you.", "One two three.", call("get_weather", city="Oslo"), "Yes, it does.", story)
    model.piece_seconds = 0.02
    seen = drive(installed, served.url, user)
    assert seen["plain"] == "Hello, you."
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    assert (seen["usage"], seen["streamUsage"]) == (usage, usage)
    assert seen["hits"] == []
    assert (seen["streamed"], seen["finish"]) == ("One two three.", "stop")
    assert "memory_hits" in seen["last"]
    assert seen["tools"] == "Yes, it does."
    assert seen["models"] == ["fake-chat", "fake-embed"]
    wrong: list[Any] = ["invalid_request", "invalid_request_error"]
    assert seen["errors"] == [
        [404, "model", "model_not_found", "invalid_request_error"],
        [400, "user", *wrong],
        [400, "n", *wrong],
        [400, "messages", *wrong],
    ]
    until(lambda: len(texts(served, user=user)) == 8)
    assert [text for _, text in texts(served, user=user)] == [
        *("Hello.", "Hello, you.", "Count.", "One two three."),
        *("Does it rain in Oslo?", "Yes, it does.", "A long story.", story),
    ]
    results = [item for chat in model.chats for item in chat["messages"] if item["role"] == "tool"]
    assert [item["content"] for item in results] == ["It rains in Oslo."]


def test_responses_of_the_node_client(served: Service, model: FakeOpenAI, user: str, installed: Path) -> None:
    model.script("Hello, you.", "One two three.", call("get_weather", city="Oslo"), "Yes, it does.", "Hi.")
    seen = drive(installed, served.url, user, "responses.mjs")
    assert (seen["plain"], seen["usage"], seen["streamed"]) == ("Hello, you.", 12, "One two three.")
    assert seen["events"][0] == "response.created"
    assert seen["events"][-1] == "response.completed"
    assert (seen["tools"], seen["retrieved"]) == ("Yes, it does.", "Yes, it does.")
    assert seen["items"] == ["user", "assistant"]
    assert [text for _, text in texts(served, user=user)] == [
        *("Hello.", "Hello, you.", "Count.", "One two three.", "Does it rain?", "Yes, it does."),
    ]


def test_responses_of_the_ai_sdk(served: Service, model: FakeOpenAI, user: str, installed: Path) -> None:
    model.script("Hello, you.", "One two three.", call("get_weather", city="Oslo"), "Yes, it does.", "The sea.")
    seen = drive(installed, served.url, user, "ai_sdk.mjs")
    assert (seen["plain"], seen["usage"], seen["streamed"]) == ("Hello, you.", 12, "One two three.")
    assert (seen["tools"], seen["afterwards"]) == ("Yes, it does.", "The sea.")
    assert [text for _, text in texts(served, user=user)] == [
        *("Hello.", "Hello, you.", "Count.", "One two three.", "Does it rain in Oslo?", "Yes, it does."),
        *("Why?", "The sea."),
    ]
    roles = [message["role"] for message in model.chats[-1]["messages"]]
    assert roles.count("tool") == 1
