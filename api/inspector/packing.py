"""Packs large pages with gzip, each time to another length."""

import gzip
import io
import secrets

from fastapi import Request, Response

LEAST_BYTES = 4_000
"""Pages below it are sent as they are."""
MOST_PADDING = 100
_LEVEL = 4


def packed(request: Request, page: Response) -> Response:
    """Return the page packed where the browser takes that, else as it is."""
    body = bytes(page.body)
    page.headers["Vary"] = "Accept-Encoding"
    if len(body) >= LEAST_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        page.body = _pack(body)
        page.headers["Content-Encoding"] = "gzip"
        page.headers["Content-Length"] = str(len(page.body))
    return page


def _pack(body: bytes) -> bytes:
    """Return the body packed, with a padding of random length in front.

    Without it, whoever sees how long a packed page is could learn its secrets: what an address puts into the page is
    compared with them (the attack BREACH; this is Django's remedy).
    """
    made = io.BytesIO()
    padding = "a" * secrets.randbelow(MOST_PADDING)
    with gzip.GzipFile(padding, "wb", _LEVEL, made, mtime=0) as file:
        file.write(body)
    return made.getvalue()
