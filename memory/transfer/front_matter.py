"""Writes and reads Markdown files with YAML front matter: fields above, one text below, both exact in both directions.

Reading trusts nothing: no aliases (a few lines could stand for gigabytes), no tags, bounded depth and length. Of plain
scalars only JSON's numbers, `true`, `false` and `null` are not text. YAML's other forms are traps for a person (`no`,
`12:30`) and for a machine: integers to the base 60 take quadratic time to build.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_FENCE = "---"
_BYTE_ORDER_MARK = "\ufeff"
MOST_DEPTH = 30
MOST_EVENTS = 200_000
"""Most parser events: each value is one or two, and takes some hundred bytes while it is read."""
MOST_CHARACTERS = 4_000_000
MOST_SCALAR_CHARACTERS = 1_500_000
"""Most characters of a text in the front matter: an export's longest is a reply that a turn recalled."""
MOST_NUMBER_CHARACTERS = 30
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][-+]?[0-9]+)?")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_TEXT_TAG, _INTEGER_TAG, _FLOAT_TAG = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float"))
_LONG_TAG = "!long"
"""Tag of whole numbers with more than `MOST_NUMBER_CHARACTERS`, which metadata may hold."""


class NoFrontMatter(ValueError):
    """The file has no front matter that can be read; the message is a sentence."""


class _Plain(_Dumper):  # pyright: ignore[reportUntypedBaseClass] - the C library's where it is there
    """Quotes every text that some reader of YAML could take for something else, JSON's numbers included."""

    def ignore_aliases(self, data: object) -> bool:
        """Return True: repeated values are written out."""
        return True


def _integer(dumper: Any, number: int) -> Any:
    """Return the node of a whole number, tagged where it is long."""
    text = str(number)
    return dumper.represent_scalar(_LONG_TAG if len(text) > MOST_NUMBER_CHARACTERS else _INTEGER_TAG, text)


_Plain.add_representer(int, _integer)
_Plain.add_implicit_resolver(_FLOAT_TAG, re.compile(rf"^(?:{_NUMBER.pattern})$"), list("-0123456789"))


def to_markdown_file(fields: Mapping[str, Any], body: str) -> bytes:
    """Return the file's bytes: front matter, `body`, and a line break at the end."""
    front: str = yaml.dump(  # pyright: ignore[reportUnknownMemberType] - the dumper is the C library's
        dict(fields), Dumper=_Plain, allow_unicode=True, sort_keys=False, width=1 << 30, default_flow_style=False
    )
    return f"{_FENCE}\n{front}{_FENCE}\n{body}\n".encode()


def from_markdown(content: bytes, *, is_foreign: bool = False) -> tuple[dict[str, Any], str]:
    """Return a file's fields and text. Line breaks of the text are kept, but for the one at the file's end.

    Aliases are refused; in the file of another program (`is_foreign`) each reads as None.

    Raises:
        NoFrontMatter: the file has none, it is no mapping of plain values, or the file is not UTF-8.
    """
    try:
        text = content.decode().removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError:
        raise NoFrontMatter("The file is not UTF-8.") from None
    front, body = _split(text)
    return _fields(front, is_foreign=is_foreign), body.removesuffix("\n")


def _split(text: str) -> tuple[str, str]:
    """Return the front matter and the text behind it. The lines with `---` may end as on Windows."""
    first, _, rest = text.partition("\n")
    if first.rstrip() != _FENCE:
        raise NoFrontMatter("The file does not begin with front matter (---).")
    start = len(text) - len(rest)
    place = start
    while place < len(text):
        end = text.find("\n", place)
        line = text[place:] if end < 0 else text[place:end]
        following = len(text) if end < 0 else end + 1
        if line.rstrip() == _FENCE:
            return text[start:place], text[following:]
        place = following
    raise NoFrontMatter("The front matter has no end (---).")


def _fields(front: str, *, is_foreign: bool) -> dict[str, Any]:
    if len(front) > MOST_CHARACTERS:
        raise NoFrontMatter("The front matter is too long.")
    try:
        # Use the library's parser alone: building the values here takes time proportional to the length.
        events = cast("Iterable[object]", cast("Any", yaml).parse(front, Loader=_Loader))
        said = _built(events, _Building(is_foreign))
    except (yaml.YAMLError, RecursionError):
        raise NoFrontMatter("The front matter is no YAML.") from None
    if not isinstance(said, dict):
        raise NoFrontMatter("The front matter is no mapping.")
    return cast("dict[str, Any]", said)


def _built(events: Iterable[object], building: "_Building") -> object:
    """Return the value that the parser's events stand for.

    Raises:
        NoFrontMatter: the value exceeds a limit, or contains something that is no plain value.
    """
    documents = 0
    for number, event in enumerate(events):
        if number > MOST_EVENTS:
            raise NoFrontMatter("The front matter is nested too deeply, or holds too much.")
        if isinstance(event, ScalarEvent):
            building.scalar(event)
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            building.open(event)
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            building.close()
        elif isinstance(event, AliasEvent):
            building.alias()
        elif isinstance(event, DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise NoFrontMatter("The front matter is no YAML.")
    return building.whole


@dataclass
class _Building:
    """Builds nested values from events; `whole` is the outermost value."""

    is_foreign: bool
    whole: object = field(init=False, default=None)
    _open: list[dict[str, Any] | list[Any]] = field(init=False, default_factory=list[dict[str, Any] | list[Any]])
    _keys: list[str | None] = field(init=False, default_factory=list[str | None])

    def scalar(self, event: Any) -> None:
        """Add a plain value; or, where a key comes next, a key, which is always text."""
        text: str = event.value
        if len(text) > MOST_SCALAR_CHARACTERS:
            raise NoFrontMatter(f"The front matter holds a text of more than {MOST_SCALAR_CHARACTERS:,} characters.")
        if self._is_key():
            _check_tag(event.tag)
            self._keys[-1] = text
        else:
            self._put(_plain(text, event))

    def alias(self) -> None:
        """Add None for an alias in another program's file; refuse it otherwise."""
        if not self.is_foreign or self._is_key():
            raise NoFrontMatter("The front matter has aliases (*), which are not taken.")
        self._put(None)

    def open(self, event: Any) -> None:
        """Begin a mapping or a list."""
        if event.tag is not None:
            raise _tagged()
        if self._is_key():
            raise NoFrontMatter("The front matter has a key that is no text.")
        if len(self._open) == MOST_DEPTH:
            raise NoFrontMatter("The front matter is nested too deeply, or holds too much.")
        inner: dict[str, Any] | list[Any] = {} if isinstance(event, MappingStartEvent) else []
        self._put(inner)
        self._open.append(inner)
        self._keys.append(None)

    def close(self) -> None:
        """End the innermost mapping or list."""
        self._open.pop()
        self._keys.pop()

    def _is_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1], dict) and self._keys[-1] is None

    def _put(self, value: object) -> None:
        if not self._open:
            self.whole = value
        elif isinstance(inner := self._open[-1], dict):
            inner[self._keys[-1] or ""] = value
            self._keys[-1] = None
        else:
            inner.append(value)


def _plain(text: str, event: Any) -> str | int | float | bool | None:
    """Return the scalar's value."""
    if event.tag == _LONG_TAG:
        return _long_integer(text)
    _check_tag(event.tag)
    if event.tag is not None or not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    found = _NUMBER.fullmatch(text) if len(text) <= MOST_NUMBER_CHARACTERS else None
    if found is None:
        return text
    number = float(text) if found["fraction"] or found["exponent"] else int(text)
    return number if math.isfinite(number) else text


def _long_integer(text: str) -> int:
    found = _NUMBER.fullmatch(text)
    try:
        if found is not None and not (found["fraction"] or found["exponent"]):
            return int(text)
    except ValueError:  # Python builds no number of more than 4,300 digits from text.
        pass
    raise NoFrontMatter("The front matter holds a !long that is no whole number.")


def _check_tag(tag: str | None) -> None:
    if tag not in {None, _TEXT_TAG}:
        raise _tagged()


def _tagged() -> NoFrontMatter:
    return NoFrontMatter("The front matter has tags (!), which are not taken.")
