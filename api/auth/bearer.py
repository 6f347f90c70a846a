"""Reads a request's bearer token and the address that it comes from."""

import ipaddress
from collections.abc import Mapping
from typing import Any

_BEARER = b"bearer "


def bearer_token(scope: Mapping[str, Any]) -> bytes | None:
    """Return the token of `Authorization: Bearer TOKEN`; None without one, or with more than one such header."""
    shown = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(shown) != 1:
        return None
    value: bytes = shown[0]
    if value[: len(_BEARER)].lower() != _BEARER:
        return None
    return value[len(_BEARER) :].strip(b" ") or None


def is_from_this_machine(scope: Mapping[str, Any]) -> bool:
    """Tell whether the connection comes from a loopback address, or from the address it arrived at."""
    client = _address(scope.get("client"))
    return client is not None and (client.is_loopback or client == _address(scope.get("server")))


def sender(scope: Mapping[str, Any]) -> str:
    """Return the address that requests without a key are counted by: for IPv6 its 64-bit network, which one sender has.

    It is the connection's own address. Headers that name an address can be forged.
    """
    client = _address(scope.get("client"))
    if isinstance(client, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((client.packed[:8] + bytes(8), 64)))
    return str(client)


def _address(end: tuple[str, int | None] | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if end is None:
        return None
    try:
        found = ipaddress.ip_address(end[0].partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return mapped or found
