"""What a text must be so that every store can hold it."""

from memory.errors import InvalidRequest, Problem

MOST_MESSAGE_CHARACTERS = 32_000


def text_problem(text: str) -> str | None:
    """Why no store can hold the text, or None: NUL and lone surrogates are refused."""
    if "\x00" in text:
        return "must not contain NUL"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "must not contain lone surrogates"
    return None


def check_text(text: str, *, field: str) -> None:
    """Refuse what no store can hold.

    Raises:
        InvalidRequest: names `field`.
    """
    _refuse(field, text_problem(text))


def check_message(text: str, *, field: str = "message") -> None:
    """A user's message has 1-32,000 characters, and every store can hold it.

    Raises:
        InvalidRequest: names `field`.
    """
    fits = 1 <= len(text) <= MOST_MESSAGE_CHARACTERS
    _refuse(field, text_problem(text) if fits else f"must have 1 to {MOST_MESSAGE_CHARACTERS:,} characters")


def _refuse(field: str, problem: str | None) -> None:
    if problem is not None:
        raise InvalidRequest(f"The request is not valid: see {field}.", problems=[Problem(field, problem)])
