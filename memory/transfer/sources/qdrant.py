"""Reads another agent's Qdrant server for an import: collections `mem_{user}_{thread}`, one turn or message a point."""

import re
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from grpc import RpcError
from qdrant_client import AsyncQdrantClient
from qdrant_client.http.exceptions import ApiException

from recollect.memory.transfer.import_line import BadLine, read_time
from recollect.memory.transfer.line_source import SourceHoldings, SourceLine, Unreadable
from recollect.memory.transfer.sources.records import Home, messages_of
from recollect.memory.values.errors import InvalidRequest, StoreUnavailable

PREFIX = "mem_"
TIMEOUT_SECONDS = 10
_PAGE = 500
_OBJECT_ID = re.compile(r"[0-9a-f]{24}")
_PORT = 6333
_TEXTS = ("page_content", "text", "content", "message", "document")
_NEVER = datetime.min.replace(tzinfo=UTC)
_ERRORS = (ApiException, RpcError, OSError, ValueError)

Fields = dict[str, Any]


async def read_qdrant(
    source: str | AsyncQdrantClient,
    *,
    user_id: str | None,
    holdings: SourceHoldings | None = None,
    own: str | None = None,
) -> AsyncIterator[SourceLine]:
    """Yield the messages of all such collections, each by time; a client as `source` is used and left open.

    The names of collections are added to `holdings`, read or skipped, but for the service's own (prefix `own`). The
    payload names user and thread, or else the collection does; where its name is ambiguous, `user_id` decides.

    Raises:
        InvalidRequest: the URL is not valid.
        StoreUnavailable: the server cannot be read.
    """
    async with _opened(source) as client:
        number = 0
        try:
            listed = sorted(item.name for item in (await client.get_collections()).collections)
            found = holdings if holdings is not None else SourceHoldings()
            found.read += [name for name in listed if name.startswith(PREFIX)]
            found.skipped += [
                name for name in listed if name not in found.read and (own is None or not name.startswith(own))
            ]
            for name in found.read:
                for said in await _messages(client, name, user_id):
                    number += 1
                    yield SourceLine(number, said)
        except _ERRORS as error:
            raise StoreUnavailable(
                f"The Qdrant server to import from cannot be read ({type(error).__name__}); check its address and key."
            ) from None


def is_same_qdrant(source: str, own: str) -> bool:
    """Tell whether `source` is the server that the service keeps its own index on."""
    return _server(source) == _server(own)


def names_of_collection(collection: str, *, user_id: str | None) -> tuple[str, str] | None:
    """Return user and thread from a collection's name, or None where it is ambiguous."""
    rest = collection.removeprefix(PREFIX)
    if user_id is not None and rest.startswith(f"{user_id}_"):
        return user_id, rest.removeprefix(f"{user_id}_")
    user, _, thread = rest.partition("_")
    is_clear = "_" not in thread or _OBJECT_ID.fullmatch(user) is not None
    return (user, thread) if user and thread and is_clear else None


@asynccontextmanager
async def _opened(source: str | AsyncQdrantClient) -> AsyncGenerator[AsyncQdrantClient]:
    if not isinstance(source, str):
        yield source
        return
    parts = urlsplit(source)
    scheme = "https" if parts.scheme == "https" else "http"
    key = unquote(parts.password or parts.username or "") or None
    try:
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        host, port = None, 0
    if not host:
        raise InvalidRequest("SOURCE is not a valid Qdrant address, such as http://host:6333.")
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        client = AsyncQdrantClient(url=url, api_key=key, timeout=TIMEOUT_SECONDS, check_compatibility=False)
    try:
        yield client
    finally:
        await client.close()


async def _messages(client: AsyncQdrantClient, collection: str, user_id: str | None) -> list[Fields | Unreadable]:
    named = names_of_collection(collection, user_id=user_id)
    found: list[Fields] = []
    offset: Any = None
    while True:
        points, offset = await client.scroll(
            collection, limit=_PAGE, offset=offset, with_payload=True, with_vectors=False
        )
        for point in points:
            record = _record(point.payload or {}, point.id)
            user, thread = named or (user_id, None)
            found += messages_of(record, Home(user, thread))
        if offset is None:
            break
    found.sort(key=lambda fields: (_moment(fields), fields.get("role") != "user"))
    return [_checked(fields) for fields in found]


def _record(payload: Mapping[str, Any], point_id: object) -> dict[str, Any]:
    """Return the point as a record: the payload's text and fields, and those of its metadata."""
    metadata = payload.get("metadata")
    told: Mapping[str, Any] = cast("Mapping[str, Any]", metadata) if isinstance(metadata, Mapping) else {}
    flat = {name: value for name, value in payload.items() if name not in {"metadata", *_TEXTS}}
    text = next((payload[name] for name in _TEXTS if payload.get(name)), None)
    return {"_id": str(point_id), **flat, **told, "content": text}


def _checked(fields: Fields) -> Fields | Unreadable:
    if "user_id" in fields and "thread_id" in fields:
        return fields
    return Unreadable("Neither the point nor its collection's name tells user and thread; say --user.")


def _moment(fields: Fields) -> datetime:
    try:
        return read_time(fields.get("timestamp"))
    except BadLine:
        return _NEVER  # The import refuses it, with a reason.


def _server(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    try:
        port = parts.port
    except ValueError:
        port = None
    return "localhost" if host in {"localhost", "127.0.0.1", "::1"} else host, port or _PORT
