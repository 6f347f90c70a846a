"""Chooses the service of a terminal: the named one, the owner of DATA_DIR, or one of its own."""

from collections.abc import Generator
from contextlib import contextmanager

import httpx

from recollect.api.cli.command_context import CommandContext
from recollect.api.cli.owner import check_there_is_something, client_at, reachable, serving_owner
from recollect.api.cli.terminal.client import TerminalClient
from recollect.memory.agents.address import key_header, service_address, uses_proxies
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen
from recollect.memory.values.mem_config import IN_MEMORY


@frozen
class TerminalConnection:
    """A client, and whether its service keeps its data in this DATA_DIR."""

    client: TerminalClient
    has_data_dir: bool


@contextmanager
def connection(told: CommandContext, url: str | None, *, may_be_new: bool = False) -> Generator[TerminalConnection]:
    """Provide the service at `url`; without one the owner of DATA_DIR, or a service of this process's own until exit.

    `may_be_new`: also where there is no DATA_DIR yet.

    Raises:
        ConfigurationError: `url` is none, DATA_DIR does not exist, or a setting stops the service.
    """
    if url is not None:
        with _elsewhere(url, told.api_key) as http:
            yield TerminalConnection(TerminalClient(http, place=url), has_data_dir=_serves_data_dir(told, url))
        return
    owner = serving_owner(told.config)
    if owner is not None:
        with client_at(owner.url or "", token=owner.token) as http:
            yield TerminalConnection(TerminalClient(http, place=owner.url or ""), has_data_dir=True)
        return
    if not may_be_new:
        check_there_is_something(told.config)
    from recollect.api.cli.terminal.embedded import embedded

    with (
        embedded(told.make_app, shutdown_seconds=told.config.shutdown_seconds) as own,
        client_at(own.url, token=own.token) as http,
    ):
        yield TerminalConnection(TerminalClient(http, place=own.url), has_data_dir=told.config.data_dir != IN_MEMORY)


def _elsewhere(url: str, api_key: str | None) -> httpx.Client:
    """Open a client of the service at `url`. The environment's proxies apply to other machines only."""
    address = service_address(url, named="--url", key_named="RECOLLECT_API_KEY")
    headers = key_header(api_key, named="RECOLLECT_API_KEY")
    return httpx.Client(base_url=address, headers=headers, trust_env=uses_proxies(address))


def _serves_data_dir(told: CommandContext, url: str) -> bool:
    """Tell whether the service at `url` is the owner of this DATA_DIR."""
    try:
        owner = serving_owner(told.config)
    except ConfigurationError:
        return False  # then it is not in use by a service, or is no folder of ours
    return owner is not None and _place(reachable(owner.url or "")) == _place(url)


def _place(url: str) -> str:
    return url.rstrip("/").replace("//localhost", "//127.0.0.1")
