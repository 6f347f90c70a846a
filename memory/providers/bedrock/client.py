"""Opens AWS's client of Bedrock. It blocks: each client has threads of its own for its calls."""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, cast

from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs]
from langchain_aws.utils import create_aws_client
from pydantic import SecretStr

from recollect.memory.providers.accounts import AwsAccount
from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen

THREADS = 16
"""So many calls at once; the rest wait in line, each within its own timeout."""
_CONNECT_SECONDS = 5.0
_MAX_ATTEMPTS = 2
"""One retry on the way to a reply, as with other providers."""


@frozen
class Bedrock:
    """An open client, the threads of its calls, and the options with which LangChain makes another client."""

    client: Any
    threads: ThreadPoolExecutor
    options: dict[str, Any]

    @property
    def address(self) -> str:
        """Return the address that the client asks."""
        return str(self.client.meta.endpoint_url)


@asynccontextmanager
async def open_bedrock(source: Endpoint, *, timeout_seconds: float) -> AsyncGenerator[Bedrock]:
    """Open a client of Bedrock in the account's region, closed at exit.

    Raises:
        ConfigurationError: AWS's settings are wrong.
    """
    bedrock = await asyncio.to_thread(_build, source, timeout_seconds)
    try:
        yield bedrock
    finally:
        # A call that nobody waits for any more ends by its own timeout; it holds up no stop.
        bedrock.threads.shutdown(wait=False, cancel_futures=True)
        bedrock.client.close()


def _build(source: Endpoint, timeout_seconds: float) -> Bedrock:
    """Build the client. It reads AWS's descriptions from disk: not on the event loop."""
    account = cast("AwsAccount", source.account)
    options: dict[str, Any] = {
        "region_name": account.region,
        "credentials_profile_name": account.profile,
        "aws_access_key_id": _secret(account.access_key_id),
        "aws_secret_access_key": _secret(account.secret_access_key),
        "aws_session_token": _secret(account.session_token),
        "endpoint_url": source.base_url or None,
        "config": Config(
            connect_timeout=min(_CONNECT_SECONDS, timeout_seconds),
            read_timeout=timeout_seconds,
            retries={"total_max_attempts": _MAX_ATTEMPTS},
            max_pool_connections=THREADS,
        ),
    }
    key = _secret(source.api_key if source.has_key else None)
    try:
        client: Any = create_aws_client("bedrock-runtime", api_key=key, **options)
    except ValueError as error:
        raise ConfigurationError(
            "AWS_PROFILE, AWS_REGION or AWS_ACCESS_KEY_ID is wrong: AWS's client cannot be made of them."
        ) from error
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="bedrock")
    return Bedrock(client, threads, {**options, "bedrock_api_key": key})


def _secret(text: str | None) -> SecretStr | None:
    return None if text is None else SecretStr(text)
