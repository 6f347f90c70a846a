"""`/docs`: the API's text, openapi.json, as one page without scripts."""

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from recollect.api.inspector.frame import frame_of
from recollect.api.inspector.rendering import render

router = APIRouter(include_in_schema=False)


@router.get("/docs")
async def get_docs(request: Request) -> HTMLResponse:
    """Show the page."""
    text: Mapping[str, Any] = request.app.openapi()
    groups = dict[str, list[Mapping[str, Any]]]()
    for operation in _operations(text):
        groups.setdefault(operation["group"], []).append(operation)
    return render("docs.html", title="The API", text=text, groups=groups, **frame_of(request))


@router.get("/redoc")
async def get_redoc() -> RedirectResponse:
    """Lead to the one page there is."""
    return RedirectResponse("/docs", 308)


def _operations(text: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield each operation with its method, path, name and group."""
    for path, methods in text["paths"].items():
        for method, operation in methods.items():
            group = (operation.get("tags") or ["service"])[0]
            yield {**operation, "method": method.upper(), "path": path, "group": group}
