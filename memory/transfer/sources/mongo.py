"""Reads another agent's MongoDB database for an import: `conversations`, `messages`, `user_facts` and others.

All messages are read into memory, because collections that hold the same conversations are merged.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from bson import ObjectId
from pymongo import AsyncMongoClient
from pymongo.asynchronous.database import AsyncDatabase
from pymongo.errors import PyMongoError

from recollect.memory.transfer.import_line import BadLine, read_time
from recollect.memory.transfer.line_source import SourceHoldings, SourceLine
from recollect.memory.transfer.sources.records import THREAD, USER, Home, first_text, messages_of
from recollect.memory.transfer.sources.unified import facts_in, is_absent, with_session
from recollect.memory.values.errors import InvalidRequest, StoreUnavailable

logger = logging.getLogger(__name__)

CONVERSATIONS, HISTORY, MESSAGES = "conversations", "messages_history", "messages"
FACTS, SESSIONS = "user_facts", "sessions"
TALKS = (CONVERSATIONS, HISTORY, MESSAGES)
"""Collections of messages; where two hold one message, the earlier one in this list counts."""
SAME = timedelta(minutes=2)
"""Largest difference of two times at which the same text of one role, in two collections, is one message."""

Document = dict[str, Any]
Fields = dict[str, Any]
Thread = tuple[str, str]
_TIMEOUTS: Mapping[str, Any] = {"serverSelectionTimeoutMS": 5_000, "connectTimeoutMS": 5_000}
_PORT = 27017
_NEVER = datetime.min.replace(tzinfo=UTC)


async def read_mongo(
    url: str, *, user_id: str | None, holdings: SourceHoldings | None = None, own_prefix: str | None = None
) -> AsyncIterator[SourceLine]:
    """Yield messages, thread by thread in their order, then facts; records that name no user are `user_id`'s.

    The names of collections are added to `holdings`, read or skipped, but for those that begin with `own_prefix`.

    Raises:
        InvalidRequest: the URL is not valid, or names no database.
        StoreUnavailable: the server cannot be read.
    """
    found = holdings if holdings is not None else SourceHoldings()
    async with _opened(url) as database:
        try:
            await _look(database, found, own_prefix)
            number = 0
            async for fields in _messages(database, user_id):
                number += 1
                yield SourceLine(number, fields)
            async for document in database[FACTS].find({}):
                for said in facts_in(document, user_id=user_id):
                    number += 1
                    yield SourceLine(number, said)
        except PyMongoError as error:
            # The driver's own message may quote a document, or the address with its password.
            raise StoreUnavailable(
                f"The MongoDB to import from cannot be read ({type(error).__name__}); check its address and that it "
                "lets you in."
            ) from None


def is_same_mongo(source: str, own: str, *, database: str) -> bool:
    """Tell whether `source` is the database that the service uses as its own store."""
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


async def _look(database: AsyncDatabase[Document], holdings: SourceHoldings, own_prefix: str | None) -> None:
    """Add the names of collections that are not empty to `holdings`, as read or skipped."""
    for name in sorted(await database.list_collection_names()):
        is_ours = bool(own_prefix) and name.startswith(own_prefix or "")
        if name.startswith("system.") or name == SESSIONS or is_ours:
            continue
        if await database[name].find_one({}, {"_id": True}) is None:
            continue
        (holdings.read if name in {*TALKS, FACTS} else holdings.skipped).append(name)
    logger.debug(
        "looked into the database to import from",
        extra={"action": "import_looked", "read": len(holdings.read), "skipped": len(holdings.skipped)},
    )


async def _messages(database: AsyncDatabase[Document], user_id: str | None) -> AsyncIterator[Fields]:
    whose = {
        str(session["_id"]): owner
        async for session in database[SESSIONS].find({}, {"user_id": True})
        if (owner := first_text(session, USER)) is not None
    }
    threads: dict[Thread, list[Fields]] = {}
    for collection in TALKS:
        found: dict[Thread, list[Fields]] = defaultdict(list)
        async for fields in _fields(database, collection, whose, user_id):
            found[_thread(fields)].append(fields)
        for thread, said in found.items():
            threads[thread] = merged_messages(threads.get(thread, []), said)
        whose = {thread: owner for owner, thread in found} | whose
    while threads:
        for fields in without_halves(threads.pop(next(iter(threads)))):
            yield fields


async def _fields(
    database: AsyncDatabase[Document], collection: str, whose: Mapping[str, str], user_id: str | None
) -> AsyncIterator[Fields]:
    async for document in database[collection].find({}):
        if is_absent(document):
            continue
        own = document["_id"]
        made = own.generation_time if isinstance(own, ObjectId) else None
        home = Home(whose.get(first_text(document, THREAD) or "", user_id), time=made)
        for fields in messages_of(document, home):
            yield with_session(fields, document) if collection == CONVERSATIONS else fields


def merged_messages(known: Iterable[Fields], others: Iterable[Fields]) -> list[Fields]:
    """Merge one thread's messages from two collections, by time; a message in both is taken from the first, `known`.

    Two are the same by their id, or by role and content within two minutes. Each matches at most one of the other
    side, so that a message that was sent twice stays twice.
    """
    first = list(known)
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


def without_halves(messages: Iterable[Fields]) -> list[Fields]:
    """Return one thread's messages without the `pair_id` of incomplete pairs, so that the next message may answer."""
    ordered = list(messages)
    roles = Counter((fields["pair_id"], fields.get("role")) for fields in ordered if "pair_id" in fields)
    sizes = Counter(pair for pair, _ in roles.elements())
    for fields in ordered:
        pair = fields.get("pair_id")
        if not (sizes[pair] == 2 and roles[pair, "user"] == roles[pair, "assistant"] == 1):
            fields.pop("pair_id", None)
    return ordered


def _moment(fields: Fields) -> datetime:
    try:
        return read_time(fields.get("timestamp"))
    except BadLine:
        return _NEVER  # The import refuses it, with a reason.


def _thread(fields: Fields) -> Thread:
    return str(fields.get("user_id", "")), str(fields.get("thread_id", ""))


def _database(url: str) -> str:
    return urlsplit(url).path.strip("/")


def _servers(url: str) -> set[str]:
    """Return the servers that an address names, as host:port; this machine's addresses all as localhost."""
    parts = urlsplit(url)
    found: set[str] = set()
    for server in parts.netloc.rpartition("@")[2].lower().split(","):
        host, _, port = server.rpartition(":") if server.rpartition(":")[2].isdigit() else (server, "", str(_PORT))
        is_here = host.strip("[]") in {"localhost", "127.0.0.1", "::1"}
        found.add(f"{'localhost' if is_here else host}:{port}")
    return found
