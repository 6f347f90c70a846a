"""A MongoDB database as a source of an import: what other agents keep in `messages`, `messages_history`, `user_facts`.

The messages are read into memory whole, because two collections that tell of the same conversations are merged.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import urlsplit

from bson import ObjectId
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import PyMongoError

from memory.errors import InvalidRequest, StoreUnavailable
from memory.import_line import BadLine, read_time
from memory.import_source import SourceLine
from memory.importers.records import THREAD, TIME, USER, Home, facts_of, messages_of, text_of

HISTORY, MESSAGES, FACTS, SESSIONS = "messages_history", "messages", "user_facts", "sessions"
SAME = timedelta(minutes=2)
"""Two collections write one message at two moments; so far apart, the same words of one speaker are one message."""

Document = dict[str, Any]
Fields = dict[str, Any]
Thread = tuple[str, str]
_TIMEOUTS: Mapping[str, Any] = {"serverSelectionTimeoutMS": 5_000, "connectTimeoutMS": 5_000}
_PORT = 27017
_NEVER = datetime.min.replace(tzinfo=UTC)


async def read_mongo(url: str, *, user_id: str | None) -> AsyncIterator[SourceLine]:
    """Messages, thread by thread in their order, then facts; what names no user is `user_id`'s.

    Raises:
        InvalidRequest: the URL is none, or names no database.
        StoreUnavailable: the server cannot be read.
    """
    async with _opened(url) as database:
        try:
            number = 0
            async for fields in _messages(database, user_id):
                number += 1
                yield SourceLine(number, fields)
            async for document in database[FACTS].find({}):
                facts = document.get("facts")
                if isinstance(facts, Mapping):
                    whose, time = text_of(document, USER) or user_id, _time_of(document)
                    for fields in facts_of(cast("Document", facts), user_id=whose, time=time):
                        number += 1
                        yield SourceLine(number, fields)
        except PyMongoError as error:
            # The driver's own message may quote a document, or the address with its password.
            raise StoreUnavailable(
                f"The MongoDB to import from cannot be read ({type(error).__name__}); check its address and that it "
                "lets you in."
            ) from None


def is_same_mongo(source: str, own: str, *, database: str) -> bool:
    """Whether the source is the database that the service keeps its own documents in."""
    return bool(_servers(source) & _servers(own)) and _database(source) == database


@asynccontextmanager
async def _opened(url: str) -> AsyncGenerator[AsyncDatabase[Document]]:
    name = _database(url)
    if not name:
        raise InvalidRequest("The MongoDB address names no database; write it as mongodb://host:27017/database.")
    options = url.partition("?")[2].lower()
    timeouts = {limit: value for limit, value in _TIMEOUTS.items() if f"{limit.lower()}=" not in options}
    try:
        client = AsyncMongoClient[Document](url, tz_aware=True, tzinfo=UTC, appname="recollect-import", **timeouts)
        chosen = client.get_database(name)
    except (PyMongoError, ValueError, TypeError):
        # Not chained: the driver's message may quote the address, and with it the password.
        raise InvalidRequest("SOURCE is not a valid MongoDB address, such as mongodb://host:27017/database.") from None
    async with client:
        yield chosen


async def _messages(database: AsyncDatabase[Document], user_id: str | None) -> AsyncIterator[Fields]:
    whose = {
        str(session["_id"]): owner
        async for session in database[SESSIONS].find({}, {"user_id": True})
        if (owner := text_of(session, USER)) is not None
    }
    history: dict[Thread, list[Fields]] = defaultdict(list)
    async for fields in _fields(database, HISTORY, whose, user_id):
        history[_thread(fields)].append(fields)
    whose = {thread: owner for owner, thread in history} | whose
    others: dict[Thread, list[Fields]] = defaultdict(list)
    async for fields in _fields(database, MESSAGES, whose, user_id):
        others[_thread(fields)].append(fields)
    for thread in dict.fromkeys([*history, *others]):
        for fields in merged(history.pop(thread, []), others.pop(thread, [])):
            yield fields


async def _fields(
    database: AsyncDatabase[Document], collection: str, whose: Mapping[str, str], user_id: str | None
) -> AsyncIterator[Fields]:
    async for document in database[collection].find({}):
        own = document["_id"]
        made = own.generation_time if isinstance(own, ObjectId) else None
        home = Home(whose.get(text_of(document, THREAD) or "", user_id), time=made)
        for fields in messages_of(document, home):
            yield fields


def merged(history: Iterable[Fields], others: Iterable[Fields]) -> list[Fields]:
    """The messages of one thread from both collections, by time; what both tell of comes once.

    Two are the same by their id, or by role and content within two minutes. Each stands for one of the other side, so
    that what somebody said twice stays said twice.
    """
    first = list(history)
    ids = {fields.get("message_id") for fields in first}
    told: dict[tuple[object, object], list[datetime]] = defaultdict(list)
    for fields in first:
        told[fields.get("role"), fields.get("content")].append(_moment(fields))
    new: list[Fields] = []
    for fields in others:
        if fields.get("message_id") in ids:
            continue
        times = told[fields.get("role"), fields.get("content")]
        moment = _moment(fields)
        same = min(times, key=lambda time: abs(time - moment), default=None)
        if same is not None and abs(same - moment) <= SAME:
            times.remove(same)
        else:
            new.append(fields)
    return sorted([*first, *new], key=lambda fields: (_moment(fields), fields.get("role") != "user"))


def _moment(fields: Fields) -> datetime:
    try:
        return read_time(fields.get("timestamp"))
    except BadLine:
        return _NEVER  # The import says what is wrong with it.


def _time_of(document: Document) -> object:
    names = ("last_update", "updated_at", *TIME)
    return next((document[name] for name in names if document.get(name) is not None), None)


def _thread(fields: Fields) -> Thread:
    return str(fields.get("user_id", "")), str(fields.get("thread_id", ""))


def _database(url: str) -> str:
    return urlsplit(url).path.strip("/")


def _servers(url: str) -> set[str]:
    """The servers that an address names, as host:port; those of this machine under one name."""
    parts = urlsplit(url)
    found: set[str] = set()
    for server in parts.netloc.rpartition("@")[2].lower().split(","):
        host, _, port = server.rpartition(":") if server.rpartition(":")[2].isdigit() else (server, "", str(_PORT))
        is_here = host.strip("[]") in {"localhost", "127.0.0.1", "::1"}
        found.add(f"{'localhost' if is_here else host}:{port}")
    return found
