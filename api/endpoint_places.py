"""Tells FastAPI where endpoints are in the source, which it would read at each one's first request.

It names the place in its own errors. Reading and parsing a file takes 30 ms on the event loop: of a start's first
`GET /health`, and of the first turn.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import fastapi.routing
from starlette.routing import BaseRoute

_PLACES: dict[int, dict[str, Any]] = getattr(fastapi.routing, "_endpoint_context_cache", {})
"""FastAPI's own, by the endpoint's `id`. A FastAPI that has it no longer reads the files, or finds another way."""


def tell_places(routes: Sequence[BaseRoute]) -> None:
    """Build these routes, and tell FastAPI the places of their endpoints, which live as long as the process."""
    for route in fastapi.routing.iter_route_contexts(routes):
        endpoint = route.endpoint
        if inspect.isfunction(endpoint):
            code = endpoint.__code__
            _PLACES[id(endpoint)] = {
                "file": code.co_filename,
                "line": code.co_firstlineno,
                "function": endpoint.__name__,
            }
