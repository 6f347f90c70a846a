"""What a request shows of its sender: the bearer token, and the address it comes from."""

import ipaddress
from collections.abc import Mapping
from typing import Any

_BEARER = b"bearer "


def bearer_token(scope: Mapping[str, Any]) -> bytes | None:
    """The token of `Authorization: Bearer TOKEN`; None where there is none, or more than one such header."""
    shown = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(shown) != 1:
        return None
    value: bytes = shown[0]
    if value[: len(_BEARER)].lower() != _BEARER:
        return None
    return value[len(_BEARER) :].strip(b" ") or None


def is_from_this_machine(scope: Mapping[str, Any]) -> bool:
    """Whether the connection begins where it ends: at a loopback address, or at this machine's own."""
    client = _address(scope.get("client"))
    return client is not None and (client.is_loopback or client == _address(scope.get("server")))


def sender(scope: Mapping[str, Any]) -> str:
    """The address that requests without a key are counted by: of IPv6 the network of 64 bits, which one sender has.

    It is the connection's own. What headers say of an address, anybody can write.
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
