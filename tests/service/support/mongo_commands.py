"""Watches the commands that a service in this process sends to MongoDB."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from pymongo import monitoring
from typing_extensions import override

from recollect.api.app import create_app
from recollect.settings import Settings
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import model_settings
from tests.service.support.scripts import learning

Json = dict[str, Any]


class Watch(monitoring.CommandListener):
    """Keeps each command to one database: its name, its collection, a filter of it, and all of it.

    `commands` has the names and collections of all of them, `seen` those with a filter, one for each filter.

    The driver keeps a listener for good, so that one serves all tests.
    """

    def __init__(self) -> None:
        self.database = ""
        self.commands: list[tuple[str, str]] = []
        self.seen: list[tuple[str, str, Json, Json]] = []

    @override
    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.database_name == self.database:
            name, command = event.command_name, dict(event.command)
            self.commands.append((name, str(command[name])))
            self.seen += [(name, str(command[name]), each, command) for each in _filters(name, command)]

    @override
    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Ignore it."""

    @override
    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Ignore it."""


def _filters(name: str, command: Mapping[str, Any]) -> list[Json]:
    if name in {"update", "delete"}:
        return [dict(each["q"]) for each in command[f"{name}s"]]
    if name == "aggregate":
        return [dict(command["pipeline"][0].get("$match", {}))]
    if name in {"find", "findAndModify", "count", "distinct"}:
        return [dict(command.get("filter" if name == "find" else "query", {}))]
    return []


watch = Watch()
monitoring.register(watch)


@asynccontextmanager
async def opened(tmp_path: Path, database: str, mongodb_url: str, **settings: Any) -> AsyncGenerator[httpx.AsyncClient]:
    """Yield a client of the service in this process, whose commands are watched once it is open."""
    with FakeOpenAI() as fake:
        fake.on_chat = learning
        chosen = model_settings(fake.url, MONGODB_URL=mongodb_url, MONGODB_DATABASE=database)
        lower: Json = {name.lower(): value for name, value in chosen.items()}
        app = create_app(Settings(data_dir=tmp_path, embedding_model="lexical", **lower, **settings))
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1234))
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", timeout=60) as http,
        ):
            await http.get("/health/ready")  # opens what is opened at its first use
            watch.seen.clear()
            watch.database = database
            yield http


async def asked(http: httpx.AsyncClient, method: str, path: str, **given: Any) -> Json:
    answer = await http.request(method, path, **given)
    assert answer.status_code < 300, (path, answer.text)
    return answer.json() if answer.content and "json" in answer.headers["content-type"] else {}
