"""Wraps a store so that each of its calls is watched."""

import functools
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeVar, cast

Store = TypeVar("Store")
Watch = Callable[[str], AbstractContextManager[object] | None]
"""Returns the context manager that watches a call (such as "conversations.accept"), or None to leave it unwatched."""


def watched(store: Store, name: str, watch: Watch) -> Store:
    """Wrap the store, and the parts that it consists of."""
    return cast(Store, _Front(store, name, watch))


_SPANS = {"documents": "library"}
"""Names of parts in spans, where dashboards use other names than the code."""


class _Front:
    """Forwards each attribute to the store; the wrapped attribute is kept after its first use."""

    def __init__(self, store: Any, name: str, watch: Watch) -> None:
        self.__store, self.__name, self.__watch = store, name, watch

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self.__store, attribute)
        name = f"{self.__name}.{attribute}"
        if inspect.iscoroutinefunction(found):
            front = _coroutine(found, name, self.__watch)
        elif inspect.isasyncgenfunction(found):
            front = _generator(found, name, self.__watch)
        elif inspect.ismethod(found):
            front = _entered(found, name, self.__watch)
        elif type(found).__module__.startswith("recollect.memory."):
            front = _Front(found, _SPANS.get(attribute, attribute), self.__watch)
        else:
            return found  # a plain value, such as its name
        setattr(self, attribute, front)
        return front


def _coroutine(call: Callable[..., Any], name: str, watch: Watch) -> Callable[..., Any]:
    @functools.wraps(call)
    async def front(*args: Any, **named: Any) -> Any:
        watching = watch(name)
        if watching is None:
            return await call(*args, **named)
        with watching:
            return await call(*args, **named)

    return front


def _generator(call: Callable[..., Any], name: str, watch: Watch) -> Callable[..., Any]:
    @functools.wraps(call)
    async def front(*args: Any, **named: Any) -> AsyncIterator[Any]:
        watching = watch(name)
        if watching is None:
            async for item in call(*args, **named):
                yield item
            return
        with watching:
            async for item in call(*args, **named):
                yield item

    return front


def _entered(call: Callable[..., Any], name: str, watch: Watch) -> Callable[..., Any]:
    """Wrap a call that returns a context manager, and watch its entry, which is where it waits."""

    @functools.wraps(call)
    def front(*args: Any, **named: Any) -> Any:
        given = call(*args, **named)
        return _Entering(given, name, watch) if hasattr(given, "__aenter__") else given

    return front


class _Entering:
    def __init__(self, manager: AbstractAsyncContextManager[Any], name: str, watch: Watch) -> None:
        self._manager, self._name, self._watch = manager, name, watch

    async def __aenter__(self) -> Any:
        watching = self._watch(self._name)
        if watching is None:
            return await self._manager.__aenter__()
        with watching:
            return await self._manager.__aenter__()

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._manager.__aexit__(*error)
