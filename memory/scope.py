"""Whose memory a call may touch: every store call carries one of these, and there is no default."""

import re
from dataclasses import dataclass

from memory.errors import InvalidRequest, Problem

ID_PATTERN = r"[A-Za-z0-9._:@-]{1,128}"
_ID = re.compile(ID_PATTERN)
GLOBAL_USER = "*"
"""Whose the global facts are. No id that a caller may give reads like it."""


def check_id(field: str, value: str) -> str:
    """The id itself, or InvalidRequest naming `field`. 1-128 characters of [A-Za-z0-9._:@-], not "." or ".."."""
    if _ID.fullmatch(value) and value not in {".", ".."}:
        return value
    raise InvalidRequest(
        f"{field} is not a valid id.",
        problems=[Problem(field, "must be 1-128 characters of [A-Za-z0-9._:@-] and not '.' or '..'")],
    )


@dataclass(frozen=True, slots=True)
class Scope:
    """A user, and one of their threads where `thread_id` is set; without it, all of the user's threads."""

    user_id: str
    thread_id: str | None = None

    def __post_init__(self) -> None:
        if self.user_id != GLOBAL_USER:
            check_id("user_id", self.user_id)
        if self.thread_id is not None:
            check_id("thread_id", self.thread_id)

    @property
    def thread(self) -> str:
        """The thread's id, where the caller needs one.

        Raises:
            InvalidRequest: the scope names no thread.
        """
        if self.thread_id is None:
            raise InvalidRequest("thread_id is needed.", problems=[Problem("thread_id", "is missing")])
        return self.thread_id
