"""Reaches the stores for a command: over the routes of the service that has them open, if one runs."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
from pydantic import ValidationError

from recollect.api.schemas.answers import ErrorContent, ErrorDetail
from recollect.memory.opening.stores import data_dir_owner
from recollect.memory.values.errors import ConfigurationError, RecollectError
from recollect.memory.values.mem_config import IN_MEMORY, MemoryConfig

if TYPE_CHECKING:
    from recollect.memory.opening.stores import Owner

CONNECT_SECONDS = 5.0


class OwnerRefused(RecollectError):
    """The service refused the command."""


@contextmanager
def service(config: MemoryConfig, *, may_be_new: bool = False) -> Generator[httpx.Client | None]:
    """Provide a client of the service that has DATA_DIR open, or None where the command may open the stores itself.

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
        raise OwnerRefused(
            f"The service at {owner.url} (process {owner.pid}) has DATA_DIR open and does not answer "
            f"({type(error).__name__}); try again, or stop it."
        ) from error


def serving_owner(config: MemoryConfig) -> "Owner | None":
    """Return the process that serves DATA_DIR, or None where nobody has it open.

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
    """Open a client of a service of this machine, with its `token`. It waits for answers without a time limit."""
    return httpx.Client(
        base_url=reachable(url),
        headers=bearer(token),
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        trust_env=False,
    )


def bearer(token: str | None) -> dict[str, str]:
    """Return the header that shows the token."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def check_there_is_something(config: MemoryConfig) -> None:
    """Check that DATA_DIR exists: a command must not create the folder that it is to read.

    Raises:
        ConfigurationError: the documents are kept in DATA_DIR, and it does not exist.
    """
    if config.data_dir == IN_MEMORY:
        raise ConfigurationError("DATA_DIR=:memory: is its process's own; name a folder, or the service with --url.")
    if config.mongodb_url is None and not config.data_dir.is_dir():
        raise ConfigurationError(f"DATA_DIR {config.data_dir} does not exist; set the one that the service uses.")


def reachable(url: str) -> str:
    """Return the URL with an address that can be called where the service listens on all of them."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def read_answer(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON of an answer that was read.

    Raises:
        Refused: it is an error; its sentence is the service's own.
    """
    try:
        said = response.json()
    except ValueError as error:
        raise OwnerRefused(f"The service answered with status {response.status_code} and no JSON.") from error
    if not isinstance(said, dict):
        raise OwnerRefused(
            f"The service answered with status {response.status_code} and something else than asked for."
        )
    checked = check(said)  # pyright: ignore[reportUnknownArgumentType] - any JSON
    if not response.is_success:
        raise OwnerRefused(f"The service answered with status {response.status_code}.")
    return checked


def check(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the service's answer, unless it is an error.

    Raises:
        Refused: it is.
    """
    error = said.get("error")
    if error:
        raise OwnerRefused(_sentence(error))
    return dict(said)


def _sentence(error: Any) -> str:
    """Return an error's sentence, with the faults of the request's fields."""
    try:
        content = ErrorContent.model_validate(error)
    except ValidationError:
        return "The service refused it, and does not say why."
    problems = [f"({one.field} {one.problem})" for one in content.details or () if isinstance(one, ErrorDetail)]
    return " ".join([content.message, *problems])
