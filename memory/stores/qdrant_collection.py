"""One collection of a Qdrant server: reached, checked, created when missing, and what its errors become."""

import asyncio
import logging
import re
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from grpc import RpcError, StatusCode
from grpc.aio import UsageError
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from memory.errors import ConfigurationError, IndexUnavailable, RecollectError
from memory.stores.points import BM25, CONTEXT, CREATED, DENSE, DOCUMENT, KIND, THREAD, TURN, USER

log = logging.getLogger(__name__)

OLDEST_SERVER = (1, 19)
TIMEOUT_SECONDS = 5

Answer = TypeVar("Answer")
Trouble = Literal["missing", "key", "outage", "refused"]

# UsageError is a call on a channel that was closed meanwhile.
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


@dataclass(frozen=True, slots=True)
class QdrantServer:
    """Where a Qdrant server is and how it is spoken to. `url` is its HTTP address; gRPC uses its host."""

    url: str
    api_key: str | None = field(default=None, repr=False)
    prefer_grpc: bool = True
    grpc_port: int = 6334

    def connect(self) -> AsyncQdrantClient:
        """A client whose calls take at most 5 seconds; it opens no connection yet, and its caller closes it.

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

    `address` is what calls name: the collection, or an alias of it.
    """

    def __init__(self, client: AsyncQdrantClient, *, name: str, dimension: int) -> None:
        self.client = client
        self.name = name
        self.address = name
        self.dimension = dimension
        self._ready = False
        self._closed = False
        self._ensuring = asyncio.Lock()

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
        """Refuse every later call; the client is its opener's to close."""
        self._closed = True

    async def ask(self, question: Callable[[], Awaitable[Answer]]) -> Answer:
        """The answer of one call to the client; the one place where the client's errors are translated.

        The collection is created first where it is missing; if it vanished since, it is created again and the call is
        repeated once.

        Raises:
            IndexUnavailable: the server cannot be reached, refuses the key, or is too old.
            RecollectError: the server refuses the call itself; waiting would not mend it.
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
        """Make sure of the collection itself."""
        if not await self.client.collection_exists(self.name):
            await self._create()
        await self._index_payload(self.name)

    async def _index_payload(self, name: str) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Payload indexes have no effect in the local Qdrant")
            for path in (USER, THREAD, TURN, KIND, DOCUMENT):
                schema = models.KeywordIndexParams(
                    type=models.KeywordIndexType.KEYWORD, is_tenant=True if path == USER else None
                )
                await self.client.create_payload_index(name, path, field_schema=schema, wait=True)
            times = models.IntegerIndexParams(type=models.IntegerIndexType.INTEGER, lookup=False, range=True)
            await self.client.create_payload_index(name, CREATED, field_schema=times, wait=True)

    async def _create(self) -> None:
        vector = models.VectorParams(size=self.dimension, distance=models.Distance.COSINE)
        try:
            await self.client.create_collection(
                self.name,
                vectors_config={DENSE: vector, CONTEXT: vector},
                sparse_vectors_config={BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                # Every search names its user: one graph per user, and none over all of them.
                hnsw_config=models.HnswConfigDiff(m=0, payload_m=16),
            )
        except (*_REMOTE, ValueError):
            if not await self.client.collection_exists(self.name):  # another process may have been quicker
                raise
            return
        log.info("created the collection", extra={"action": "index_created", "collection": self.name})


class ServingCollection(QdrantCollection):
    """The collection that serves under `name`, whichever generation: asked for by the alias `<name>.current`."""

    def __init__(self, client: AsyncQdrantClient, *, name: str, dimension: int) -> None:
        super().__init__(client, name=name, dimension=dimension)
        self.address = f"{name}.current"

    async def target(self) -> str | None:
        """The collection that the alias leads to, or None; for `ask`."""
        listed = await self.client.get_aliases()
        return next((item.collection_name for item in listed.aliases if item.alias_name == self.address), None)

    async def serve(self, collection: str) -> None:
        """Lead the alias to `collection` in place of where it leads now: one call, which the server does as a whole."""
        away = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self.address))
        await self.ask(lambda: self.client.update_collection_aliases([away, self._leading_to(collection)]))

    async def _prepare(self) -> None:
        """Without the alias, the collection `name` serves: made here, or by an older version."""
        target = await self.target()
        if target is not None:
            await self._index_payload(target)
            return
        await super()._prepare()
        try:
            await self.client.update_collection_aliases([self._leading_to(self.name)])
        except (*_REMOTE, ValueError):
            if await self.target() is None:  # another process may have been quicker
                raise

    def _leading_to(self, collection: str) -> models.CreateAliasOperation:
        return models.CreateAliasOperation(
            create_alias=models.CreateAlias(collection_name=collection, alias_name=self.address)
        )


def _too_old(version: str) -> str | None:
    """The sentence that refuses the server, if it does not say that it is at least `OLDEST_SERVER`."""
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
    """What crosses the port in place of the client's error; the server's text may quote payloads, so it stays out."""
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
