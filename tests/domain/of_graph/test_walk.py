"""The service's own walk through the graph: what it does is what LangGraph's loop does."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tracers.context import collect_runs

from recollect.graph.context import LiveContext
from recollect.graph.drawing import EARLY
from recollect.graph.resources import open_services
from recollect.graph.state import Json, TurnInput
from recollect.graph.walk import Begun, Runs, walk
from recollect.graph.workflow import graph
from recollect.memory.values.errors import InvalidRequest
from recollect.settings import Settings, is_traced_by_langsmith, load_settings

PROJECT = Path(__file__).parents[3]
Run = Callable[[TurnInput, LiveContext], Awaitable[Any]]
UNLIKE = re.compile(r'"[0-9a-f]{8}-[0-9a-f-]{27}"|"\d{4}-\d\d-\d\dT[^"]*"|\d+\.\d+|walked|looped')
"""Ids, times and scores, which no two runs share, and the two users."""


def settings(tmp_path: Path) -> Settings:
    return load_settings(data_dir=tmp_path / "data", embedding_model="lexical", memory_window=1)


async def scripted(state: Json) -> Json:
    if state["message"].startswith("Look") and not state["tool_results"]:
        named = {"key": "pet", "value": "cat", "statement": "The pet is a cat.", "evidence": "my pet is cat"}
        return {
            "reply": "Let me look.",
            "tool_calls": [
                {"id": "1", "name": "search_memory", "args": {"query": "hiking"}},
                {"id": "2", "name": "remember_fact", "args": named},
            ],
        }
    return {"reply": f"You said: {state['message']}", "usage": {"input_tokens": 3, "output_tokens": 2}}


async def by_langgraph(given: TurnInput, context: LiveContext) -> Any:
    return await graph.ainvoke(given, context=context)  # pyright: ignore[reportUnknownMemberType]  # typed in part


def given(user: str, message: str, **options: Any) -> TurnInput:
    return {"user_id": user, "thread_id": "t1", "message": message, "metadata": {}, "memory": options}


def alike(state: Json) -> str:
    """Return the state as text, without what no two runs share."""
    kept = {name: value for name, value in state.items() if name not in {"turn_id", "committed", "started"}}
    return UNLIKE.sub("0", json.dumps(kept, sort_keys=True))


async def test_a_walk_leaves_the_state_that_langgraph_leaves(tmp_path: Path) -> None:
    async with open_services(settings(tmp_path)) as opened:
        services = replace(opened, agent=scripted, agent_name="scripted")

        async def states(user: str, run: Run) -> list[Any]:
            talk = ("My name is Ada.", "I love hiking.", "I live in Oslo.", "Look it up: my pet is cat.")
            turns = [given(user, message) for message in talk]
            turns.append(given(user, "Just this once.", enabled=False))
            return [await run(turn, LiveContext(services)) for turn in turns]

        walked, looped = await states("walked", walk), await states("looped", by_langgraph)
    assert list(map(alike, walked)) == list(map(alike, looped))
    looked = walked[3]
    assert [use["name"] for use in looked["tool_uses"]] == ["search_memory", "remember_fact"]
    assert looked["reply"] == "Let me look.\n\nYou said: Look it up: my pet is cat."
    assert looked["hits"]
    assert looked["facts"]["name"] == "Ada"
    assert looked["degraded"] == []


@pytest.mark.parametrize("run", [walk, by_langgraph])
async def test_an_error_of_a_fetch_ends_the_run(tmp_path: Path, run: Run) -> None:
    async with open_services(settings(tmp_path)) as services:
        with pytest.raises(InvalidRequest, match="not valid"):
            await run(given("ada", "Hello.", top_k=1_000), LiveContext(services))


async def test_a_run_takes_the_fetches_that_began_before_it(tmp_path: Path) -> None:
    async with open_services(settings(tmp_path)) as services:
        context, turn = LiveContext(services), given("ada", "Hello.")
        begun = Runs(services).begin(turn, context)
        assert set(begun.tasks) == set(EARLY)
        fetched = dict(await begun.tasks["load_facts"])
        found = asyncio.get_running_loop().create_future()
        found.set_result({**fetched, "facts": {"name": "Ada"}})
        state = await walk(turn, context, Begun({**begun.tasks, "load_facts": found}))
        assert state["facts"] == {"name": "Ada"}
        assert state["degraded"] == []
        assert not Runs(replace(services, agent=scripted)).begin(turn, context).tasks  # LangGraph begins its own


async def test_a_run_that_is_watched_is_langgraphs(tmp_path: Path) -> None:
    async with open_services(settings(tmp_path)) as services:
        runs, context = Runs(services), LiveContext(services)
        await runs.run(given("ada", "Nobody watches."), context)
        assert runs.loading is None
        with collect_runs() as collected:
            await runs.run(given("ada", "Somebody watches."), context)
        assert [run.name for run in collected.traced_runs] == ["recollect"]

        for needing in (replace(services, agent=scripted), replace(services, is_traced=True)):
            loading = Runs(needing).loading
            assert loading is not None
            assert await loading is graph


def test_a_service_that_nobody_watches_imports_no_langgraph(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from recollect.graph.resources import open_services
from recollect.graph.running_turn import TurnRequest
from recollect.graph.turns import TurnRunner
from recollect.memory.values.scope import Scope
from recollect.settings import load_settings

async def main():
    async with open_services(load_settings()) as services:
        turns = TurnRunner(services)
        turn = await turns.start(TurnRequest(Scope("ada", "t1"), "My name is Ada.")).outcome()
        await services.memory.learned(turn)
        await turns.drain(5)
    print(bool(turn.reply.content), "langgraph" in sys.modules)

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


@pytest.mark.parametrize(
    ("variables", "traced"),
    [
        ({}, False),
        ({"LANGSMITH_TRACING": "true"}, True),
        ({"LANGCHAIN_TRACING_V2": "true"}, True),
        ({"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING": "true"}, False),
        ({"LANGSMITH_TRACING_V2": "false", "LANGSMITH_TRACING": "true"}, False),
        ({"LANGSMITH_TRACING": " ", "LANGCHAIN_TRACING": "true"}, True),
    ],
)
def test_langsmiths_variables_are_read_as_langsmith_reads_them(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], traced: bool
) -> None:
    monkeypatch.delenv("LANGSMITH_TRACING", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert is_traced_by_langsmith() is traced
