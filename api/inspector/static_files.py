"""Serves the pages' style sheet and scripts: the files of `static/`, known by name, compressed once."""

import functools
import gzip
import hashlib
from collections.abc import Mapping
from pathlib import Path

from fastapi import APIRouter, Request, Response

from recollect.api.auth.visits import STATIC
from recollect.memory.values.errors import NotFound
from recollect.memory.values.frozen import frozen

router = APIRouter(include_in_schema=False)

KINDS: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""The media types of what is served; licences and notes beside them are not."""
HTMX = "htmx.js"
_FOLDER = Path(__file__).parent / "static"


@frozen
class StaticFile:
    """A file, plain and packed; `tag` is the beginning of its SHA-256."""

    kind: str
    plain: bytes
    packed: bytes
    tag: str


@functools.cache
def files() -> Mapping[str, StaticFile]:
    """Return the files by name, read once."""
    return {path.name: _read(path) for path in sorted(_FOLDER.iterdir()) if path.suffix in KINDS}


def address_of(name: str) -> str:
    """Return a file's address, which changes with its content.

    The address of a module does not: modules import each other by name, and two addresses would be two modules.
    """
    return f"{STATIC}{name}" if name.endswith(".js") and name != HTMX else f"{STATIC}{name}?v={files()[name].tag}"


@router.get(f"{STATIC}{{name}}")
async def get_static(name: str, request: Request) -> Response:
    """Return the file. An address that names its content may be kept for good, any other is asked for each time."""
    found = files().get(name)
    if found is None:
        raise NotFound
    is_named = request.query_params.get("v") == found.tag
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable" if is_named else "no-cache",
        "ETag": f'"{found.tag}"',
        "Vary": "Accept-Encoding",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=found.kind)
    return Response(found.plain, headers=headers, media_type=found.kind)


def _read(path: Path) -> StaticFile:
    plain = path.read_bytes()
    tag = hashlib.sha256(plain).hexdigest()[:16]
    return StaticFile(KINDS[path.suffix], plain, gzip.compress(plain, mtime=0), tag)
