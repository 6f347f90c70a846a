"""`/docs`: the API's text, openapi.json, as one page without scripts of its own."""

import gzip
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from recollect.api.inspector.frame import frame_of
from recollect.api.inspector.rendering import render

router = APIRouter(include_in_schema=False)

Json = Mapping[str, Any]
_BOUNDS: Mapping[str, str] = {
    "minimum": "at least",
    "maximum": "at most",
    "minLength": "characters: at least",
    "maxLength": "characters: at most",
    "pattern": "pattern",
    "default": "default",
}


@router.get("/docs")
async def get_docs(request: Request) -> Response:
    """Show the page. It is the same for everybody, so that it is made and packed once."""
    made: tuple[bytes, bytes] | None = getattr(request.app.state, "docs_page", None)
    if made is None:
        plain = bytes(_page(request).body)
        request.app.state.docs_page = made = (plain, gzip.compress(plain))
    headers = {"Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(made[1], headers={**headers, "Content-Encoding": "gzip"}, media_type="text/html")
    return Response(made[0], headers=headers, media_type="text/html")


@router.get("/redoc")
async def get_redoc() -> RedirectResponse:
    """Lead to the one page there is."""
    return RedirectResponse("/docs", 308)


def kind_of_schema(schema: Json) -> str:
    """Return a schema's type in a few words, such as `list of string or null`; a named one by its name."""
    if "$ref" in schema:
        return name_of(schema)
    if "const" in schema or "enum" in schema:
        return " | ".join(repr(value) for value in schema.get("enum", [schema.get("const")]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(kind_of_schema(part) for part in schema[several]))
    if schema.get("type") == "array":
        return f"list of {kind_of_schema(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def name_of(schema: Json) -> str:
    """Return the name of the schema that a reference means; empty for another."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def referred_schemas(schema: Json) -> list[str]:
    """Return the names of all schemas that this one refers to in its own line."""
    parts: list[Json] = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if "items" in schema:
        parts.append(schema["items"])
    own = [name_of(schema)] if "$ref" in schema else []
    return own + [name for part in parts for name in referred_schemas(part)]


def bounds_of(schema: Json) -> list[str]:
    """Return what a schema says of its values, each as a few words."""
    parts = [schema, *(part for part in schema.get("anyOf", ()) if part.get("type") != "null")]
    said = {word: part[word] for part in parts for word in _BOUNDS if word in part}
    return [f"{_BOUNDS[word]} {value}" for word, value in said.items()]


def _page(request: Request) -> Response:
    text: Json = request.app.openapi()
    groups = dict[str, list[Json]]()
    for operation in _operations(text):
        groups.setdefault(operation["group"], []).append(operation)
    readers = {"kind_of": kind_of_schema, "names_in": referred_schemas, "bounds_of": bounds_of}
    return render("docs.html", title="The API", text=text, groups=groups, **readers, **frame_of(request))


def _operations(text: Json) -> Iterator[Json]:
    """Yield each operation with its method, path, name and group."""
    for path, methods in text["paths"].items():
        for method, operation in methods.items():
            group = (operation.get("tags") or ["service"])[0]
            yield {**operation, "method": method.upper(), "path": path, "group": group}
