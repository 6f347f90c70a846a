"""Uses OpenAI's own Python client: one user's chat completions, and the prompts that the model got for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import openai
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.fakes.openai_answers import Body
from tests.service.support.scripts import prompt

Json = dict[str, Any]

WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass(frozen=True)
class Chats:
    """One user at a client. `thread` None: stateless."""

    client: openai.OpenAI
    user: str

    def ask(
        self, *messages: Json, thread: str | None = "t1", headers: Json | None = None, **fields: Any
    ) -> ChatCompletion:
        """Return a completion that must succeed."""
        answer: ChatCompletion = self._create(**self._request(messages, thread, headers, fields))
        assert answer.object == "chat.completion"
        return answer

    def stream(
        self, *messages: Json, thread: str | None = "t1", headers: Json | None = None, **fields: Any
    ) -> "openai.Stream[ChatCompletionChunk]":
        """Return the stream of a completion."""
        request = self._request(messages, thread, headers, {**fields, "stream": True})
        chunks: openai.Stream[ChatCompletionChunk] = self._create(**request)
        return chunks

    def text(self, *messages: Json, **fields: Any) -> str:
        """Return the answer's text."""
        return self.ask(*messages, **fields).choices[0].message.content or ""

    @property
    def _create(self) -> Any:
        """Return the client's call, typed to accept the service's own fields too."""
        return self.client.chat.completions.create

    def _request(self, messages: Sequence[Json], thread: str | None, headers: Json | None, fields: Json) -> Json:
        own = {name: fields.pop(name) for name in list(fields) if name.startswith("memory_")}
        extra = own if thread is None else {"memory_id": thread, **own}
        base: Json = {"model": "fake-chat", "messages": list(messages), "user": self.user}
        return {**base, "extra_body": extra, "extra_headers": headers or {}, **fields}


def user(text: Any) -> Json:
    return {"role": "user", "content": text}


def assistant(text: str) -> Json:
    return {"role": "assistant", "content": text}


def system(text: str) -> Json:
    return {"role": "system", "content": text}


def turn_id_of(answer: ChatCompletion | ChatCompletionChunk) -> str:
    return answer.id.removeprefix("chatcmpl-")


def hits_of(answer: ChatCompletion | ChatCompletionChunk) -> list[Json]:
    extra = answer.model_extra or {}
    found: list[Json] = extra["memory_hits"]
    return found


def error_of(raised: openai.APIStatusError) -> Json:
    """Return the error's content, in OpenAI's form."""
    body = raised.body
    assert isinstance(body, dict)
    error = dict[str, Any](body)  # pyright: ignore[reportUnknownArgumentType] - any JSON
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"].endswith(".")
    return error


def given(chat: Body) -> list[str]:
    """Return the texts that the model got behind its system message."""
    return prompt(chat)


def instructions(chat: Body) -> str:
    """Return the system message that the model got."""
    text: str = chat["messages"][0]["content"]
    return text
