"""Masks what a log must not hold: secrets, and the texts of foreign errors, which may quote a user."""

import re
import traceback
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from recollect.memory.values.errors import RecollectError

MASK = "***"
LEAST_SECRET = 4
"""The shortest secret that is masked: shorter values of settings occur in ordinary words."""
_KEYS = ("sk", "pk", "rk", "gsk", "xai", "hf", "pplx", "nvapi", "csk", "fw", "tgp", "r8", "ghp", "github_pat")
"""The prefixes of providers' keys, and of our own."""
_NAMED = ("key", "token", "secret", "passw", "authorization")


class _Shape(NamedTuple):
    """A pattern of secrets and its replacement. Only texts with one of `hints` (lower-case) are searched."""

    hints: Sequence[str]
    pattern: re.Pattern[str]
    left: str


_SHAPES: Sequence[_Shape] = (
    _Shape(("://",), re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,30}://)[^/\s@?#]+@"), rf"\1{MASK}@"),
    _Shape(("bearer", "basic"), re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{4,}", re.IGNORECASE), rf"\1 {MASK}"),
    _Shape(("eyj",), re.compile(r"\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*"), MASK),
    _Shape(
        [f"{key}{joint}" for key in _KEYS for joint in "-_"],
        re.compile(rf"\b(?:{'|'.join(_KEYS)})[-_][\w-]{{12,}}"),
        MASK,
    ),
    _Shape(("aiza",), re.compile(r"\bAIza[\w-]{20,}"), MASK),
    _Shape(
        _NAMED,
        re.compile(
            r"((?:(?:api|access|private)[_-]?key|token|secret|password|passwd|authorization)[\"']?\s*[=:]\s*[\"']?)"
            r"(?!Bearer|Basic)[^\s\"',;&}]{4,}",
            re.IGNORECASE,
        ),
        rf"\1{MASK}",
    ),
)


class Masking:
    """Masks given secrets in a text, and whatever looks like a key, a token or a URL's password."""

    def __init__(self, secrets: Sequence[str] = ()) -> None:
        told = sorted({secret for secret in secrets if len(secret) >= LEAST_SECRET}, key=len, reverse=True)
        self._told = re.compile("|".join(map(re.escape, told))) if told else None

    def __call__(self, text: str) -> str:
        """Return the text with its secrets masked."""
        if self._told is not None:
            text = self._told.sub(MASK, text)
        lowered = text.lower()
        for hints, pattern, left in _SHAPES:
            if any(hint in lowered for hint in hints):
                text = pattern.sub(left, text)
        return text


def told_error(error: BaseException, *, with_texts: bool) -> str:
    """Return the error's traceback, with its causes first.

    Without `with_texts` only our own errors, which quote nobody, and the operating system's show more than their type.
    """
    return "".join(_told(error, with_texts, set())).rstrip("\n")


def _told(error: BaseException, with_texts: bool, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in seen:
        yield from _told(cause, with_texts, seen)
        yield "which led to:\n"
    # `getattr`, because the type checker cannot tell the type of a group's members.
    inners: Sequence[BaseException] = getattr(error, "exceptions", ()) if _is_group(error) else ()
    for inner in inners:
        if id(inner) not in seen:
            yield from _told(inner, with_texts, seen)
            yield "which is part of:\n"
    if error.__traceback__ is not None:
        yield "Traceback (most recent call last):\n"
        yield from traceback.format_tb(error.__traceback__)
    text = str(error) if with_texts or isinstance(error, RecollectError | OSError) else ""
    yield f"{type(error).__module__}.{type(error).__qualname__}{f': {text}' if text else ''}\n"


def _is_group(error: BaseException) -> bool:
    return isinstance(error, BaseExceptionGroup)
