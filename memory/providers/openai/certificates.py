"""Loads the certificates by which servers are known."""

import os
import ssl
from functools import cache


@cache
def certificates() -> ssl.SSLContext:
    """Load the certificates, once for all clients: each copy costs 20 ms and some megabytes.

    They come from SSL_CERT_FILE or SSL_CERT_DIR, else from certifi, as for httpx and OpenAI's SDK. httpx itself, which
    has the same function, takes a tenth of a start to import. It reads from disk: an event loop calls it in a thread.
    """
    import certifi

    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if folder and not file:
        return ssl.create_default_context(capath=folder)
    return ssl.create_default_context(cafile=file or certifi.where())
