"""Checks that every call of a watched store and index is watched, and does what it did before."""

import asyncio
import contextlib
import inspect
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from recollect.api.telemetry.watched_store import WatchedStore, watched_index
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.values.scope import Scope
from tests.contracts.store.samples import NOW
from tests.domain.support.learner import Stores, stores
from tests.domain.support.talks import say_all

SPANS = {"documents": "library"}
"""Parts whose calls have another name in traces."""


class Watching:
    """Writes down which calls begin and end; watches none while it is `blind`."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.blind = False

    def __call__(self, name: str) -> "contextlib.AbstractContextManager[None] | None":
        return None if self.blind else self._watch(name)

    @contextmanager
    def _watch(self, name: str) -> Generator[None]:
        self.begun.append(name)
        try:
            yield
        finally:
            self.ended.append(name)


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncGenerator[Stores]:
    async with stores(tmp_path) as made:
        yield made


def methods_of(port: type) -> list[str]:
    return sorted(getattr(port, "__abstractmethods__"))  # noqa: B009 - its type is unknown to pyright


def parts_of(port: type) -> dict[str, type]:
    """Return the attributes of `port` that are ports themselves."""
    return {name: kind for name, kind in get_type_hints(port).items() if hasattr(kind, "__abstractmethods__")}


async def use(part: Any, port: type, method: str) -> None:
    """Call the method with None for each argument that it needs: how the call ends is nothing to those who watch."""
    needed = [
        argument
        for argument in inspect.signature(getattr(port, method)).parameters.values()
        if argument.default is argument.empty and argument.name != "self"
    ]
    given = [None for argument in needed if argument.kind is not argument.KEYWORD_ONLY]
    named = {argument.name: None for argument in needed if argument.kind is argument.KEYWORD_ONLY}
    with contextlib.suppress(Exception):
        async with asyncio.timeout(5):
            answer = getattr(part, method)(*given, **named)
            if hasattr(answer, "__aenter__"):
                async with answer:
                    return
            if hasattr(answer, "__anext__"):
                async for _ in answer:
                    pass
                return
            await answer


async def check(part: Any, real: Any, port: type, span: str, watching: Watching) -> int:
    """Check the port and all ports in it; return how many methods that were."""
    assert port in type(part).__mro__
    for name in get_type_hints(port).keys() - parts_of(port).keys():
        assert getattr(part, name) == getattr(real, name)
    for method in methods_of(port):
        watching.begun.clear()
        watching.ended.clear()
        await use(part, port, method)
        assert (watching.begun, watching.ended) == ([f"{span}.{method}"], [f"{span}.{method}"])
    count = len(methods_of(port))
    for name, inner in parts_of(port).items():
        count += await check(getattr(part, name), getattr(real, name), inner, SPANS.get(name, name), watching)
    return count


async def test_every_method_of_every_part_is_watched_once(opened: Stores) -> None:
    watching = Watching()
    assert await check(WatchedStore(opened.store, watching), opened.store, Store, "documents", watching) > 100
    watched = watched_index(opened.index, watching)
    assert await check(watched, opened.index, VectorIndex, "index", watching) == len(methods_of(VectorIndex))


@pytest.mark.parametrize("blind", [False, True])
async def test_a_watched_store_answers_what_the_store_does(opened: Stores, blind: bool) -> None:
    watching = Watching()
    watching.blind = blind
    store = WatchedStore(opened.store, watching)
    await say_all(store, ["tea", "berlin"])
    scope = Scope("ada", "t1")
    messages = await store.conversations.messages(scope, limit=9)
    assert messages == await opened.store.conversations.messages(scope, limit=9)
    assert [message.content for message in messages if message.role == "user"] == ["tea", "berlin"]
    assert [batch async for batch in store.users()] == [["ada"]]
    turns = [turn async for batch in store.conversations.turns("ada") for turn in batch]
    assert turns == [turn async for batch in opened.store.conversations.turns("ada") for turn in batch]
    assert len(turns) == 2
    async with store.queue.turn(scope, wait_seconds=1):
        with pytest.raises(Exception, match="thread"):
            async with store.queue.turn(scope, wait_seconds=0):
                pass
    assert watching.begun == watching.ended
    assert ("queue.turn" in watching.begun) is not blind


async def test_a_call_is_watched_until_it_fails(opened: Stores) -> None:
    watching = Watching()
    store = WatchedStore(opened.store, watching)
    with pytest.raises(AttributeError):
        await store.facts.insert(None)  # pyright: ignore[reportArgumentType]  # no fact
    assert watching.ended == ["facts.insert"]
    assert not await store.facts.living(Scope("ada"), at=NOW, limit=5)
