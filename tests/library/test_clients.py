"""Checks that every agent does the same: in this process or behind a service's address, awaited or not."""

import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from recollect import AsyncClient, Client, MemoryAgent, MemoryConfig, SyncMemoryAgent
from recollect.memory.agents.sync_agent import SyncAgent
from recollect.memory.values.errors import (
    ConfigurationError,
    FactConflict,
    FactsChanged,
    InvalidRequest,
    NotFound,
    ServiceUnreachable,
    StoreUnavailable,
    TurnConflict,
    Unauthorized,
)
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.locked import made_key
from tests.service.support.running import Service, free_port, service

PROJECT = Path(__file__).parents[2]
Opened = Callable[[str, str], Any]
KINDS = ("embedded", "client", "by url", "synchronous", "synchronous by url", "synchronous client")


class Awaited:
    """A synchronous agent whose results are awaitable: it is called here, inside the running loop."""

    def __init__(self, agent: SyncAgent) -> None:
        self._agent = agent

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **more: Any) -> Any:
            return getattr(self._agent, name)(*args, **more)

        return call


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with service(tmp_path_factory.mktemp("service")) as started:
        yield started


@pytest.fixture(params=KINDS)
async def opened(request: pytest.FixtureRequest, running: Service, tmp_path: Path) -> AsyncIterator[Opened]:
    """Yield a function that returns the agent of a user and thread, of each kind."""
    cfg = MemoryConfig(data_dir=tmp_path / "data")
    async with AsyncExitStack() as closing:

        def awaited(agent: SyncAgent) -> Any:
            closing.callback(agent.close)
            return Awaited(agent)

        def direct(agent: MemoryAgent) -> Any:
            closing.push_async_callback(agent.aclose)
            return agent

        kinds: dict[str, Opened] = {
            "embedded": lambda user, thread: direct(MemoryAgent(user, thread, cfg)),
            "by url": lambda user, thread: direct(MemoryAgent(user, thread, url=running.url)),
            "synchronous": lambda user, thread: awaited(SyncMemoryAgent(user, thread, cfg)),
            "synchronous by url": lambda user, thread: awaited(SyncMemoryAgent(user, thread, url=running.url)),
        }
        if request.param == "client":
            yield (await closing.enter_async_context(AsyncClient(running.url))).agent
        elif request.param == "synchronous client":
            client = closing.enter_context(Client(running.url))
            yield lambda user, thread: awaited(client.agent(user, thread))
        else:
            yield kinds[request.param]


@pytest.fixture
def agent(opened: Opened, user: str) -> Any:
    return opened(user, "t1")


@pytest.fixture
def user() -> str:
    return f"u-{uuid4().hex[:12]}"


async def test_turns_are_stored_found_and_learned_from(agent: Any) -> None:
    turn = await agent.update_facts_and_embeddings("Hi, I'm Ada and I love hiking.", "Nice to meet you!")
    assert (turn["reply"], turn["memory"]["update"]["status"]) == ("Nice to meet you!", "done")
    again = await agent.update_facts_and_embeddings("Hi, I'm Ada and I love hiking.", "Nice to meet you!")
    assert again["turn_id"] == turn["turn_id"]
    assert await agent.get_user_facts() == {"name": "Ada", "likes_hiking": "hiking"}
    assert [(one["role"], one["content"]) for one in await agent.fetch_short_term()] == [
        ("user", "Hi, I'm Ada and I love hiking."),
        ("assistant", "Nice to meet you!"),
    ]
    assert await agent.formatted_history() == "user: Hi, I'm Ada and I love hiking.\nassistant: Nice to meet you!"
    (found,) = await agent.fetch_long_term("hiking", k=1)
    assert found.page_content == "Hi, I'm Ada and I love hiking."
    assert found.metadata["turn_id"] == turn["turn_id"]
    assert await agent.fetch_long_term("hiking", beyond_window=True) == []
    context = await agent.context("What do I love?", top_k=1)
    assert '"name": "Ada"' in context["block"]
    assert (len(context["window"]), context["facts"]["name"]) == (2, "Ada")


async def test_a_chat_is_a_turn_and_a_repeat_the_stored_one(agent: Any) -> None:
    first = await agent.chat("Hi, I'm Ada and I work as a pilot.", turn_id="one")
    assert (first["turn_id"], first["model"], first["memory"]["update"]["status"]) == ("one", "offline", "done")
    assert (await agent.chat("What is my job?"))["reply"] == "You work as a pilot."
    assert (await agent.chat("Hi, I'm Ada and I work as a pilot.", turn_id="one"))["reply"] == first["reply"]
    with pytest.raises(TurnConflict) as caught:
        await agent.chat("Something else", turn_id="one")
    assert (caught.value.code, caught.value.turn_id) == ("turn_conflict", "one")
    with pytest.raises(InvalidRequest) as refused:
        await agent.chat("")
    assert [problem.field for problem in refused.value.problems] == ["message"]


async def test_exchanges_are_turns(agent: Any) -> None:
    further = [{"role": "user", "content": "I live in Oslo.", "name": "Eve"}]
    turn = await agent.exchange("My name is Ada.", "Hello!", turn_id="one", messages=further, wait_for_memory=True)
    assert (turn["reply"], turn["memory"]["update"]["status"]) == ("Hello!", "done")
    assert await agent.get_user_facts() == {"name": "Ada", "location": "Oslo"}
    with pytest.raises(TurnConflict):
        await agent.exchange("My name is Ada.", None, turn_id="one", messages=further)
    dated = {"content": "I work as a nurse.", "created_at": "2021-01-02T03:04:05Z"}
    items = (await agent.exchanges([{"user": dated, "learn": False}, {"user": "Hi.", "assistant": "Hey."}]))["items"]
    assert [item["reply"] for item in items] == [None, "Hey."]
    assert (await agent.fetch_short_term())[-3]["created_at"] == "2021-01-02T03:04:05.000Z"
    for wrong, field in (
        ({"user": {"content": ""}}, "1.user.content"),
        ({"user": "x", "thread_id": "t2"}, "1.thread_id"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            await agent.exchanges([{"user": "Fine."}, wrong])
        assert [problem.field for problem in refused.value.problems] == [field]
    with pytest.raises(InvalidRequest):
        await agent.exchanges([])


async def test_messages_are_stored_one_by_one(agent: Any) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await agent.store_message("assistant", "Nobody asked.")
    assert [problem.field for problem in refused.value.problems] == ["role"]
    asked = await agent.store_message("user", "I live in Oslo.", turn_id="one", metadata={"client": "web"})
    assert (asked["turn_id"], asked["role"], asked["metadata"]) == ("one", "user", {"client": "web"})
    assert await agent.fetch_short_term() == []
    answered = await agent.store_message("assistant", "Noted.", name="Bot")
    assert (answered["turn_id"], answered["role"], answered["name"]) == ("one", "assistant", "Bot")
    assert [one["content"] for one in await agent.fetch_short_term()] == ["I live in Oslo.", "Noted."]


async def test_a_person_writes_changes_and_forgets_facts(agent: Any) -> None:
    made = await agent.put_fact("diet", value="vegan", tags=["food"], metadata={"project": "apollo"})
    here = await agent.put_fact("task", value="taxes", scope="thread")
    assert (made["source"], here["thread_id"]) == ("manual", "t1")
    changed = await agent.patch_fact(made["id"], value="vegetarian", pinned=True)
    assert (changed["id"], changed["pinned"]) == (made["id"], True)
    listed = await agent.list_facts()
    assert listed["facts"] == {"diet": "vegetarian", "task": "taxes"}
    first = await agent.list_facts(limit=1)
    second = await agent.list_facts(limit=1, cursor=first["next_cursor"])
    assert [*first["items"], *second["items"]] == listed["items"]
    assert [fact["key"] for fact in (await agent.list_facts(tag="food"))["items"]] == ["diet"]
    filtered = await agent.list_facts(filter={"project": "apollo"})
    assert ([fact["key"] for fact in filtered["items"]], filtered["filter"]) == (["diet"], {"complete": True})
    assert (await agent.list_facts(filter={"project": {"ne": "apollo"}}))["items"][0]["key"] == "task"
    assert [version["value"] for version in await agent.fact_history(made["id"])] == ["vegan", "vegetarian"]
    for decide in (agent.approve_fact, agent.reject_fact):
        with pytest.raises(FactConflict):
            await decide(made["id"])
    await agent.forget_fact(made["id"])
    assert (await agent.list_facts())["facts"] == {"task": "taxes"}
    for strange in ("never", "..", "", "a/b"):
        with pytest.raises(NotFound) as missing:
            await agent.forget_fact(strange)
        assert missing.value.code == "not_found"
    with pytest.raises(InvalidRequest) as refused:
        await agent.put_fact("No Key", value="x")
    assert [problem.field for problem in refused.value.problems] == ["key"]


async def test_a_turn_is_undone_and_learned_again(agent: Any) -> None:
    await agent.update_facts_and_embeddings("My name is Ada.", "Hi.", "turn-1")
    undone = await agent.undo("turn-1")
    assert [(change["decision"], change["before"]) for change in undone["undone"]] == [("delete", "Ada")]
    shown = await agent.learn("turn-1", dry_run=True)
    assert await agent.get_user_facts() == {}
    applied = await agent.apply_learning("turn-1", preview_id=shown["preview_id"])
    assert applied["update"]["changes"][-1:] == shown["changes"]
    (fact,) = (await agent.list_facts())["items"]
    await agent.patch_fact(fact["id"], value="Bob")
    with pytest.raises(FactsChanged) as caught:
        await agent.undo("turn-1")
    assert [left["key"] for left in caught.value.details] == ["name"]
    assert (await agent.undo("turn-1", force=True))["left"][0]["key"] == "name"
    with pytest.raises(NotFound):
        await agent.learn("never")


async def test_texts_teach_and_threads_are_counted_and_cleared(agent: Any, opened: Opened, user: str) -> None:
    learned = await agent.add_text("My name is Ada. I live in Oslo.")
    assert [(change["decision"], change["after"]) for change in learned["changes"]] == [("add", "Ada"), ("add", "Oslo")]
    await agent.chat("Hello.")
    await opened(user, "t2").chat("Hello there.")
    assert ((await agent.stats())["turns"], (await agent.stats(scope="thread"))["turns"]) == (2, 1)
    assert (await agent.clear())["conversations"] == 2
    assert (await agent.clear())["conversations"] == 0
    assert (await agent.stats())["turns"] == 1
    with pytest.warns(DeprecationWarning, match="update_facts_and_embeddings"):
        await agent.update("Is it raining?", "No.")


def test_a_synchronous_agent_needs_no_loop(running: Service, user: str) -> None:
    with Client(running.url) as client:
        agent = client.agent(user, "t1")
        assert agent.exchange("My name is Ada.", "Hi.", wait_for_memory=True)["reply"] == "Hi."
        assert agent.get_user_facts() == {"name": "Ada"}
    with SyncMemoryAgent(user, "t1", url=running.url) as same:
        assert same.get_user_facts() == {"name": "Ada"}


async def test_all_fronts_of_a_process_share_a_folder(tmp_path: Path) -> None:
    cfg = MemoryConfig(data_dir=tmp_path / "data")
    async with MemoryAgent("ada", "t1", cfg) as awaited:
        await awaited.exchange("My name is Ada.", "Hi.", wait_for_memory=True)
        with SyncMemoryAgent("ada", "t2", cfg) as here:
            assert here.get_user_facts() == {"name": "Ada"}
            here.put_fact("diet", value="vegan")

        def elsewhere() -> dict[str, str]:
            async def look() -> dict[str, str]:
                async with MemoryAgent("ada", "t3", cfg) as other:
                    return await other.get_user_facts()

            return asyncio.run(look())

        assert await asyncio.to_thread(elsewhere) == {"name": "Ada", "diet": "vegan"}
        assert await awaited.get_user_facts() == {"name": "Ada", "diet": "vegan"}


def test_fronts_have_the_same_calls() -> None:
    for name, verb in inspect.getmembers(MemoryAgent, inspect.isfunction):
        if not name.startswith("_") and name not in {"aclose", "run"}:
            assert inspect.signature(getattr(SyncMemoryAgent, name)) == inspect.signature(verb), name


async def test_a_service_that_is_not_there_is_named(user: str) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(ServiceUnreachable, match=f"{url} does not answer") as caught:
        await MemoryAgent(user, "t1", url=url).get_user_facts()
    assert isinstance(caught.value, StoreUnavailable)
    assert caught.value.code == "store_unavailable"
    with pytest.raises(ServiceUnreachable), Client(url):
        pass


@pytest.mark.parametrize(
    "url", ["", "nowhere", "ftp://x", "http://", "http://u:p@127.0.0.1", "http://x/?key=1", "http://[x"]
)
def test_a_wrong_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="url is"):
        AsyncClient(url)


async def test_what_is_no_service_is_said_to_be_none(user: str) -> None:
    with FakeOpenAI() as other:
        agent = MemoryAgent(user, "t1", url=other.url)
        for ask in (agent.__aenter__, agent.get_user_facts):
            with pytest.raises(ConfigurationError, match="no service of Recollect's"):
                await ask()
        await agent.aclose()


def test_arguments_that_contradict_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="names a service's"):
        MemoryAgent("ada", "t1", MemoryConfig(data_dir=tmp_path), url="http://127.0.0.1:8000")
    with pytest.raises(ConfigurationError, match="name its url"):
        SyncMemoryAgent("ada", "t1", api_key="k")
    with pytest.raises(ConfigurationError, match="api_key holds"):
        AsyncClient("http://127.0.0.1:8000", "a\nb")
    with pytest.raises(InvalidRequest):
        AsyncClient("http://127.0.0.1:8000").agent("a/b", "t1")


async def test_a_key_is_shown_and_a_wrong_one_refused(tmp_path: Path) -> None:
    with service(tmp_path, AUTH="api_key") as locked:
        key = made_key(locked, "user:ada")["key"]
        async with AsyncClient(locked.url, key) as client:
            assert await client.agent("ada", "t1").get_user_facts() == {}
        for wrong in (None, "b" * 40):
            async with AsyncClient(locked.url, wrong) as client:
                with pytest.raises(Unauthorized) as caught:
                    await client.agent("ada", "t1").get_user_facts()
            assert caught.value.code == "unauthorized"


async def test_a_restart_of_the_service_costs_a_repeat(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        async with AsyncClient(running.url) as client:
            agent = client.agent("ada", "t1")
            await agent.exchange("My name is Ada.", "Hi.", turn_id="one")
            running.kill()
            running.start()
            assert (await agent.exchange("My name is Ada.", "Hi.", turn_id="one"))["turn_id"] == "one"
            assert len(await agent.fetch_short_term()) == 2


def test_clients_are_imported_without_a_database() -> None:
    heavy = ["aiosqlite", "fastapi", "langchain_core", "langgraph", "numpy", "openai", "pymongo", "qdrant_client"]
    script = (
        "import json, sys; from recollect import AsyncClient, Client, MemoryAgent, SyncMemoryAgent;"
        "AsyncClient('http://127.0.0.1:1').agent('u', 't'); MemoryAgent('u', 't', url='http://127.0.0.1:1');"
        f"print(json.dumps(sorted({{'qdrant_edge', *{heavy!r}}} & {{*sys.modules}})))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout) == []


def test_no_program_names_the_user_of_global_facts() -> None:
    for made in (
        lambda: MemoryAgent("*", "t1"),
        lambda: SyncMemoryAgent("*", "t1"),
        lambda: Client("http://127.0.0.1:1").agent("*", "t1"),
    ):
        with pytest.raises(InvalidRequest):
            made()
