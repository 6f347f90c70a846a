"""How a command reaches the stores: over the routes of the service that has them open, if there is one."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from memory.errors import ConfigurationError, RecollectError
from memory.mem_config import MemoryConfig
from memory.opening import data_dir_owner

CONNECT_SECONDS = 5.0


class Refused(RecollectError):
    """The service refused the command."""


@contextmanager
def service(config: MemoryConfig, *, may_be_new: bool = False) -> Generator[httpx.Client | None]:
    """A client of the service that has DATA_DIR open, or None where the command may open the stores itself.

    `may_be_new`: also where there is no DATA_DIR yet.

    Raises:
        ConfigurationError: DATA_DIR does not exist, or a process without an address has it open.
        Refused: the service refused a call, or cannot be reached.
    """
    owner = data_dir_owner(config)
    if owner is None:
        if not may_be_new:
            check_there_is_something(config)
        yield None
        return
    if owner.url is None:
        process = f"process {owner.pid}" if owner.pid is not None else "another process"
        raise ConfigurationError(
            f"DATA_DIR {config.data_dir} is in use by {process}, which serves nobody; stop it and try again."
        )
    try:
        with httpx.Client(
            base_url=reachable(owner.url), timeout=httpx.Timeout(None, connect=CONNECT_SECONDS), trust_env=False
        ) as client:
            yield client
    except httpx.TransportError as error:
        raise Refused(
            f"The service at {owner.url} (process {owner.pid}) has DATA_DIR open and does not answer "
            f"({type(error).__name__}); try again, or stop it."
        ) from error


def check_there_is_something(config: MemoryConfig) -> None:
    """A command must not make the folder that it is to look at.

    Raises:
        ConfigurationError: the documents are kept in DATA_DIR, and it does not exist.
    """
    if config.mongodb_url is None and not config.data_dir.is_dir():
        raise ConfigurationError(f"DATA_DIR {config.data_dir} does not exist; set the one that the service uses.")


def reachable(url: str) -> str:
    """The URL with an address that can be called where the service listens on all of them."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def answer(response: httpx.Response) -> dict[str, Any]:
    """The JSON of an answer that was read.

    Raises:
        Refused: it is an error; its sentence is the service's own.
    """
    try:
        said: dict[str, Any] = response.json()
    except ValueError as error:
        raise Refused(f"The service answered with status {response.status_code} and no JSON.") from error
    return check(said)


def check(said: Mapping[str, Any]) -> dict[str, Any]:
    """What the service said, unless it is an error.

    Raises:
        Refused: it is.
    """
    error = said.get("error")
    if error:
        raise Refused(error["message"])
    return dict(said)
