"""Futures whose error may go unread, because whoever waited for them may have left."""

import asyncio
from typing import Any, TypeVar

AnyFuture = TypeVar("AnyFuture", bound="asyncio.Future[Any]")


def may_go_unread(future: AnyFuture) -> AnyFuture:
    """Return the future, of whose error asyncio does not complain where nobody asks for it."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future
