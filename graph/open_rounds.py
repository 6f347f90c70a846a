"""What the agent's own tools did beside calls of a client's tools, kept until the client brings their results.

The client is told of its own calls alone; what came before and beside them belongs in front of their results. It is
kept in memory, for a while: nothing of such a round is stored. Where it is gone (a restart, another process), the model
answers without it, and the conversation is still complete. No data holder: an erasure drops it as it raises its fence.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from graph.state import Json
from memory.scope import Scope

OPEN_SECONDS = 600.0
MOST_OPEN = 500

_Key = tuple[Scope, frozenset[str]]


@dataclass(frozen=True, slots=True)
class _Round:
    """`messages` end with the call of the client's tools and the results of the agent's own."""

    messages: tuple[Json, ...]
    proposals: tuple[Json, ...]
    kept_at: float


class OpenRounds:
    """Rounds that wait for a client, of all users; the oldest go when there are too many, or after OPEN_SECONDS."""

    def __init__(self) -> None:
        self._rounds: OrderedDict[_Key, _Round] = OrderedDict()

    def keep(self, scope: Scope, call_ids: frozenset[str], messages: Sequence[Json], proposals: Sequence[Json]) -> None:
        """Keep what belongs to the client's calls with these ids."""
        asyncio.get_running_loop().call_later(OPEN_SECONDS, self._drop_old)
        self._rounds[scope, call_ids] = _Round(tuple(messages), tuple(proposals), monotonic())
        self._rounds.move_to_end((scope, call_ids))
        if len(self._rounds) > MOST_OPEN:
            self._rounds.popitem(last=False)

    def restored(self, scope: Scope, rounds: Sequence[Json]) -> tuple[list[Json], list[Json]]:
        """The client's rounds with what was kept of them, and what the agent proposed meanwhile to remember."""
        messages, proposals = list[Json](), list[Json]()
        for message in rounds:
            calls = message.get("tool_calls")
            kept = self._rounds.get((scope, frozenset(call["id"] for call in calls))) if calls else None
            messages += kept.messages if kept else (message,)
            # A later round's are all since the user's message.
            proposals += [one for one in kept.proposals if one not in proposals] if kept else ()
        return messages, proposals

    def count(self, user_id: str) -> int:
        """How many rounds of the user are kept."""
        return sum(scope.user_id == user_id for scope, _ in self._rounds)

    def forget(self, scope: Scope) -> None:
        """Drop what is kept of the user, or of the thread where the scope names one."""
        for kept, ids in list(self._rounds):
            if kept.user_id == scope.user_id and scope.thread_id in (None, kept.thread_id):
                del self._rounds[kept, ids]

    def _drop_old(self) -> None:
        newest_to_go = monotonic() - OPEN_SECONDS
        while self._rounds and next(iter(self._rounds.values())).kept_at <= newest_to_go:
            self._rounds.popitem(last=False)
