import asyncio
import inspect
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from recollect.memory.mem_agent import MemoryAgent, MockMemoryAgent
from recollect.memory.values.errors import (
    ConfigurationError,
    FactConflict,
    FactsChanged,
    InvalidRequest,
    NotFound,
    TurnConflict,
)
from recollect.memory.values.mem_config import MemoryConfig

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def cfg(tmp_path: Path) -> MemoryConfig:
    return MemoryConfig(data_dir=tmp_path / "data", window=2)


@pytest.fixture
async def agent(cfg: MemoryConfig) -> AsyncIterator[MemoryAgent]:
    async with MemoryAgent("ada", "t1", cfg) as opened:
        yield opened


async def test_an_exchange_is_stored_learned_from_and_found(agent: MemoryAgent) -> None:
    turn = await agent.update_facts_and_embeddings("Hi, I'm Ada and I love hiking.", "Nice to meet you!")
    assert turn["memory"]["update"]["status"] == "done"
    assert await agent.get_user_facts() == {"name": "Ada", "likes_hiking": "hiking"}
    assert [(item["role"], item["content"]) for item in await agent.fetch_short_term()] == [
        ("user", "Hi, I'm Ada and I love hiking."),
        ("assistant", "Nice to meet you!"),
    ]
    assert await agent.formatted_history() == "user: Hi, I'm Ada and I love hiking.\nassistant: Nice to meet you!"
    found = await agent.fetch_long_term("hiking", k=1)
    assert [type(document) for document in found] == [Document]
    assert found[0].page_content == "Hi, I'm Ada and I love hiking."
    assert found[0].metadata["turn_id"] == turn["turn_id"]


async def test_the_window_holds_the_last_pairs_and_search_can_leave_them_out(agent: MemoryAgent) -> None:
    for number in range(4):
        await agent.update_facts_and_embeddings(f"Tell me about tea number {number}", f"Tea number {number} is green.")
    window = await agent.fetch_short_term()
    assert [item["content"] for item in window if item["role"] == "user"] == [
        "Tell me about tea number 2",
        "Tell me about tea number 3",
    ]
    everywhere = {item.metadata["turn_id"] for item in await agent.fetch_long_term("tea number", k=50)}
    beyond = {item.metadata["turn_id"] for item in await agent.fetch_long_term("tea number", k=50, beyond_window=True)}
    shown = {item["turn_id"] for item in window}
    assert everywhere > beyond
    assert not beyond & shown
    assert await agent.fetch_long_term("tea number", k=0) == []


async def test_no_message_is_stored_twice(agent: MemoryAgent) -> None:
    first = await agent.update_facts_and_embeddings("I live in Paris.", "Noted.")
    again = await agent.update_facts_and_embeddings("I live in Paris.", "Noted.")
    assert again["turn_id"] == first["turn_id"]
    named = await agent.update_facts_and_embeddings("Hello", "Hi", turn_id="turn-1")
    assert (await agent.update_facts_and_embeddings("Hello", "Hi", turn_id="turn-1"))["turn_id"] == named["turn_id"]
    assert len(await agent.fetch_short_term()) == 4
    with pytest.raises(TurnConflict):
        await agent.update_facts_and_embeddings("Something else", "Hi", turn_id="turn-1")
    # The pair is not the newest any more: said again, it is a turn of its own.
    third = await agent.update_facts_and_embeddings("I live in Paris.", "Noted.")
    assert third["turn_id"] != first["turn_id"]


async def test_agents_of_one_process_share_the_stores_and_nothing_else(cfg: MemoryConfig) -> None:
    async with MemoryAgent("ada", "t1", cfg) as ada, MemoryAgent("bob", "t1", cfg) as bob:
        await ada.update_facts_and_embeddings("My name is Ada.", "Hi Ada.")
        assert await bob.get_user_facts() == {}
        assert await bob.fetch_short_term() == []
        assert await bob.fetch_long_term("Ada", scope="user") == []
        async with MemoryAgent("ada", "t2", cfg) as elsewhere:
            assert await elsewhere.fetch_short_term() == []
            assert await elsewhere.get_user_facts() == {"name": "Ada"}
            assert await elsewhere.fetch_long_term("Ada", scope="thread") == []
            assert len(await elsewhere.fetch_long_term("Ada")) >= 1
            assert len(await elsewhere.fetch_long_term("Ada", scope="user")) >= 1


async def test_it_opens_lazily_closes_and_opens_again(cfg: MemoryConfig) -> None:
    agent = MemoryAgent("ada", "t1", cfg)
    assert not cfg.data_dir.exists()
    await asyncio.gather(*(agent.get_user_facts() for _ in range(5)))
    await agent.update_facts_and_embeddings("My name is Ada.", "Hi.")
    await agent.aclose()
    await agent.aclose()
    assert await agent.get_user_facts() == {"name": "Ada"}
    await agent.aclose()


async def test_update_is_deprecated(agent: MemoryAgent) -> None:
    with pytest.warns(DeprecationWarning, match="update_facts_and_embeddings"):
        await agent.update("My name is Ada.", "Hi.")
    assert await agent.get_user_facts() == {"name": "Ada"}


UNSTORABLE = [
    ("", "Hi.", None),
    ("a\x00b", "Hi.", None),
    ("x" * 200_001, "Hi.", None),
    ("Hi.", "\ud800", None),
    ("Hi.", "Hi.", "a/b"),
]


@pytest.mark.parametrize(("message", "reply", "turn_id"), UNSTORABLE)
async def test_what_cannot_be_stored_is_refused(
    agent: MemoryAgent, message: str, reply: str, turn_id: str | None
) -> None:
    with pytest.raises(InvalidRequest):
        await agent.update_facts_and_embeddings(message, reply, turn_id)
    assert await agent.fetch_short_term() == []


async def test_bad_ids_and_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest):
        MemoryAgent("a/b", "t1")
    wrong = MemoryAgent("ada", "t1", MemoryConfig(data_dir=tmp_path, provider="nowhere"))
    with pytest.raises(ConfigurationError, match="PROVIDER"):
        await wrong.get_user_facts()
    # A failed opening leaves the folder free.
    async with MemoryAgent("ada", "t1", MemoryConfig(data_dir=tmp_path)) as agent:
        assert await agent.get_user_facts() == {}


async def test_exchanges_of_an_agent_of_ones_own_are_turns(agent: MemoryAgent) -> None:
    further = [
        {"role": "user", "content": "I live in Oslo.", "name": "Eve"},
        {"role": "tool", "content": "My name is X."},
    ]
    turn = await agent.exchange("My name is Ada.", "Hello!", turn_id="one", messages=further, wait_for_memory=True)
    assert (turn["reply"], turn["memory"]["update"]["status"]) == ("Hello!", "done")
    assert await agent.get_user_facts() == {"name": "Ada", "location": "Oslo"}
    assert (await agent.exchange("My name is Ada.", "Hello!", turn_id="one", messages=further))["turn_id"] == "one"
    with pytest.raises(TurnConflict):
        await agent.exchange("My name is Ada.", None, turn_id="one", messages=further)
    dated = {"content": "I work as a nurse.", "created_at": "2021-01-02T03:04:05Z"}
    items = (await agent.exchanges([{"user": dated, "learn": False}, {"user": "Hi.", "assistant": "Hey."}]))["items"]
    assert [item["reply"] for item in items] == [None, "Hey."]
    assert [item["content"] for item in await agent.fetch_short_term()] == ["I work as a nurse.", "Hi.", "Hey."]
    assert (await agent.context("Hi"))["facts"] == {"name": "Ada", "location": "Oslo"}


async def test_wrong_exchanges_name_their_fields_and_store_nothing(agent: MemoryAgent) -> None:
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"user": {"content": ""}}, "1.user.content"),
        ({"user": {}}, "1.user.content"),
        ({"user": "x", "assistant": {"content": 1}}, "1.assistant.content"),
        ({"user": "x", "messages": [{"role": "judge", "content": "x"}]}, "1.messages.0.role"),
        ({"user": {"content": "x", "created_at": "soon"}}, "1.user.created_at"),
        ({"user": "x", "learn": 1}, "1.learn"),
        ({"user": "x", "turn_id": "a b"}, "1.turn_id"),
        ({"user": "x", "thread_id": "t2"}, "1.thread_id"),
    ]
    for wrong, field in wrongs:
        with pytest.raises(InvalidRequest) as caught:
            await agent.exchanges([{"user": "Fine."}, wrong])
        assert [problem.field for problem in caught.value.problems] == [field]
    for count in (0, 101):
        with pytest.raises(InvalidRequest):
            await agent.exchanges([{"user": "Fine."}] * count)
    assert await agent.fetch_short_term() == []


async def test_the_mock_logs_and_stores_nothing(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    caplog.set_level("INFO", "recollect.memory.mock_agent")
    async with MockMemoryAgent() as mock:
        assert await mock.update_facts_and_embeddings("My secret name is Ada.", "Hi.") == {}
        assert await mock.get_user_facts() == {}
        assert await mock.fetch_short_term() == []
        assert await mock.fetch_long_term("name") == []
        assert await mock.formatted_history() == ""
        assert await mock.list_facts() == {"items": [], "facts": {}, "next_cursor": None}
        assert await mock.put_fact("name", value="my secret name") == {}
        assert await mock.patch_fact("id", value="my secret name") == {}
        assert await mock.forget_fact("id") is None
        assert await mock.fact_history("id") == []
        assert await mock.approve_fact("id") == {}
        assert await mock.reject_fact("id") == {}
        assert await mock.undo("turn") == {"turn_id": "turn", "undone": [], "left": []}
        assert await mock.learn("turn") == {}
        assert await mock.apply_learning("turn", preview_id="preview") == {}
        assert await mock.add_text("secret") == {}
        assert await mock.chat("secret") == {}
        assert await mock.store_message("user", "secret") == {}
        assert await mock.stats() == {}
        assert await mock.clear() == {}
    assert len(caplog.records) == 20
    assert "secret" not in caplog.text
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


async def test_the_mock_has_the_calls_of_the_agent() -> None:
    for name, real in inspect.getmembers(MemoryAgent, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.signature(getattr(MockMemoryAgent, name)) == inspect.signature(real), name


async def test_a_person_writes_changes_and_forgets_facts(agent: MemoryAgent) -> None:
    made = await agent.put_fact("diet", value="vegan", tags=["food"], metadata={"project": "apollo"})
    assert (made["source"], made["scope"]) == ("manual", "user")
    here = await agent.put_fact("task", value="taxes", scope="thread")
    assert here["thread_id"] == "t1"
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
    with pytest.raises(FactConflict):
        await agent.approve_fact(made["id"])
    with pytest.raises(FactConflict):
        await agent.reject_fact(made["id"])
    await agent.forget_fact(made["id"])
    assert (await agent.list_facts())["facts"] == {"task": "taxes"}
    with pytest.raises(NotFound):
        await agent.patch_fact("never", value="x")
    with pytest.raises(InvalidRequest):
        await agent.put_fact("No Key", value="x")


async def test_a_person_undoes_a_turn_and_has_it_learned_again(agent: MemoryAgent) -> None:
    turn = await agent.update_facts_and_embeddings("My name is Ada.", "Hi.", "turn-1")
    undone = await agent.undo("turn-1")
    assert [(change["decision"], change["before"]) for change in undone["undone"]] == [("delete", "Ada")]
    assert await agent.get_user_facts() == {}
    rehearsed = await agent.learn("turn-1", dry_run=True)
    assert [change["after"] for change in rehearsed["changes"]] == ["Ada"]
    assert await agent.get_user_facts() == {}
    applied = await agent.apply_learning("turn-1", preview_id=rehearsed["preview_id"])
    assert applied["update"]["changes"][-1:] == rehearsed["changes"]
    assert await agent.get_user_facts() == {"name": "Ada"}
    assert (await agent.learn("turn-1"))["update"]["status"] == "done"
    assert await agent.get_user_facts() == {"name": "Ada"}
    assert turn["turn_id"] == "turn-1"
    with pytest.raises(NotFound):
        await agent.undo("never")
    fact = (await agent.list_facts())["items"][0]
    await agent.patch_fact(fact["id"], value="Bob")
    with pytest.raises(FactsChanged):
        await agent.undo("turn-1")
    assert (await agent.undo("turn-1", force=True))["left"][0]["key"] == "name"


async def test_a_text_teaches_without_a_turn(agent: MemoryAgent) -> None:
    learned = await agent.add_text("My name is Ada. I live in Oslo.")
    assert (learned["model"], learned["refused"]) == ("offline", [])
    assert [(change["decision"], change["after"]) for change in learned["changes"]] == [("add", "Ada"), ("add", "Oslo")]
    assert await agent.get_user_facts() == {"name": "Ada", "location": "Oslo"}
    assert await agent.fetch_short_term() == []
    assert [change["decision"] for change in (await agent.add_text("I live in Oslo.", scope="thread"))["changes"]] == [
        "keep"
    ]
    with pytest.raises(InvalidRequest):
        await agent.add_text("")


async def test_a_chat_remembers_and_is_a_turn_like_any(agent: MemoryAgent) -> None:
    first = await agent.chat("Hi, I'm Ada and I work as a pilot.", turn_id="one")
    assert (first["turn_id"], first["model"], first["memory"]["update"]["status"]) == ("one", "offline", "done")
    assert "Ada" in first["reply"]
    asked = await agent.chat("What is my job?")
    assert asked["reply"] == "You work as a pilot."
    assert (asked["memory"]["window"], asked["memory"]["facts"]["occupation"]) == (1, "pilot")
    assert asked["memory"]["degraded"] == []
    again = await agent.chat("Hi, I'm Ada and I work as a pilot.", turn_id="one")
    assert again["reply"] == first["reply"]
    with pytest.raises(TurnConflict):
        await agent.chat("Something else", turn_id="one")
    with pytest.raises(InvalidRequest):
        await agent.chat("")
    assert len(await agent.fetch_short_term()) == 4


async def test_messages_are_stored_one_by_one(agent: MemoryAgent) -> None:
    with pytest.raises(InvalidRequest):
        await agent.store_message("assistant", "Nobody asked.")
    with pytest.raises(InvalidRequest):
        await agent.store_message("system", "Be nice.")  # type: ignore[arg-type]
    asked = await agent.store_message("user", "I live in Oslo.", turn_id="one", metadata={"client": "web"})
    assert (asked["turn_id"], asked["role"], asked["metadata"]) == ("one", "user", {"client": "web"})
    assert (await agent.stats())["messages"] == 1
    assert await agent.fetch_short_term() == []
    answered = await agent.store_message("assistant", "Noted.", name="Bot")
    assert (answered["turn_id"], answered["role"], answered["name"]) == ("one", "assistant", "Bot")
    assert [item["content"] for item in await agent.fetch_short_term()] == ["I live in Oslo.", "Noted."]
    with pytest.raises(InvalidRequest):
        await agent.store_message("assistant", "Noted again.")
    await agent.learn("one")
    assert await agent.get_user_facts() == {"location": "Oslo"}


async def test_a_thread_is_counted_and_cleared(agent: MemoryAgent, cfg: MemoryConfig) -> None:
    await agent.chat("My name is Ada.")
    async with MemoryAgent("ada", "t2", cfg) as other:
        await other.chat("I live in Oslo.")
        assert (await agent.stats())["turns"] == 2
        assert (await agent.stats(scope="thread"))["turns"] == 1
        assert (await agent.clear())["conversations"] == 2
        assert (await agent.stats(scope="thread"))["messages"] == 0
        assert await agent.fetch_short_term() == []
        assert await agent.get_user_facts() == {"name": "Ada", "location": "Oslo"}
        assert len(await other.fetch_short_term()) == 2


def test_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    readme = (PROJECT / "memory" / "README.md").read_text(encoding="utf-8")
    code, printed = (re.findall(rf"```{kind}\n(.*?)```", readme, re.DOTALL)[0] for kind in ("python", "text"))
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.stdout == printed, ran.stderr
