"""Prints an answer token by token as it comes, then a line on what was recalled for it."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from recollect.api.cli.terminal.client import Event, parsed
from recollect.api.cli.terminal.plain_text import safe, safe_line
from recollect.api.schemas.answers import TurnAnswer


def speak(console: Console, events: Iterable[Event], *, tells_more: bool) -> None:
    """Print the answer of a turn; `tells_more` adds a line on the recalled memory, and on the model.

    Raises:
        Refused: the turn failed.
    """
    waiting = console.status("")
    shown = ""
    try:
        waiting.start()
        for event in events:
            if event.name == "token":
                waiting.stop()
                piece = str(event.data.get("text") or "")
                console.print(safe(piece), end="", soft_wrap=True)
                shown += piece
            elif event.name == "tool_call" and not shown:
                waiting.update(safe_line(f"using {event.data.get('name')} …", "dim"))
            elif event.name == "message":
                waiting.stop()
                turn = parsed(TurnAnswer, event.data)
                console.print(safe(_rest(shown, turn.reply or "")), soft_wrap=True)
                if tells_more:
                    console.print(_footer(turn))
    except BaseException:
        if shown:
            console.print()
        raise
    finally:
        waiting.stop()


def _rest(shown: str, reply: str) -> str:
    """Return what is left to print of the final `reply`, of which `shown` was printed."""
    if reply.startswith(shown):
        return reply[len(shown) :]
    return f"\n{reply}"


def _footer(turn: TurnAnswer) -> Text:
    memory = turn.memory
    parts = [
        f"window {memory.window}",
        f"{len(memory.hits)} recalled",
        f"{len(memory.facts)} facts",
        *(f"missing: {name}" for name in memory.degraded),
        f"model {turn.model}",
    ]
    return safe_line(" · ".join(parts), "dim")
