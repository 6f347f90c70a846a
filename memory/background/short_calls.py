"""Says whether short calls that block may run on the event loop: only in a process that is the service's alone.

Elsewhere the loop is its owner's, who may forbid them: LangGraph's Studio makes an error of each.
"""

from dataclasses import dataclass


@dataclass(slots=True)
class ShortCalls:
    """Holds, for this process, whether they run `on_loop`; else they run in threads."""

    on_loop: bool = False


SHORT_CALLS = ShortCalls()
