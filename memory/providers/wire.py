"""Bounds how much a provider may send: an endless answer, packed or not, is cut off.

`bound` serves the clients of OpenAI's, Anthropic's and Google's libraries alike, which stand on httpx or its successor.
"""

import zlib
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

from recollect.memory.values.errors import ModelUnavailable

MOST_BYTES = 8_000_000
"""Of one answer as it comes, and unpacked."""
BYTES_A_CHARACTER = 1_000
"""So many bytes more for each character of a stream that has come: chunks wrap a word in hundreds of bytes."""
_PACKED = {"gzip", "x-gzip", "deflate"}
_PIECE = 64 * 1024


class AnswerTooLong(ModelUnavailable):
    """The model's answer is too long; ask for a shorter one, or send the request again with the same turn_id."""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__, outage=False)


@dataclass(slots=True)
class Allowance:
    """The number of bytes that one answer may have; it grows with the characters received."""

    most: int = MOST_BYTES

    def add(self, characters: int) -> None:
        """Raise the limit for `characters` more characters received."""
        self.most += characters * BYTES_A_CHARACTER


_current: ContextVar[Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def allowing(allowance: Allowance) -> Generator[None]:
    """Give the requests sent in this block the `allowance`."""
    token = _current.set(allowance)
    try:
        yield
    finally:
        _current.reset(token)


def bound(client: Any) -> None:
    """Cut off answers to `client` (httpx's AsyncClient, or its successor's) that are too long, with AnswerTooLong."""
    for event, hook in hooks().items():
        client.event_hooks = {**client.event_hooks, event: [*client.event_hooks[event], *hook]}


def hooks() -> Mapping[str, list[Any]]:
    """Return the `event_hooks` of a bounded client."""
    return {"request": [_ask_unpacked], "response": [_bound_answer]}


async def _ask_unpacked(request: Any) -> None:
    request.headers["Accept-Encoding"] = "identity"


async def _bound_answer(response: Any) -> None:
    """Replace the answer's stream by a counting one, before any of it is read."""
    is_packed = _is_packed(response.headers.get("content-encoding", ""))
    if is_packed:
        for name in ("content-encoding", "content-length"):
            response.headers.pop(name, None)
    kind = _bounded(type(response.stream))  # pyright: ignore[reportUnknownArgumentType]
    response.stream = kind(response.stream, _current.get() or Allowance(), is_packed=is_packed)


def unpacked(pieces: AsyncIterator[bytes], packing: str, allowance: Allowance) -> AsyncIterator[bytes]:
    """Return the `pieces` of an answer, unpacked as its header `packing` says; raise AnswerTooLong as they come."""
    return aiter(_Bounded(pieces, allowance, is_packed=_is_packed(packing)))


def _is_packed(packing: str) -> bool:
    """Tell whether an answer with this Content-Encoding is to be unpacked; raise ModelUnavailable if nobody can."""
    name = packing.strip().lower()
    if name not in {*_PACKED, "identity", ""}:
        raise ModelUnavailable(
            "The model's provider packs its answers in a way that was not asked for; check its address.",
            outage=False,
        )
    return name in _PACKED


class _Bounded:
    """Yields the bytes of `inner`, unpacked where they are packed, until the allowance is used up."""

    def __init__(self, inner: Any, allowance: Allowance, *, is_packed: bool) -> None:
        self._inner = inner
        self._allowance = allowance
        self._is_packed = is_packed

    async def __aiter__(self) -> AsyncIterator[bytes]:
        came, unpacked = 0, 0
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32) if self._is_packed else None
        async for piece in self._inner:
            came += len(piece)
            self._check(came)
            while unpacker is not None and piece:
                try:
                    part = unpacker.decompress(piece, _PIECE)
                except zlib.error:
                    raise ModelUnavailable("The model's answer could not be unpacked.", outage=False) from None
                unpacked += len(part)
                self._check(unpacked)
                yield part
                piece = unpacker.unconsumed_tail
            if unpacker is None:
                yield piece

    async def aclose(self) -> None:
        """Close the inner stream."""
        await self._inner.aclose()

    def _check(self, size: int) -> None:
        if size > self._allowance.most:
            raise AnswerTooLong


@cache
def _bounded(kind: type[Any]) -> type[Any]:
    """Return `_Bounded` as a subclass of `kind`: each library accepts only its own stream class."""
    return type("BoundedStream", (_Bounded, kind), {})
