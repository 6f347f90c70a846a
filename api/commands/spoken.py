"""An answer as it comes: printed token by token, then what it rested on."""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from api.answers import TurnAnswer
from api.commands.client import Event, parsed
from api.commands.plain_text import safe, safe_line


def speak(console: Console, events: Iterable[Event], *, tells_more: bool) -> None:
    """Print the answer of a turn; `tells_more`: behind it a line on what was recalled, and by which model.

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
    """What is left to print of the reply, which is what counts, when so much of it was shown."""
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
