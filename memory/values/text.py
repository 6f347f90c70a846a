"""The rules of a text that every store can hold, and the cutting of one that is too long."""

from recollect.memory.values.errors import InvalidRequest, Problem

MOST_REPLY_CHARACTERS = 1_000_000
"""The default of MAX_REPLY_CHARACTERS."""
MOST_MESSAGE_CHARACTERS = 200_000
"""The default of MAX_MESSAGE_CHARACTERS."""
CUT = " […]"
"""Marks where the rest of a text was cut off."""


def text_problem(text: str) -> str | None:
    """Return why no store can hold the text (it has NUL or a lone surrogate), or None."""
    if "\x00" in text:
        return "must not contain NUL"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "must not contain lone surrogates"
    return None


def check_text(text: str, *, field: str) -> None:
    """Check that every store can hold `text`.

    Raises:
        InvalidRequest: none can; the error names `field`.
    """
    _refuse(field, text_problem(text))


def message_problem(text: str, *, most: int) -> str | None:
    """Return why the text is no message of 1 to `most` characters, or None."""
    return text_problem(text) if 1 <= len(text) <= most else f"must have 1 to {most:,} characters"


def check_message(text: str, *, most: int = MOST_MESSAGE_CHARACTERS, field: str = "message") -> None:
    """Check that a user's message has 1 to `most` characters (MAX_MESSAGE_CHARACTERS), and every store can hold it.

    Raises:
        InvalidRequest: it has not; the error names `field`.
    """
    _refuse(field, message_problem(text, most=most))


def cut(text: str, characters: int) -> str:
    """Return `text` if it has at most `characters`; else its beginning and CUT, `characters` long in all."""
    return text if len(text) <= characters else text[: max(0, characters - len(CUT))] + CUT


def _refuse(field: str, problem: str | None) -> None:
    if problem is not None:
        raise InvalidRequest(f"The request is not valid: see {field}.", problems=[Problem(field, problem)])
