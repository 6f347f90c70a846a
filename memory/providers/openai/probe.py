"""Asks an OpenAI-compatible server about the models, for the check at start-up."""

import json
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, cast

import openai

from recollect.memory.providers.endpoint import Endpoint, known_dimension
from recollect.memory.providers.openai.client import model_ids, open_client
from recollect.memory.providers.probe import Wanted
from recollect.memory.providers.verdict import all_of, judge_status, key_refused, unreachable
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.mem_config import MemoryConfig

LIST_SECONDS = 2.0
_NO_SUCH_MODEL = frozenset({"model_not_found", "invalid_model", "model_not_exist"})


async def check_compatible(source: Endpoint, wanted: Wanted, config: MemoryConfig) -> None:
    """Ask for the list of models; ask each model that it does not settle for one token.

    Raises:
        ConfigurationError: as `probe.check_models`.
    """
    async with open_client(source, timeout_seconds=LIST_SECONDS) as client:
        check = _Check(client.with_options(max_retries=0), source)
        listed = await check.listed()
        if listed is None:
            return
        asks: list[Awaitable[None]] = [
            check.chat(name, setting) for name, setting in wanted.chats.items() if name not in listed
        ]
        model, stated = wanted.embedding, config.embedding_dimensions
        if model and (model not in listed or known_dimension(model, stated) is None):
            asks.append(check.embedding(model, stated))
        await all_of(asks)


@dataclass(frozen=True, slots=True)
class _Check:
    """Asks one OpenAI-compatible server."""

    client: openai.AsyncOpenAI
    source: Endpoint

    async def listed(self) -> set[str] | None:
        """Return the models that the server lists: empty without a readable list, None if it cannot be reached."""
        try:
            answer = await self.client.models.with_raw_response.list()
        except openai.APIStatusError as error:
            if error.status_code == 401:
                raise key_refused(self.source, 401) from None
            if error.status_code == 429 or (error.status_code >= 500 and error.status_code != 501):
                unreachable(error.status_code)
                return None
            return set()  # No such route, or not for this key: `check_compatible` asks the models.
        except openai.APIConnectionError:
            unreachable(None)
            return None
        # Azure lists base models, which say nothing of the deployments that have to be asked.
        return set() if self.source.protocol == "azure" else set(model_ids(answer.text))

    async def chat(self, model: str, setting: str) -> None:
        """Ask the chat model for one token."""
        await self._judged(
            self.client.chat.completions.with_raw_response.create(
                model=model, messages=[{"role": "user", "content": "Hi"}], max_tokens=1
            ),
            setting,
        )

    async def embedding(self, model: str, stated: int | None) -> None:
        """Ask for one word's vector, and compare its length with EMBEDDING_DIMENSIONS."""
        shortened = {"dimensions": stated} if stated and model.startswith("text-embedding-3") else {}
        answer = await self._judged(
            self.client.embeddings.with_raw_response.create(
                model=model, input="dimension", encoding_format="float", extra_body=shortened
            ),
            "EMBEDDING_MODEL",
        )
        found = _vector_length(answer.text) if answer is not None else None
        if stated and found and stated != found:
            raise ConfigurationError(
                f"EMBEDDING_DIMENSIONS is {stated}, but the embedding model's vectors have {found}: correct it."
            )

    async def _judged(self, question: Awaitable[Any], setting: str) -> Any:
        try:
            return await question
        except openai.APIStatusError as error:
            unknown = error.status_code == 404 or error.code in _NO_SUCH_MODEL
            judge_status(self.source, 404 if unknown else error.status_code, setting)
        except openai.APIConnectionError:
            unreachable(None)
        return None


def _vector_length(text: str) -> int | None:
    body = _parsed(text)
    try:
        return len(cast("Any", body)["data"][0]["embedding"])
    except (KeyError, IndexError, TypeError):
        return None


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None
