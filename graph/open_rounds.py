"""Results of the agent's own tools beside calls of a client's tools, kept until the client sends its results.

The client sees its own calls alone; the agent's calls and results belong in front of the client's. They are kept in
memory for OPEN_SECONDS and never stored. Where they are gone (a restart, another process), the model answers without
them, and the conversation is still complete. An erasure drops them when it blocks the user's writers.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from time import monotonic

from recollect.graph.state import Json
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope

OPEN_SECONDS = 600.0
MOST_OPEN = 500

_Key = tuple[Scope, frozenset[str]]


@frozen
class _Round:
    """One kept round; `messages` end with the call of the client's tools and the results of the agent's own."""

    messages: tuple[Json, ...]
    proposals: tuple[Json, ...]
    kept_at: float


class OpenRounds:
    """Rounds of all users that wait for a client's results; dropped after OPEN_SECONDS, or the oldest when too many."""

    def __init__(self) -> None:
        self._rounds: OrderedDict[_Key, _Round] = OrderedDict()

    def keep(self, scope: Scope, call_ids: frozenset[str], messages: Sequence[Json], proposals: Sequence[Json]) -> None:
        """Keep `messages` and `proposals` for the client's results of the calls with these ids."""
        asyncio.get_running_loop().call_later(OPEN_SECONDS, self._drop_old)
        self._rounds[scope, call_ids] = _Round(tuple(messages), tuple(proposals), monotonic())
        self._rounds.move_to_end((scope, call_ids))
        if len(self._rounds) > MOST_OPEN:
            self._rounds.popitem(last=False)

    def restored(self, scope: Scope, rounds: Sequence[Json]) -> tuple[list[Json], list[Json]]:
        """Return the client's rounds with the kept ones in front of their results, and the agent's kept proposals."""
        messages, proposals = list[Json](), list[Json]()
        for message in rounds:
            calls = message.get("tool_calls")
            kept = self._rounds.get((scope, frozenset(call["id"] for call in calls))) if calls else None
            messages += kept.messages if kept else (message,)
            # A later round's messages include all since the user's message.
            proposals += [one for one in kept.proposals if one not in proposals] if kept else ()
        return messages, proposals

    def count(self, user_id: str) -> int:
        """Count the user's kept rounds."""
        return sum(scope.user_id == user_id for scope, _ in self._rounds)

    def forget(self, scope: Scope) -> None:
        """Drop the user's rounds, or the thread's where `scope` names one."""
        for kept, ids in list(self._rounds):
            if kept.user_id == scope.user_id and scope.thread_id in (None, kept.thread_id):
                del self._rounds[kept, ids]

    def _drop_old(self) -> None:
        newest_to_go = monotonic() - OPEN_SECONDS
        while self._rounds and next(iter(self._rounds.values())).kept_at <= newest_to_go:
            self._rounds.popitem(last=False)
