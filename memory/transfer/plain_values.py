"""Converts frozen values to plain JSON and back, field by field by their annotations.

Reading is strict, because the JSON comes from elsewhere: other types, numbers that no store holds, missing fields and
(unless the caller allows them) unknown fields are refused with the path of the field.
"""

import functools
import math
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from recollect.memory.values.times import iso

Kind = TypeVar("Kind")
MOST_NUMBER = 2**53
"""Largest whole number that every JSON reader and every store keeps exactly."""


class Unfit(Exception):
    """A value is not what its field takes; the message is the beginning of a sentence, with the field's path."""


def to_plain(value: object, *, sparse: bool = False) -> Any:
    """Return `value` as plain JSON; times in ISO 8601, UTC. `sparse` leaves out fields that have their defaults."""
    if isinstance(value, datetime):
        return iso(value) if value.microsecond % 1000 == 0 else _exact(value)
    if is_dataclass(value) and not isinstance(value, type):
        named = [(item, getattr(value, item.name)) for item in fields(value)]
        kept = [(item.name, one) for item, one in named if not (sparse and one == _default(item))]
        return {name: to_plain(one, sparse=sparse) for name, one in kept}
    if isinstance(value, Mapping):
        return {str(key): to_plain(one, sparse=sparse) for key, one in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [to_plain(one, sparse=sparse) for one in cast("Sequence[object]", value)]
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)  # drivers have kinds of their own
    return value


def from_plain(kind: type[Kind], said: object, *, path: str = "", is_open: bool = False) -> Kind:
    """Return the `kind` (a frozen dataclass) that the JSON `said` stands for. `is_open` ignores unknown fields.

    Raises:
        Unfit: the JSON is no such value; the error names the field behind `path`.
    """
    if not isinstance(said, Mapping):
        raise Unfit(f"{path or 'the line'} must be an object")
    given = cast("Mapping[str, object]", said)
    known = _fields(kind)
    beginning = f"{path}." if path else ""
    unknown = None if is_open else next((name for name in given if name not in known), None)
    if unknown is not None:
        raise Unfit(f"{beginning}{_shown(unknown)} is not a known field")
    values: dict[str, Any] = {}
    for name, (annotation, is_needed) in known.items():
        if name in given:
            values[name] = _value(annotation, given[name], f"{beginning}{name}", is_open)
        elif is_needed:
            raise Unfit(f"{beginning}{name} is missing")
    return kind(**values)


def _value(annotation: Any, said: object, path: str, is_open: bool) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return said
    if origin in (Union, types.UnionType):
        # The classes have no other unions than one type or None.
        (only,) = (one for one in arguments if one is not type(None))
        return None if said is None else _value(only, said, path, is_open)
    if origin is Literal:
        if not isinstance(said, str) or said not in arguments:
            raise Unfit(f"{path} must be one of {', '.join(arguments)}")
        return said
    if origin is tuple:
        return _several(arguments[0], said, path, is_open)
    if origin is not None:
        return _mapping(arguments, said, path, is_open)
    if is_dataclass(annotation):
        return from_plain(cast("type[object]", annotation), said, path=path, is_open=is_open)
    return _PLAIN[annotation](said, path)


def _several(annotation: Any, said: object, path: str, is_open: bool) -> tuple[Any, ...]:
    if not isinstance(said, list | tuple):
        raise Unfit(f"{path} must be a list")
    items = enumerate(cast("Sequence[object]", said))
    return tuple(_value(annotation, one, f"{path}[{number}]", is_open) for number, one in items)


def _mapping(annotations: tuple[Any, ...], said: object, path: str, is_open: bool) -> dict[Any, Any]:
    if not isinstance(said, Mapping):
        raise Unfit(f"{path} must be an object")
    of_key, of_value = annotations
    return {
        _value(of_key, key, f"a key of {path}", is_open): _value(of_value, one, f"{path}.{_shown(str(key))}", is_open)
        for key, one in cast("Mapping[object, object]", said).items()
    }


def _text(said: object, path: str) -> str:
    if not isinstance(said, str):
        raise Unfit(f"{path} must be a text")
    return said


def _truth(said: object, path: str) -> bool:
    if not isinstance(said, bool):
        raise Unfit(f"{path} must be true or false")
    return said


def _whole(said: object, path: str) -> int:
    if isinstance(said, bool) or not isinstance(said, int) or abs(said) > MOST_NUMBER:
        raise Unfit(f"{path} must be a whole number")
    return said


def _number(said: object, path: str) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float) or not math.isfinite(said):
        raise Unfit(f"{path} must be a number")
    return said if abs(said) <= MOST_NUMBER else float(said)


def _time(said: object, path: str) -> datetime:
    if isinstance(said, str):
        try:
            time = datetime.fromisoformat(said)
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise Unfit(f"{path} must be a time such as 2026-01-31T09:30:00Z")


_PLAIN: Mapping[Any, Callable[[object, str], Any]] = {
    str: _text,
    bool: _truth,
    int: _whole,
    float: _number,
    datetime: _time,
}


@functools.cache
def _fields(kind: type[Any]) -> dict[str, tuple[Any, bool]]:
    """Return each field's annotation, and whether the field is required."""
    hints = get_type_hints(kind)
    return {
        item.name: (hints[item.name], item.default is MISSING and item.default_factory is MISSING)
        for item in fields(kind)
        if item.init
    }


def _default(item: "Field[Any]") -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default


def _exact(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _shown(name: str) -> str:
    """Return a field's name for a sentence: printable, cut, and quoted unless it is an identifier."""
    cut = "".join(char if char.isprintable() else "?" for char in name[:40])
    return f'"{cut}"' if not cut.isidentifier() else cut
