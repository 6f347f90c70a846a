"""A client of a service: it gives the memory of any user's thread."""

from types import TracebackType
from typing import Self

from recollect.memory.agents.connection import SECONDS, ServiceConnection
from recollect.memory.agents.memory_loop import memory_loop
from recollect.memory.agents.remote_agent import RemoteAgent
from recollect.memory.agents.sync_agent import SyncAgent
from recollect.memory.values.scope import Scope


class AsyncClient:
    """Connects to the service at `url` with `api_key`, where it wants one. Close it with `aclose()` or `async with`.

    A request may take `timeout_seconds`. The client belongs to the event loop of its first request.

    Raises:
        ConfigurationError: `url` is no address of a service, or `api_key` no key.
    """

    def __init__(self, url: str, api_key: str | None = None, *, timeout_seconds: float = SECONDS) -> None:
        self._connection = ServiceConnection(url, api_key, timeout_seconds=timeout_seconds)

    async def __aenter__(self) -> Self:
        """Check that the service answers."""
        await self._connection.check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connection. A later request opens it again."""
        await self._connection.aclose()

    def agent(self, user_id: str, thread_id: str) -> RemoteAgent:
        """Return the memory of one user's thread, over this connection; it needs no closing of its own.

        Raises:
            InvalidRequest: an id is not 1-128 characters of [A-Za-z0-9._:@+|~=-].
        """
        return RemoteAgent(self._connection, Scope.named(user_id, thread_id))


class Client:
    """An `AsyncClient` for code that does not await, also inside a running event loop. Close it with `close()`."""

    def __init__(self, url: str, api_key: str | None = None, *, timeout_seconds: float = SECONDS) -> None:
        self._client = AsyncClient(url, api_key, timeout_seconds=timeout_seconds)

    def __enter__(self) -> Self:
        """Check that the service answers."""
        memory_loop.wait(self._client.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection. A later request opens it again."""
        memory_loop.wait(self._client.aclose())

    def agent(self, user_id: str, thread_id: str) -> SyncAgent:
        """Return the memory of one user's thread, over this connection; see `AsyncClient.agent`."""
        return SyncAgent(self._client.agent(user_id, thread_id))
