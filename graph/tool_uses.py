"""Collects the tools that an agent uses in a turn, and shows their calls and answers to the turn's listener."""

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

from recollect.graph.context import Listener
from recollect.graph.state import Json
from recollect.memory.values.tool_use import MOST_USES, call_of, result_of, use_of

UNANSWERED = "The agent went on without its answer."


class ToolUses:
    """The uses of one turn. `earlier` are those of its earlier rounds; beyond MOST_USES nothing is shown or kept."""

    def __init__(self, earlier: Sequence[Json], listener: Listener) -> None:
        self._ended = [*earlier]
        self._listener = listener
        self._open: dict[str, tuple[Json, float]] = {}

    def begin(self, call_id: str, name: str, args: Mapping[str, Any]) -> None:
        """Take a call; one whose id is open already is the same call."""
        if call_id in self._open or len(self._ended) + len(self._open) >= MOST_USES:
            return
        call = call_of(call_id, name, args)
        self._open[call_id] = call, perf_counter()
        self._listener.tool_called(call)

    def end(self, call_id: str, content: str, *, error: str | None = None, found: Sequence[Json] = ()) -> None:
        """Take what the tool answered to an open call."""
        if call_id not in self._open:
            return
        call, begun = self._open.pop(call_id)
        ms = round((perf_counter() - begun) * 1000, 3)
        self._ended.append(use_of(call, content, ms=ms, error=error, found=found))
        self._listener.tool_answered(result_of(call, content))

    def is_open(self, call_id: str) -> bool:
        """Tell whether the call waits for its answer."""
        return call_id in self._open

    def kept(self) -> list[Json]:
        """Return the uses as the turn keeps them; calls without an answer say so."""
        return [*self._ended, *(use_of(call, "", error=UNANSWERED) for call, _ in self._open.values())]
