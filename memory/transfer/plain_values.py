"""Converts frozen dataclasses to plain JSON and back, as pydantic understands their annotations.

Reading is strict, because the JSON comes from elsewhere: other types, numbers that no store holds, missing fields and
(unless the caller allows them) unknown fields are refused with the path of the field.
"""

import functools
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter
from pydantic_core import (
    ErrorDetails,
    PydanticCustomError,
    SchemaSerializer,
    SchemaValidator,
    ValidationError,
    core_schema,
)

from recollect.memory.values.times import iso

Kind = TypeVar("Kind")
MOST_NUMBER = 2**53
"""Largest whole number that every JSON reader and every store keeps exactly."""
MOST_ERRORS = 1_000
_OWN_ERROR = "unfit"


class Unfit(Exception):
    """A value is not what its field takes; the message is the beginning of a sentence, with the field's path."""


def to_plain(value: object, *, sparse: bool = False) -> Any:
    """Return the dataclass `value` as plain JSON; times in ISO 8601, UTC. `sparse` leaves out fields with defaults."""
    return _writer(type(value)).to_python(value, mode="json", exclude_defaults=sparse, warnings=False)


def from_plain(kind: type[Kind], said: object, *, path: str = "", is_open: bool = False) -> Kind:
    """Return the `kind` (a frozen dataclass) that the JSON `said` stands for. `is_open` ignores unknown fields.

    Raises:
        Unfit: the JSON is no such value; the error names the field behind `path`.
    """
    try:
        return _reader(kind).validate_python(said, extra="ignore" if is_open else "forbid")
    except ValidationError as error:
        raise Unfit(_sentence(error, path)) from None


def _time(said: object) -> datetime:
    if isinstance(said, str):
        try:
            time = datetime.fromisoformat(said)
            return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise PydanticCustomError(_OWN_ERROR, "must be a time such as 2026-01-31T09:30:00Z")


def _shown_time(time: datetime) -> str:
    if time.microsecond % 1000 == 0:
        return iso(time)
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _or_else(schema: core_schema.CoreSchema, problem: str) -> core_schema.CoreSchema:
    return core_schema.custom_error_schema(schema, _OWN_ERROR, custom_error_message=problem)


_OWN_SCHEMAS: Mapping[str, core_schema.CoreSchema] = {
    "str": _or_else(core_schema.str_schema(strict=True), "must be a text"),
    "bool": _or_else(core_schema.bool_schema(strict=True), "must be true or false"),
    "int": _or_else(core_schema.int_schema(strict=True, ge=-MOST_NUMBER, le=MOST_NUMBER), "must be a whole number"),
    "float": _or_else(core_schema.float_schema(strict=True, allow_inf_nan=False), "must be a number"),
    "datetime": core_schema.no_info_plain_validator_function(
        _time, serialization=core_schema.plain_serializer_function_ser_schema(_shown_time)
    ),
}
"""Takes the place of pydantic's own schema of a type, by the schema's name."""


@functools.cache
def _reader(kind: type[Any]) -> SchemaValidator:
    return SchemaValidator(_schema(kind))


@functools.cache
def _writer(kind: type[Any]) -> SchemaSerializer:
    return SchemaSerializer(_schema(kind))


def _schema(kind: type[Any]) -> core_schema.CoreSchema:
    # The classes are the domain's and are read leniently elsewhere, so their annotations cannot say what JSON takes.
    return cast("core_schema.CoreSchema", _with_own(TypeAdapter(kind).core_schema))


def _with_own(schema: object) -> object:
    """Return the part of a core schema with our own schemas inside."""
    if isinstance(schema, list):
        return [_with_own(part) for part in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast("dict[str, object]", schema)
    own = _OWN_SCHEMAS.get(str(given.get("type")))
    return own or {name: _with_own(part) for name, part in given.items()}


def _sentence(error: ValidationError, path: str) -> str:
    """Return the beginning of a sentence on the first error, unknown fields before others."""
    if error.error_count() > MOST_ERRORS:  # A line of megabytes may be wrong in every part, and each takes a kilobyte.
        return f"{path or 'the line'} is wrong in more than {MOST_ERRORS:,} places"
    errors = error.errors(include_url=False, include_input=False)
    first = min(errors, key=lambda one: one["type"] != "unexpected_keyword_argument")
    if first["type"] == "literal_error" and first["loc"][-1:] == ("[key]",):
        return f"a key of {_path(path, first['loc'][:-2])} {_problem(first)}"
    return f"{_path(path, first['loc']) or 'the line'} {_problem(first)}"


def _problem(error: ErrorDetails) -> str:
    match error["type"]:
        case "missing":
            return "is missing"
        case "unexpected_keyword_argument":
            return "is not a known field"
        case "literal_error":
            return f"must be one of {error['ctx']['expected']}".replace("'", "").replace(" or ", ", ")  # type: ignore
        case "tuple_type":
            return "must be a list"
        case "dataclass_type" | "dict_type" | "mapping_type":
            return "must be an object"
        case "string_unicode":  # pydantic's own, also for names of fields
            return "must be a text"
        case _:
            return error["msg"]


def _path(path: str, place: Sequence[int | str]) -> str:
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f"{'.' if path else ''}{_shown(part)}"
    return path


def _shown(name: str) -> str:
    """Return a field's name for a sentence: printable, cut, and quoted unless it is an identifier."""
    cut = "".join(char if char.isprintable() else "?" for char in name[:40])
    return f'"{cut}"' if not cut.isidentifier() else cut
