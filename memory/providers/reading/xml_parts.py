"""Checks the declarations in an archive's parts with the parser that reads them later: any encoding, any name."""

from typing import IO, Any
from xml.parsers import expat

from recollect.memory.providers.reading.limits import ForbiddenCall

_PIECE = 65_536


class _Enough(Exception):
    """Ends the parse: the part has answered the question."""


def refuse_declarations(part: IO[bytes], *, doctype: bool) -> None:
    """Refuse a part that declares entities or, with `doctype`, a document type; one that is no XML declares nothing.

    Declarations stand before the first element, so nothing after it is read.
    """
    parser = expat.ParserCreate()
    parser.EntityDeclHandler = _refuse
    if doctype:
        parser.StartDoctypeDeclHandler = _refuse
    parser.StartElementHandler = _enough
    _parse(parser, part)


def attributes_of(part: IO[bytes]) -> list[str]:
    """Return the values of every attribute in the part."""
    values = list[str]()
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda _, attributes: values.extend(attributes.values())
    _parse(parser, part)
    return values


def _parse(parser: expat.XMLParserType, part: IO[bytes]) -> None:
    try:
        while piece := part.read(_PIECE):
            parser.Parse(piece)
    except (_Enough, expat.ExpatError):
        return


def _refuse(*_: Any) -> None:
    raise ForbiddenCall("declares entities, which no word processor does")


def _enough(*_: Any) -> None:
    raise _Enough
