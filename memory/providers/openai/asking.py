"""Asks an OpenAI-compatible server's models for one token, or for one word's vector, for the check at start-up."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any

import aiohttp

from recollect.memory.providers.endpoint import Endpoint
from recollect.memory.providers.openai.plain_client import PlainClient, open_plain_client
from recollect.memory.providers.openai.plain_json import Refused, parsed
from recollect.memory.providers.probe import Wanted
from recollect.memory.providers.verdict import all_of, judge_status, unreachable
from recollect.memory.values.errors import ConfigurationError, ModelUnavailable
from recollect.memory.values.frozen import frozen

ASK_SECONDS = 2.0
_NO_SUCH_MODEL = frozenset({"model_not_found", "invalid_model", "model_not_exist"})


async def ask_models(source: Endpoint, wanted: Wanted, dimensions: int | None) -> None:
    """Ask each model of `wanted`; `dimensions` is EMBEDDING_DIMENSIONS.

    Raises:
        ConfigurationError: as `probe.check_models`.
    """
    async with open_plain_client(source, retries=0) as client:
        asking = _Asking(client, source)
        asks: list[Awaitable[None]] = [asking.chat(name, setting) for name, setting in wanted.chats.items()]
        if wanted.embedding:
            asks.append(asking.embedding(wanted.embedding, dimensions))
        await all_of(asks)


@frozen
class _Asking:
    """Asks the models of one OpenAI-compatible server."""

    client: PlainClient
    source: Endpoint

    async def chat(self, model: str, setting: str) -> None:
        """Ask the chat model for one token."""
        body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        await self._judged("/chat/completions", body, setting)

    async def embedding(self, model: str, stated: int | None) -> None:
        """Ask for one word's vector, and compare its length with EMBEDDING_DIMENSIONS."""
        body = {"model": model, "input": "dimension", "encoding_format": "float"}
        shortened = {"dimensions": stated} if stated and model.startswith("text-embedding-3") else {}
        found = _vector_length(await self._judged("/embeddings", {**body, **shortened}, "EMBEDDING_MODEL"))
        if stated and found and stated != found:
            raise ConfigurationError(
                f"EMBEDDING_DIMENSIONS is {stated}, but the embedding model's vectors have {found}: correct it."
            )

    async def _judged(self, path: str, body: Mapping[str, Any], setting: str) -> Any:
        """Return the model's answer; None where there is none that can be read."""
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await self.client.post(path, body)
        except Refused as error:
            unknown = error.status_code == 404 or _code(error) in _NO_SUCH_MODEL
            judge_status(self.source, 404 if unknown else error.status_code, setting)
        except (aiohttp.ClientError, OSError, ModelUnavailable):
            unreachable(None)
        except ValueError:
            pass  # no JSON: the model is there all the same
        return None


def _code(error: Refused) -> object:
    """Return the code in the body of a refusal, if it has one."""
    try:
        return parsed(str(error).encode())["error"]["code"]
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def _vector_length(answer: Any) -> int | None:
    try:
        return len(answer["data"][0]["embedding"])
    except (KeyError, IndexError, TypeError):
        return None
