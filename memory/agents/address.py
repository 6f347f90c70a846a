"""The address of a service, and what every request to it carries."""

from urllib.parse import urlsplit

import httpx

from recollect.memory.values.errors import ConfigurationError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def service_address(url: str, *, named: str = "url", key_named: str = "api_key") -> httpx.URL:
    """Return the address that `url` is; errors call it `named`, and the key `key_named`.

    Raises:
        ConfigurationError: it is none, or holds more than an address.
    """
    try:
        urlsplit(url)
        address = httpx.URL(url)
    except (httpx.InvalidURL, TypeError, ValueError):
        address = httpx.URL()
    if not address.host or address.scheme not in {"http", "https"}:
        raise ConfigurationError(f"{named} is no address of a service; one looks like http://127.0.0.1:8000.")
    if address.userinfo or address.query or address.fragment:
        raise ConfigurationError(f"{named} is more than an address; a key belongs into {key_named}.")
    return address


def key_header(api_key: str | None, *, named: str = "api_key") -> dict[str, str]:
    """Return the header that shows the key.

    Raises:
        ConfigurationError: no key looks like it.
    """
    if not api_key:  # an empty variable of the environment names none
        return {}
    if not (api_key.isascii() and api_key.isprintable()):
        raise ConfigurationError(f"{named} holds characters that no key has.")
    return {"Authorization": f"Bearer {api_key}"}


def uses_proxies(address: httpx.URL) -> bool:
    """Tell whether the environment's proxies apply: to other machines only."""
    return address.host not in LOOPBACK
