"""Reads server-sent events: the data of each, from bytes that come in pieces."""

from collections.abc import AsyncGenerator, AsyncIterator


async def event_data(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the data of each event; other fields and comments are left out, and an event without data too."""
    data = list[bytes]()
    async for line in _lines(pieces):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield b"\n".join(data)
            data = []
    if data:
        yield b"\n".join(data)


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the lines, without their ends. Nothing is looked at twice, however many pieces a line comes in."""
    begun = bytearray()
    async for piece in pieces:
        begun += piece
        if b"\n" not in piece:
            continue
        *lines, rest = bytes(begun).split(b"\n")
        begun = bytearray(rest)
        for line in lines:
            yield line.removesuffix(b"\r")
    if begun:
        yield bytes(begun)
