"""Markdown files with YAML front matter: fields above, one text below. What is written is read again exactly.

Reading trusts nothing: no aliases (a few lines could stand for gigabytes), bounded depth, plain JSON values alone.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, cast

import yaml
from yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_FENCE = "---"
_BYTE_ORDER_MARK = "\ufeff"
MOST_DEPTH = 30
MOST_EVENTS = 200_000
"""Each value is one or two; a value takes some hundred bytes while it is read."""
MOST_CHARACTERS = 4_000_000


class NoFrontMatter(ValueError):
    """The file has no front matter that can be read; the message is a sentence."""


class _Plain(_Dumper):  # pyright: ignore[reportUntypedBaseClass] - the C library's where it is there
    def ignore_aliases(self, data: object) -> bool:
        """Everything is written out."""
        return True


def to_markdown(fields: Mapping[str, Any], body: str) -> bytes:
    """The file: front matter, the text, and a line break at its end."""
    front: str = yaml.dump(  # pyright: ignore[reportUnknownMemberType] - the dumper is the C library's
        dict(fields), Dumper=_Plain, allow_unicode=True, sort_keys=False, width=1 << 30, default_flow_style=False
    )
    return f"{_FENCE}\n{front}{_FENCE}\n{body}\n".encode()


def from_markdown(content: bytes) -> tuple[dict[str, Any], str]:
    """Fields and text. Line breaks of the text stay as they are; the last one is the file's.

    Raises:
        NoFrontMatter: there is none, it is no mapping of plain values, or the file is no UTF-8.
    """
    try:
        text = content.decode().removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError:
        raise NoFrontMatter("The file is not UTF-8.") from None
    front, body = _split(text)
    return _fields(front), body.removesuffix("\n")


def _split(text: str) -> tuple[str, str]:
    """Front matter and what follows it. Windows' line breaks are let pass around the fences."""
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


def _fields(front: str) -> dict[str, Any]:
    try:
        _check(front)
        said: object = yaml.load(front, Loader=_Loader)  # safe loaders both
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, NoFrontMatter):
            raise
        raise NoFrontMatter("The front matter is no YAML.") from None
    if not isinstance(said, Mapping):
        raise NoFrontMatter("The front matter is no mapping.")
    return {str(key): _plain(value) for key, value in cast("Mapping[object, object]", said).items()}


def _check(front: str) -> None:
    if len(front) > MOST_CHARACTERS:
        raise NoFrontMatter("The front matter is too long.")
    depth = 0
    for number, event in enumerate(cast("Any", yaml).parse(front, Loader=_Loader)):
        if isinstance(event, AliasEvent):
            raise NoFrontMatter("The front matter has aliases (*), which are not taken.")
        if isinstance(event, CollectionStartEvent):
            depth += 1
        elif isinstance(event, CollectionEndEvent):
            depth -= 1
        if depth > MOST_DEPTH or number > MOST_EVENTS:
            raise NoFrontMatter("The front matter is nested too deeply, or holds too much.")


def _plain(value: object) -> Any:
    """The value as JSON has it: times as text, however they were written."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in cast("list[object]", value)]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise NoFrontMatter("The front matter holds something that is no plain value.")
