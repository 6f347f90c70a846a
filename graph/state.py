"""The graph's state: plain JSON values only. Each node writes all of its keys on every run.

With a checkpointer (Studio brings one) a key that is not written would show the last turn's value.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

Json = dict[str, Any]


def merge_degraded(named: list[str], reports: list[str] | dict[str, bool]) -> list[str]:
    """Return the nodes that failed in this turn.

    A node reports `{its name: whether it failed}`, which also takes an old name out.
    """
    if isinstance(reports, list):
        return reports
    kept = [name for name in named if name not in reports]
    return sorted(kept + [name for name, failed in reports.items() if failed])


class TurnInput(TypedDict):
    """What a turn is given. `turn_id` is generated where it is missing; `memory` holds the request's memory options."""

    user_id: str
    thread_id: str
    message: str
    turn_id: NotRequired[str]
    metadata: NotRequired[Json]
    memory: NotRequired[Json]


class State(TurnInput):
    """A turn on its way through the graph.

    `committed` is the id of the last turn that was saved, `accepted` the message as `load_window` stored it (None where
    it was stored before the run began), `started` a `perf_counter` reading. `window` holds messages, oldest first, and
    begins at position `window_from`; `hits` are HITs, `trace` says how they came to be, `left_out` what the search left
    out, `filtered` what the answer says of its filter; `notes` are the statements of pinned notes, of which the first
    `own_notes` are the thread's, `fact_ids` the ids of `facts`, then of `notes`; `block` records what the memory block
    held; `thread` says how far the thread's summary and archive reach. `tools` are the tools offered in this round
    (OpenAI's form), `tool_calls` those called (`{"id", "name", "args"}`), `tool_results` what they answered (`{"id",
    "name", "content"}`), `tool_uses` all calls so far as the turn keeps them, `exchange` the rounds so far as chat
    messages, `proposals` the arguments of `remember_fact`; `found_others`: a search of the agent's own found what
    neither it nor the user said.

    `choice` is what the caller has chosen for the agent's model: `{"model", "instructions", "parameters"}`, each None
    (parameters: empty) where it has not.

    Where a chat client asks, the window is its own history with what is stored in between: messages in OpenAI's form,
    system messages and calls of tools among them. `client_tools` are the names of its tools among `tools`, `brought` is
    how many messages of `exchange` it brought, and of a `stateless` turn nothing is stored.
    """

    committed: str
    accepted: Json | None
    started: float
    window: list[Json]
    window_from: int
    hits: list[Json]
    trace: list[Json]
    left_out: Json | None
    filtered: Json
    facts: dict[str, str]
    notes: list[str]
    fact_ids: list[str]
    own_notes: int
    block: Json | None
    summary: str | None
    thread: Json | None
    degraded: Annotated[list[str], merge_degraded]
    choice: Json
    tools: list[Json]
    rounds: int
    tool_calls: list[Json]
    tool_results: list[Json]
    tool_uses: list[Json]
    exchange: list[Json]
    proposals: list[Json]
    found_others: bool
    client_tools: list[str]
    brought: int
    stateless: bool
    reply: str | None
    finish_reason: str
    model: str
    usage: dict[str, int]
    timings_ms: dict[str, float]
    update: Json


MERGED: Mapping[str, Callable[[Any, Any], Any]] = {"degraded": merge_degraded}
"""The keys to which several nodes write in one step, and what merges a report with the value before it."""
