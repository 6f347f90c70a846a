import json
import sys
from dataclasses import replace
from typing import Any

import pytest

from recollect.memory.options.model_choice import ModelChoice, check_choice
from recollect.memory.ports.chat_model import ChatRequest, Usage
from recollect.memory.providers.catalog import open_chat_model
from recollect.memory.providers.chat_messages import to_langchain
from recollect.memory.providers.langchain_chat import NativeDialect
from recollect.memory.providers.native_chat import build_native_chat
from recollect.memory.providers.presets import PRESETS
from recollect.memory.providers.roles import endpoint
from recollect.memory.values.errors import ConfigurationError, InvalidRequest, ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI
from tests.providers.requests import DECIDE, EXTRACT, HELLO

PROVIDERS = {"anthropic": "claude-some", "gemini": "gemini-some"}
PACKAGES = {"anthropic": "langchain_anthropic", "gemini": "langchain_google_genai"}

TALK = ChatRequest(
    messages=[
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi!"},
        {"role": "system", "content": "Known: Rex."},
        {"role": "user", "content": "Who?"},
    ]
)


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    pytest.importorskip(PACKAGES[name], reason=f"the extra `{name}` is not installed")
    return name


def configured(provider: str, base_url: str | None = None) -> MemoryConfig:
    return MemoryConfig(
        provider=provider, api_key="k", base_url=base_url, chat_model=PROVIDERS[provider], chat_timeout_seconds=5
    )


def test_all_system_messages_become_the_first() -> None:
    converted = to_langchain(TALK.messages, one_system=True)
    assert [(item.type, item.text) for item in converted] == [
        ("system", "Be kind.\n\nKnown: Rex."),
        ("human", "Hello"),
        ("ai", "Hi!"),
        ("human", "Who?"),
    ]
    assert [item.type for item in to_langchain(TALK.messages)] == ["system", "human", "ai", "system", "human"]
    assert [item.type for item in to_langchain(TALK.messages[1:3], one_system=True)] == ["human", "ai"]


async def test_it_is_built_without_a_network(provider: str) -> None:
    async with open_chat_model(configured(provider)) as chat:
        assert chat.name == PROVIDERS[provider]
        assert chat.calls_tools


async def test_tools_take_the_provider_s_own_form(provider: str) -> None:
    source = endpoint(configured(provider))
    assert source is not None
    model = build_native_chat(source, model=PROVIDERS[provider], timeout_seconds=5)
    bound, options = NativeDialect(json_options={"a": 1}).prepare(model, EXTRACT)
    assert options == {}
    assert DECIDE["function"]["name"] in repr(bound)
    assert NativeDialect(json_options={"a": 1}).prepare(model, ChatRequest(HELLO.messages, json_mode=True)) == (
        model,
        {"a": 1},
    )


ANSWERS = {
    "anthropic": {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-some-1",
        "content": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "c", "name": "record_decisions", "input": {"decisions": [1]}},
        ],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 7, "output_tokens": 3},
    },
    "gemini": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Let me see."},
                        {"functionCall": {"id": "c", "name": "record_decisions", "args": {"decisions": [1]}}},
                    ],
                },
                "finishReason": "STOP",
            }
        ],
        "modelVersion": "gemini-some-1",
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10},
    },
}


async def test_an_answer_is_read(provider: str, fake: FakeOpenAI) -> None:
    fake.on_other = lambda body: ANSWERS[provider]
    config = configured(provider, fake.url.removesuffix("/v1"))
    async with open_chat_model(config) as chat:
        first = await chat.complete(EXTRACT)
    async with open_chat_model(config) as chat:  # the first one's connections are closed
        reply = await chat.complete(EXTRACT)
    assert first == reply
    assert (reply.text, reply.usage) == ("Let me see.", Usage(7, 3))
    assert [(call.name, call.args) for call in reply.tool_calls] == [("record_decisions", {"decisions": [1]})]
    assert reply.model.endswith("-some-1")


async def test_a_provider_s_refusal_is_read(provider: str, fake: FakeOpenAI) -> None:
    config = configured(provider, fake.url.removesuffix("/v1"))
    async with open_chat_model(config) as chat:
        await chat.ping()
        fake.fail(401, times=-1)
        with pytest.raises(ModelUnavailable) as caught:
            await chat.complete(TALK)
        assert not caught.value.outage
        assert (PRESETS[provider].key_variable or "?") in caught.value.message
        fake.recover()
        fake.fail(503, times=-1)
        with pytest.raises(ModelUnavailable) as caught:
            await chat.complete(TALK)
        assert caught.value.outage


async def test_a_missing_package_names_the_extra(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[provider], None)
    with pytest.raises(ConfigurationError, match=rf"recollect\[{provider}\]"):
        await open_chat_model(configured(provider)).__aenter__()


async def test_a_chat_clients_wishes_are_put_in_the_provider_s_words(provider: str, fake: FakeOpenAI) -> None:
    asked = list[dict[str, Any]]()

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        asked.append(body)
        return ANSWERS[provider]

    fake.on_other = answer
    said: dict[str, Any] = {
        "temperature": 0.5,
        "max_tokens": 7,
        "stop": "END",
        "tool_choice": "required",
        "seed": 3,
        "logit_bias": {},
    }
    wishes = replace(EXTRACT, tool_choice=None, parameters=said, model="another-model")
    async with open_chat_model(configured(provider, fake.url.removesuffix("/v1"))) as chat:
        reply = await chat.complete(wishes)
        assert await chat.models() == [PROVIDERS[provider]]
        unchanged = await chat.complete(EXTRACT)
    sent = json.dumps(asked[0])
    assert (reply.text, reply.finish_reason) == ("Let me see.", "stop")
    assert reply.tool_calls == unchanged.tool_calls
    settings = asked[0] if provider == "anthropic" else asked[0]["generationConfig"]
    names = {"anthropic": ("max_tokens", "stop_sequences"), "gemini": ("maxOutputTokens", "stopSequences")}
    assert (settings["temperature"], settings[names[provider][0]]) == (0.5, 7)
    assert settings[names[provider][1]] == ["END"]
    assert "any" in sent.lower()
    assert "another-model" in (sent if provider == "anthropic" else fake.requests[0].path)
    assert "logit_bias" not in sent


async def test_it_tells_which_parameters_it_has_no_word_for(provider: str) -> None:
    async with open_chat_model(configured(provider)) as chat:
        unknown = chat.unknown_parameters(["temperature", "top_p", "top_k", "max_tokens", "stop", "seed", "logit_bias"])
        assert unknown == {"anthropic": ["seed", "logit_bias"], "gemini": ["logit_bias"]}[provider]
        # It keeps no list of its models, so that any may be chosen.
        await check_choice(chat, ModelChoice(model="another", parameters={"temperature": 0.5}))
        with pytest.raises(InvalidRequest) as refused:
            await check_choice(chat, ModelChoice(parameters={"logit_bias": {"5": 1}}))
    assert [problem.field for problem in refused.value.problems] == ["parameters.logit_bias"]


async def test_its_further_parameters_reach_it(provider: str, fake: FakeOpenAI) -> None:
    asked = list[dict[str, Any]]()

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        asked.append(body)
        return ANSWERS[provider]

    fake.on_other = answer
    said: dict[str, Any] = {"top_k": 3, **({} if provider == "anthropic" else {"seed": 5, "presence_penalty": 0.5})}
    async with open_chat_model(configured(provider, fake.url.removesuffix("/v1"))) as chat:
        await chat.complete(replace(TALK, parameters=said))
    names = {"top_k": "topK", "presence_penalty": "presencePenalty"} if provider == "gemini" else {}
    sent = asked[0] if provider == "anthropic" else asked[0]["generationConfig"]
    assert {name: sent[names.get(name, name)] for name in said} == said
