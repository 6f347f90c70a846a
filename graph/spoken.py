"""Shows an agent's words to the turn's listener as they come, within MAX_REPLY_CHARACTERS."""

from recollect.graph.context import Listener
from recollect.graph.turn_result import SAID_SEPARATOR
from recollect.memory.values.errors import ModelUnavailable


class Spoken:
    """The words of one round. `goes_on` tells that an earlier round has said something already."""

    def __init__(self, listener: Listener, *, most: int, goes_on: bool) -> None:
        self._listener = listener
        self._most = most
        self._goes_on = goes_on
        self._pieces: list[str] = []
        self._characters = 0

    @property
    def text(self) -> str:
        """Return what this round has said so far."""
        return "".join(self._pieces)

    def say(self, piece: str) -> None:
        """Take a piece; lone surrogates become "?", because no answer can carry them.

        Raises:
            ModelUnavailable: the words are more than MAX_REPLY_CHARACTERS.
        """
        if not piece:
            return
        self._characters += len(piece)
        check_length(self._characters, self._most)
        if self._goes_on:
            self._goes_on = False
            self._show(SAID_SEPARATOR)
        self._show(piece.encode("utf-8", "replace").decode())
        self._pieces.append(piece)

    def begin_message(self) -> None:
        """Set what comes next apart from what was said."""
        self._goes_on = self._goes_on or bool(self._pieces)

    def _show(self, piece: str) -> None:
        if self._listener.wants_tokens:
            self._listener.token(piece)


def check_length(characters: int, most: int) -> None:
    """Raise ModelUnavailable where a reply has more than `most` characters (MAX_REPLY_CHARACTERS)."""
    if characters > most:
        raise ModelUnavailable("The reply is longer than MAX_REPLY_CHARACTERS; ask for a shorter one.", outage=False)
