"""Routes that come with their first request: every one comes, and nobody can tell which came late."""

import ast
import importlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts

from recollect.api.app import create_app
from recollect.api.late_routes import GROUPS, PAGES, LateRoutes, RouteGroup
from recollect.settings import load_settings
from tests.service.support.running import PROJECT, service

API = PROJECT / "api"
AT_ONCE = {"routes.agent", "routes.health", "telemetry.metrics"}
"""What a start imports: the routes of a turn, and those that machines ask every few seconds."""
LATE = {module for group in (*GROUPS, PAGES) for module in group.modules}
SPARED = (
    *("jinja2", "numpy", "recollect.memory.transfer.importing"),
    *("recollect.api.inspector.threads", "recollect.api.openai.requests", "recollect.api.routes.facts"),
)
ASKED = (
    ("GET", "/api/threads?user_id=ada", 200),
    ("GET", "/api/users/ada/facts", 200),
    ("GET", "/api/documents?user_id=ada", 200),
    ("PUT", "/api/threads", 405),
    ("GET", "/api/turns/none?user_id=ada", 404),
    ("GET", "/v1/models", 200),
    ("GET", "/users/ada/talk", 200),
    ("GET", "/static/htmx.js", 200),
    ("GET", "/api/nowhere", 404),
)


def routers() -> set[str]:
    """Return the modules whose `router` serves a path by itself, not as a part of the inspector's."""
    found = set[str]()
    for path in API.rglob("*.py"):
        name = ".".join(path.relative_to(API).with_suffix("").parts)
        part_of_pages = name.startswith("inspector.") and name not in LATE
        if not part_of_pages and "router" in assigned(path):
            found.add(name)
    return found


def assigned(path: Path) -> set[str]:
    """Return the names that a module assigns at its top."""
    tops = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)]
    names = [name for node in tops for target in node.targets for name in ast.walk(target)]
    return {name.id for name in names if isinstance(name, ast.Name)}


def printed(script: str) -> Any:
    """Return the JSON that a program prints in a process of its own, in which nothing is imported yet."""
    command = [sys.executable, "-W", "error", "-c", script]
    return json.loads(subprocess.check_output(command, env={"PYTHONPATH": str(PROJECT)}, text=True, timeout=60))


def test_every_router_is_there_at_once_or_late() -> None:
    assert routers() == AT_ONCE | LATE


@pytest.mark.parametrize("group", [*GROUPS, PAGES], ids=lambda group: group.paths[0])
def test_a_group_comes_for_each_of_its_addresses(group: RouteGroup) -> None:
    for module in group.modules:
        router = importlib.import_module(f"recollect.api.{module}").router
        paths = [context.path for context in iter_route_contexts(router.routes)]
        assert paths
        assert [path for path in paths if path is None or not group.may_serve(path)] == []


def test_a_group_comes_once_and_a_broken_one_not_at_all() -> None:
    app = create_app(load_settings())
    broken = RouteGroup(("/broken",), ("routes.threads", "routes.no_such"))
    late = LateRoutes(app, [broken, *GROUPS])
    before = len(app.routes)
    with pytest.raises(ModuleNotFoundError):
        late.add([broken])
    assert len(app.routes) == before, "half a group is none"
    assert late.missing_for("/broken") == [broken]
    for_keys = late.missing_for("/api/admin/keys")
    late.add(for_keys)
    late.add(for_keys)
    assert len(app.routes) == before + 4
    assert late.missing_for("/api/admin/keys") == []


def test_a_start_and_its_turns_leave_other_routes_unimported(tmp_path: Path) -> None:
    script = f"""
import asyncio, json, sys
import httpx
from recollect.api.app import create_app
from recollect.settings import load_settings
async def main():
    app = create_app(load_settings(data_dir={str(tmp_path / "data")!r}))
    async with app.router.lifespan_context(app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8000") as client:
            said = {{"user_id": "ada", "thread_id": "t1", "message": "Hello.", "wait_for_memory": True}}
            answers = [await client.get("/health"), await client.post("/api/agent", json=said)]
            spared = [name for name in {SPARED!r} if name not in sys.modules]
            answers += [await client.get("/users/ada/talk"), await client.get("/v1/models")]
    print(json.dumps([[answer.status_code for answer in answers], spared]))
asyncio.run(main())
"""
    assert printed(script) == [[200, 200, 200, 200], list(SPARED)]


def test_a_start_builds_neither_langgraphs_application_nor_fastapis_own_models() -> None:
    script = """
import json
from pydantic import BaseModel
from recollect.api.cli.deferred_models import deferred_models
with deferred_models():
    import fastapi
from fastapi.openapi.models import Components, OpenAPI
import recollect.api.app as application
class Later(BaseModel):
    pass
first = [Components.__pydantic_complete__, OpenAPI.__pydantic_complete__, "app" in vars(application)]
paths = application.app.openapi()["paths"]
print(json.dumps([first, Later.__pydantic_complete__, len(paths) > 40, application.app is application.app]))
"""
    assert printed(script) == [[False, False, False], True, True, True]


def test_requests_that_come_together_are_answered_as_later_ones(tmp_path: Path) -> None:
    """All of them find their routes missing, several the same ones."""
    with service(tmp_path) as running, ThreadPoolExecutor(len(ASKED) * 3) as threads:

        def ask(asked: tuple[str, str, int]) -> tuple[int, str, str | None]:
            answer = running.http.request(*asked[:2])
            return answer.status_code, answer.headers["content-type"], answer.headers.get("allow")

        first = list(threads.map(ask, ASKED * 3))
        assert [status for status, *_ in first] == [status for *_, status in ASKED * 3]
        assert first == [ask(asked) for asked in ASKED * 3]
        assert running.turn("Hello.")["reply"]
        assert running.get("/openapi.json")["paths"]
        assert "Warning" not in running.log, "what pydantic builds late, it builds as quietly"
