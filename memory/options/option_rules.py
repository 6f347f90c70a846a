"""Rules of options that an application or a request gives: each returns what is wrong with a value, or None."""

from collections.abc import Callable
from typing import Any

from recollect.memory.values.text import message_problem

Rule = Callable[[Any], str | None]


def flag(value: Any) -> str | None:
    """Take true and false."""
    return None if isinstance(value, bool) else "must be true or false"


def whole(least: int, most: int) -> Rule:
    """Take whole numbers from `least` to `most`."""

    def rule(value: Any) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return None if fits else f"must be a whole number from {least} to {most}"

    return rule


def between(least: float, most: float) -> Rule:
    """Take numbers from `least` to `most`."""

    def rule(value: Any) -> str | None:
        fits = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        return None if fits else f"must be a number from {least:g} to {most:g}"

    return rule


def one_of(*names: str) -> Rule:
    """Take one of the names."""
    return lambda value: None if value in names else f"must be one of {', '.join(names)}"


def text(most: int) -> Rule:
    """Take texts of 1 to `most` characters that every store can hold."""
    return lambda value: message_problem(value, most=most) if isinstance(value, str) else "must be a text"
