"""FastAPI is told where endpoints are: it parses no source file while a first request waits."""

import inspect
import linecache

import fastapi.routing
from fastapi.routing import iter_route_contexts

from recollect.api.app import create_app


def test_no_endpoint_is_looked_up_in_its_file() -> None:
    place_of = getattr(fastapi.routing, "_extract_endpoint_context")  # noqa: B009 - FastAPI's own, not public
    app = create_app()
    app.openapi()  # which adds the late routes
    found = {route.endpoint for route in iter_route_contexts(app.routes)}
    endpoints = {endpoint for endpoint in found if inspect.isfunction(endpoint)}
    assert {"get_health", "run_agent"} < {endpoint.__name__ for endpoint in endpoints}
    linecache.clearcache()
    told = {endpoint: place_of(endpoint) for endpoint in endpoints}
    assert {name for name in linecache.cache if "/recollect/" in name} == set()
    for endpoint, place in told.items():
        assert place == {
            "file": inspect.getsourcefile(endpoint),
            "line": inspect.getsourcelines(endpoint)[1],
            "function": endpoint.__name__,
        }
