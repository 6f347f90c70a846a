"""Reaches, checks and creates one collection of a Qdrant server, and translates the client's errors."""

import asyncio
import logging
import re
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Literal, TypeVar

from grpc import RpcError, StatusCode
from grpc.aio import UsageError
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
from typing_extensions import override

from recollect.memory.stores.points import BM25, CREATED, DOCUMENT, KIND, TERMS, THREAD, TURN, USER
from recollect.memory.stores.qdrant.layout import SERVERS_OWN, CollectionLayout
from recollect.memory.values.errors import ConfigurationError, IndexUnavailable, RecollectError
from recollect.memory.values.filtering.keys import NO_KEYS, FilterKeys
from recollect.memory.values.frozen import frozen

log = logging.getLogger(__name__)

OLDEST_SERVER = (1, 19)
TIMEOUT_SECONDS = 5

Answer = TypeVar("Answer")
Trouble = Literal["missing", "key", "outage", "refused"]

# A call on a channel that was closed meanwhile raises UsageError.
_REMOTE = (RpcError, UsageError, UnexpectedResponse, ResponseHandlingException, ResourceExhaustedResponse, OSError)
_BY_GRPC: dict[StatusCode, Trouble] = {
    StatusCode.NOT_FOUND: "missing",
    StatusCode.UNAUTHENTICATED: "key",
    StatusCode.PERMISSION_DENIED: "key",
    StatusCode.INVALID_ARGUMENT: "refused",
    StatusCode.FAILED_PRECONDITION: "refused",
    StatusCode.ALREADY_EXISTS: "refused",
    StatusCode.OUT_OF_RANGE: "refused",
    StatusCode.UNIMPLEMENTED: "refused",
}


@frozen
class QdrantServer:
    """The address and key of a Qdrant server. `url` is its HTTP address; gRPC uses its host."""

    url: str
    api_key: str | None = field(default=None, repr=False)
    prefer_grpc: bool = True
    grpc_port: int = 6334

    def connect(self) -> AsyncQdrantClient:
        """Return a client whose calls take at most 5 seconds; it opens no connection yet, and the caller closes it.

        Raises:
            ConfigurationError: QDRANT_URL is no URL.
        """
        with warnings.catch_warnings():
            # A key on a private network without TLS is the operator's choice; the log says it once, below.
            warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
            try:
                client = AsyncQdrantClient(
                    url=self.url,
                    api_key=self.api_key,
                    prefer_grpc=self.prefer_grpc,
                    grpc_port=self.grpc_port,
                    timeout=TIMEOUT_SECONDS,
                    check_compatibility=False,
                )
            except ValueError as error:
                raise ConfigurationError("QDRANT_URL is not a URL such as http://localhost:6333.") from error
        if self.api_key and not self.url.startswith("https:"):
            log.warning("QDRANT_API_KEY travels without TLS", extra={"action": "index_key_without_tls"})
        return client


class QdrantCollection:
    """The collection `name` on a server that may be down, and may lose the collection, at any time.

    Points get terms of the `keys`.
    """

    def __init__(
        self,
        client: AsyncQdrantClient,
        *,
        name: str,
        dimension: int,
        layout: CollectionLayout = SERVERS_OWN,
        keys: FilterKeys = NO_KEYS,
    ) -> None:
        self.client = client
        self.keys = keys
        self.name = name
        self.dimension = dimension
        self.layout = layout
        self._ready = False
        self._closed = False
        self._ensuring = asyncio.Lock()

    @property
    def address(self) -> str:
        """Return the name that calls use: the collection's, or an alias of it."""
        return self.name

    async def check(self) -> None:
        """Ask the server for its version.

        Raises:
            ConfigurationError: it is older than 1.19.
            IndexUnavailable: it cannot be reached.
        """
        try:
            refusal = _too_old((await self.client.info()).version)
        except _REMOTE as error:
            raise _translated(error, self.address) from error
        if refusal:
            raise ConfigurationError(refusal)

    def close(self) -> None:
        """Refuse every later call; whoever opened the client closes it."""
        self._closed = True

    async def ask(self, question: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer of one call to the client, and translate the client's errors, here alone.

        Creates the collection first where it is missing; if it has vanished since, creates it again and repeats the
        call once.

        Raises:
            IndexUnavailable: the server cannot be reached, refuses the key, or is too old.
            RecollectError: the server refuses the call itself; a retry would not help.
        """
        if self._closed:
            raise IndexUnavailable
        try:
            await self._ensure()
            try:
                return await question()
            except (*_REMOTE, ValueError) as error:
                if _trouble(error, self.address) != "missing":
                    raise
            self._ready = False
            await self._ensure()
            return await question()
        except _REMOTE as error:
            raise _translated(error, self.address) from error

    async def _ensure(self) -> None:
        if self._ready:
            return
        async with self._ensuring:
            if self._ready:
                return
            if refusal := _too_old((await self.client.info()).version):
                # Not a ConfigurationError: the service runs by now, so it goes on without search.
                raise IndexUnavailable(refusal)
            await self._prepare()
            self._ready = True

    async def _prepare(self) -> None:
        """Create the collection where it is missing."""
        if await self.client.collection_exists(self.name):
            await self._lay_out(self.name)
        else:
            await self._create()
        await self._index_payload(self.name)

    async def _lay_out(self, name: str) -> None:
        """Bring a standing collection to the chosen layout."""
        if self.layout == SERVERS_OWN:
            return
        standing = (await self.client.get_collection(name)).config
        changes = self.layout.changes(standing)
        if changes:
            await self.client.update_collection(name, **changes)
            log.info("changed the collection's layout", extra={"action": "index_laid_out", "collection": name})
        if self.layout.shards not in {None, standing.params.shard_number}:
            log.warning(
                "QDRANT_SHARDS differs from the collection's shards, which are fixed; run recollect reindex",
                extra={"action": "index_shards_differ", "collection": name},
            )

    async def _index_payload(self, name: str) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Payload indexes have no effect in the local Qdrant")
            for path in (USER, THREAD, TURN, KIND, DOCUMENT, TERMS):
                schema = models.KeywordIndexParams(
                    type=models.KeywordIndexType.KEYWORD, is_tenant=True if path == USER else None
                )
                await self.client.create_payload_index(name, path, field_schema=schema, wait=True)
            times = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True)
            await self.client.create_payload_index(name, CREATED, field_schema=times, wait=True)

    async def _create(self) -> None:
        try:
            await self.client.create_collection(
                self.name,
                vectors_config=self.layout.vectors(self.dimension),
                sparse_vectors_config={BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                # Every search names its user: one graph per user, and none over all of them.
                hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
                **self.layout.creation(),
            )
        except (*_REMOTE, ValueError):
            if not await self.client.collection_exists(self.name):  # else another process has created it
                raise
            return
        log.info("created the collection", extra={"action": "index_created", "collection": self.name})


class ServingCollection(QdrantCollection):
    """The generation of `name` that serves now, addressed by the alias `<name>.current`."""

    @property
    @override
    def address(self) -> str:
        return f"{self.name}.current"

    async def target(self) -> str | None:
        """Return the collection behind the alias, or None; call it through `ask`."""
        listed = await self.client.get_aliases()
        return next((item.collection_name for item in listed.aliases if item.alias_name == self.address), None)

    async def serve(self, collection: str) -> None:
        """Point the alias at `collection` in one call, which the server applies atomically."""
        away = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self.address))
        await self.ask(lambda: self.client.update_collection_aliases([away, self._leading_to(collection)]))

    @override
    async def _prepare(self) -> None:
        """Create the alias where it is missing, for the collection `name`, made here or by an older version."""
        target = await self.target()
        if target is not None:
            await self._lay_out(target)
            await self._index_payload(target)
            return
        await super()._prepare()
        try:
            await self.client.update_collection_aliases([self._leading_to(self.name)])
        except (*_REMOTE, ValueError):
            if await self.target() is None:  # else another process has made the alias
                raise

    def _leading_to(self, collection: str) -> models.CreateAliasOperation:
        return models.CreateAliasOperation(
            create_alias=models.CreateAlias(collection_name=collection, alias_name=self.address)
        )


def _too_old(version: str) -> str | None:
    """Return the sentence that refuses a server older than `OLDEST_SERVER` or of unknown version, else None."""
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) >= OLDEST_SERVER:
        return None
    said = version if re.fullmatch(r"[\w.+-]{1,40}", version) else "unknown"
    oldest = ".".join(map(str, OLDEST_SERVER))
    return f"The Qdrant server at QDRANT_URL has version {said}; upgrade it to {oldest} or newer."


def _trouble(error: Exception, name: str) -> Trouble:
    if isinstance(error, UnexpectedResponse):
        status = error.status_code or 500
        if status in {401, 403}:
            return "key"
        if status == 404:
            return "missing"
        return "outage" if status >= 500 or status in {408, 429} else "refused"
    if isinstance(error, RpcError):
        return _BY_GRPC.get(_code(error), "outage")
    if isinstance(error, ValueError):  # the client's local mode
        return "missing" if str(error) == f"Collection {name} not found" else "refused"
    return "outage"


def _translated(error: Exception, name: str) -> RecollectError:
    """Return our error for the client's `error`, without the server's text, which may quote payloads."""
    match _trouble(error, name):
        case "outage":
            return IndexUnavailable()
        case "key":
            return IndexUnavailable("The Qdrant server refuses the key; set QDRANT_API_KEY to one that may write.")
        case "missing" | "refused":
            status = error.status_code if isinstance(error, UnexpectedResponse) else None
            code = _code(error).name if isinstance(error, RpcError) else status
            return RecollectError(f"The Qdrant server refused a call ({code}).")


def _code(error: RpcError) -> StatusCode:
    code = getattr(error, "code", None)  # the base class declares none; every error of a call has it
    said = code() if callable(code) else None
    return said if isinstance(said, StatusCode) else StatusCode.UNKNOWN
