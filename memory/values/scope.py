"""The scope of a call: the user, and maybe the thread, whose memory it may touch. Every call names one."""

import re
from uuid import UUID

from recollect.memory.values.errors import InvalidRequest, Problem
from recollect.memory.values.frozen import frozen

ID_PATTERN = r"[A-Za-z0-9._:@+|~=-]{1,128}"
ID_RULE = "1-128 characters of [A-Za-z0-9._:@+|~=-]"
_ID = re.compile(ID_PATTERN)
GLOBAL_USER = "*"
"""The user of global facts and documents. It is no valid id, so that no caller can name it."""


def is_uuid(text: object) -> bool:
    """Tell whether `text` is a UUID in the form that stores keep."""
    try:
        return isinstance(text, str) and str(UUID(text)) == text
    except ValueError:
        return False


def is_id(text: object) -> bool:
    """Tell whether `text` fits `ID_RULE` and is neither "." nor ".."."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None and text not in {".", ".."}


def check_id(field: str, value: str) -> str:
    """Return `value` if it fits `ID_RULE` and is neither "." nor "..".

    Raises:
        InvalidRequest: it does not; the error names `field`.
    """
    if is_id(value):
        return value
    raise InvalidRequest(
        f"{field} is not a valid id.",
        problems=[Problem(field, f"must be {ID_RULE} and not '.' or '..'")],
    )


@frozen
class Scope:
    """A user, or one of their threads where `thread_id` is set. Without it, calls concern all of the user's threads."""

    user_id: str
    thread_id: str | None = None

    def __post_init__(self) -> None:
        if self.user_id != GLOBAL_USER:
            check_id("user_id", self.user_id)
        if self.thread_id is not None:
            check_id("thread_id", self.thread_id)

    @classmethod
    def named(cls, user_id: str, thread_id: str) -> "Scope":
        """Return the scope that a program named: unlike the memory's own code it cannot name the user of global facts.

        Raises:
            InvalidRequest: an id does not fit `ID_RULE`.
        """
        return cls(check_id("user_id", user_id), thread_id)

    @property
    def thread(self) -> str:
        """The thread's id, for calls that need one.

        Raises:
            InvalidRequest: the scope names no thread.
        """
        if self.thread_id is None:
            raise InvalidRequest("thread_id is needed.", problems=[Problem("thread_id", "is missing")])
        return self.thread_id
