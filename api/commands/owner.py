"""How a command reaches the stores: over the routes of the service that has them open, if there is one."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
from pydantic import ValidationError

from api.answers import ErrorContent, ErrorDetail
from memory.errors import ConfigurationError, RecollectError
from memory.mem_config import MemoryConfig
from memory.opening_stores import data_dir_owner

if TYPE_CHECKING:
    from memory.opening_stores import Owner

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
    owner = serving_owner(config)
    if owner is None:
        if not may_be_new:
            check_there_is_something(config)
        yield None
        return
    try:
        with client_at(owner.url or "", token=owner.token) as client:
            yield client
    except httpx.TransportError as error:
        raise Refused(
            f"The service at {owner.url} (process {owner.pid}) has DATA_DIR open and does not answer "
            f"({type(error).__name__}); try again, or stop it."
        ) from error


def serving_owner(config: MemoryConfig) -> "Owner | None":
    """The process that serves DATA_DIR, or None where nobody has it open.

    Raises:
        ConfigurationError: a process without an address has it open.
    """
    owner = data_dir_owner(config)
    if owner is None or owner.url is not None:
        return owner
    process = f"process {owner.pid}" if owner.pid is not None else "another process"
    raise ConfigurationError(
        f"DATA_DIR {config.data_dir} is in use by {process}, which serves nobody; stop it and try again."
    )


def client_at(url: str, *, token: str | None) -> httpx.Client:
    """A client of a service of this machine, which knows `token`. It waits for answers as long as they take."""
    return httpx.Client(
        base_url=reachable(url),
        headers=bearer(token),
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        trust_env=False,
    )


def bearer(token: str | None) -> dict[str, str]:
    """The header that says who calls."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


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
        said = response.json()
    except ValueError as error:
        raise Refused(f"The service answered with status {response.status_code} and no JSON.") from error
    if not isinstance(said, dict):
        raise Refused(f"The service answered with status {response.status_code} and something else than asked for.")
    checked = check(said)  # pyright: ignore[reportUnknownArgumentType] - any JSON
    if not response.is_success:
        raise Refused(f"The service answered with status {response.status_code}.")
    return checked


def check(said: Mapping[str, Any]) -> dict[str, Any]:
    """What the service said, unless it is an error.

    Raises:
        Refused: it is.
    """
    error = said.get("error")
    if error:
        raise Refused(_sentence(error))
    return dict(said)


def _sentence(error: Any) -> str:
    """What an error says, and what is wrong with which field of the request."""
    try:
        content = ErrorContent.model_validate(error)
    except ValidationError:
        return "The service refused it, and does not say why."
    problems = [f"({one.field} {one.problem})" for one in content.details or () if isinstance(one, ErrorDetail)]
    return " ".join([content.message, *problems])
