"""A real `langgraph dev` process for tests: what `make studio` starts, in a folder of its own and without a network."""

import os
import subprocess
import sysconfig
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.service.support.running import PROJECT, free_port, wait_until_up

START_SECONDS = 60.0
COMMAND = ["dev", "--no-browser", "--no-reload"]
NO_WAY_OUT = "http://127.0.0.1:9"


@dataclass(frozen=True)
class Studio:
    """A running LangGraph server. `client` speaks its own protocol, `http` reaches every route."""

    log_file: Path
    process: "subprocess.Popen[bytes]"
    http: httpx.Client
    client: SyncLangGraphClient

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """Stop it as Ctrl-C does, and wait."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)

    def thread(self) -> str:
        """Return a new LangGraph thread."""
        return self.client.threads.create()["thread_id"]

    def run(self, langgraph_thread: str, message: str, **given: Any) -> "Run":
        """Return one run of the graph on a LangGraph thread, to its end; it must succeed."""
        given = {"user_id": "ada", "thread_id": "t1", "message": message, **given}
        events = self._stream(langgraph_thread, given)
        assert {name for name, _ in events} <= {"metadata", "updates"}, f"{events}\n{self.log}"
        updates = [item for name, data in events if name == "updates" for item in data.items()]
        state = self.client.threads.get_state(langgraph_thread)
        return Run(updates, cast("dict[str, Any]", state["values"]))

    def failure(self, langgraph_thread: str, given: dict[str, Any]) -> str:
        """Return what a run that must fail says."""
        (said,) = [data for name, data in self._stream(langgraph_thread, given) if name == "error"]
        return str(said)

    def _stream(self, langgraph_thread: str, given: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        parts = self.client.runs.stream(langgraph_thread, "recollect", input=given, stream_mode="updates")
        return [(part.event, cast("dict[str, Any]", part.data)) for part in parts]  # pyright: ignore[reportUnknownMemberType] - the SDK says only "dict"


@dataclass(frozen=True)
class Run:
    """Results of a run: each node's update, in order, and the state at the end."""

    updates: Sequence[tuple[str, dict[str, Any]]]
    state: dict[str, Any]

    @property
    def nodes(self) -> list[str]:
        return [node for node, _ in self.updates]


@contextmanager
def studio(folder: Path, **settings: str) -> Generator[Studio]:
    """`langgraph dev` with these settings (environment variables). Its working directory is `folder`.

    The proxies lead nowhere: whatever it would fetch from outside fails at once, and so does a run that needs it.
    """
    port = free_port()
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT),
        "DATA_DIR": str(folder / "data"),
        "HTTP_PROXY": NO_WAY_OUT,
        "HTTPS_PROXY": NO_WAY_OUT,
        "NO_PROXY": "127.0.0.1,localhost",
        **settings,
    }
    command = [str(Path(sysconfig.get_path("scripts")) / "langgraph"), *COMMAND, "--port", str(port)]
    log_file = folder / "studio.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [*command, "--config", str(PROJECT / "langgraph.json")], cwd=folder, env=environment, stdout=log, stderr=log
        )
    url = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=url, timeout=30) as http, get_sync_client(url=url) as client:
        running = Studio(log_file, process, http, client)
        try:
            wait_until_up(process, lambda: http.get("/ok"), log=lambda: running.log, seconds=START_SECONDS)
            yield running
        finally:
            running.stop()
