"""Checks PROVIDER=bedrock with AWS's own client against a scripted endpoint."""

import json
import struct
import sys
import zlib
from typing import Any

import pytest

from recollect.memory.ports.chat_model import ChatReply, ChatRequest, Usage
from recollect.memory.providers.catalog import open_chat_model, open_embedder
from recollect.memory.providers.probe import check_models
from recollect.memory.providers.roles import endpoint
from recollect.memory.values.errors import ConfigurationError, ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI
from tests.providers.requests import EXTRACT

pytest.importorskip("langchain_aws", reason="the extra `bedrock` is not installed")
from recollect.memory.providers.bedrock.client import open_bedrock

HI = ChatRequest([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}])
TOOL = {"toolUse": {"toolUseId": "c", "name": "record_decisions", "input": {"decisions": [1]}}}
ANSWER: dict[str, Any] = {
    "output": {"message": {"role": "assistant", "content": [{"text": "Let me see."}, TOOL]}},
    "stopReason": "tool_use",
    "usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10},
    "metrics": {"latencyMs": 1},
}
STREAM: list[tuple[str, dict[str, Any]]] = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"delta": {"text": "Let me "}, "contentBlockIndex": 0}),
    ("contentBlockDelta", {"delta": {"text": "see."}, "contentBlockIndex": 0}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("messageStop", {"stopReason": "end_turn"}),
    ("metadata", {"usage": {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}, "metrics": {"latencyMs": 1}}),
]


def framed(kind: str, body: dict[str, Any]) -> bytes:
    """Return one frame of AWS's event stream (vnd.amazon.eventstream)."""
    payload = json.dumps(body).encode()
    headers = b"".join(
        struct.pack(">B", len(name)) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in ((":event-type", kind), (":content-type", "application/json"), (":message-type", "event"))
    )
    prelude = struct.pack(">II", len(headers) + len(payload) + 16, len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


@pytest.fixture
def bedrock(fake: FakeOpenAI) -> MemoryConfig:
    return MemoryConfig(
        provider="bedrock",
        base_url=fake.url.removesuffix("/v1"),
        aws_region="eu-central-1",
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="aws-secret",
        chat_model="anthropic.claude-3-haiku-20240307-v1:0",
        embedding_model="amazon.titan-embed-text-v2:0",
        chat_timeout_seconds=5.0,
        embedding_timeout_seconds=5.0,
    )


async def test_an_answer_is_read(fake: FakeOpenAI, bedrock: MemoryConfig) -> None:
    asked = list[dict[str, Any]]()

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        asked.append(body)
        return ANSWER

    fake.on_other = answer
    async with open_chat_model(bedrock) as chat:
        await chat.ping()
        reply = await chat.complete(EXTRACT)
        await chat.complete(HI)
        assert await chat.models() == ["anthropic.claude-3-haiku-20240307-v1:0"]
    assert (reply.text, reply.usage) == ("Let me see.", Usage(7, 3))
    assert [(call.name, call.args) for call in reply.tool_calls] == [("record_decisions", {"decisions": [1]})]
    assert asked[-1]["system"] == [{"text": "Be kind."}]
    item = fake.requests[-1]
    assert item.path == "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse"
    assert "Credential=AKIDEXAMPLE/" in item.headers["authorization"]
    assert "/eu-central-1/bedrock/" in item.headers["authorization"]


async def test_it_streams(fake: FakeOpenAI, bedrock: MemoryConfig) -> None:
    fake.on_other = lambda body: b"".join(framed(kind, event) for kind, event in STREAM)
    async with open_chat_model(bedrock) as chat:
        pieces = [piece async for piece in chat.stream(HI)]
    reply = pieces[-1]
    assert pieces[:-1] == ["Let me ", "see."]
    assert isinstance(reply, ChatReply)
    assert (reply.text, reply.usage) == ("Let me see.", Usage(7, 3))


async def test_an_api_key_is_a_bearer_token_and_never_sent_in_clear(fake: FakeOpenAI, bedrock: MemoryConfig) -> None:
    config = bedrock.replace(aws_access_key_id=None, aws_secret_access_key=None, api_key="bedrock-key")
    source = endpoint(config)
    assert source is not None
    async with open_bedrock(source, timeout_seconds=5) as opened:
        assert opened.client.meta.config.auth_scheme_preference == "httpBearerAuth"
        assert opened.address == config.base_url
    async with open_chat_model(config) as chat:
        with pytest.raises(ModelUnavailable):
            await chat.complete(HI)
    assert fake.requests == []


async def test_texts_are_embedded(fake: FakeOpenAI, bedrock: MemoryConfig) -> None:
    fake.on_other = lambda body: {"embedding": [3.0, float(len(body["inputText"]))], "inputTextTokenCount": 1}
    async with open_embedder(bedrock) as embedder:
        assert embedder.model == "amazon.titan-embed-text-v2:0"
        assert await embedder.dimension() == 2
        fake.requests.clear()
        vectors = await embedder.embed_documents(["four", " ", "four"])
        assert vectors[0] == vectors[2] == pytest.approx([0.6, 0.8])
        assert vectors[1] == [0.0, 0.0]
    assert {item.path for item in fake.requests} == {"/model/amazon.titan-embed-text-v2%3A0/invoke"}


async def test_a_refusal_is_read_and_names_the_setting(fake: FakeOpenAI, bedrock: MemoryConfig) -> None:
    fake.fail(403, times=-1)
    async with open_chat_model(bedrock) as chat:
        with pytest.raises(ModelUnavailable, match="AWS_ACCESS_KEY_ID") as caught:
            await chat.complete(HI)
    assert not caught.value.outage
    with pytest.raises(ConfigurationError, match="AWS_ACCESS_KEY_ID"):
        await check_models(bedrock)
    fake.recover()
    fake.fail(404, times=-1)
    with pytest.raises(ConfigurationError, match=r"EMBEDDING_MODEL|CHAT_MODEL"):
        await check_models(bedrock)
    fake.recover()
    fake.fail(503, times=-1)
    await check_models(bedrock)


async def test_a_missing_package_names_the_extra(bedrock: MemoryConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_aws", None)
    with pytest.raises(ConfigurationError, match=r"pip install \"recollect\[bedrock\]\""):
        await open_chat_model(bedrock).__aenter__()
    with pytest.raises(ConfigurationError, match=r"recollect\[bedrock\]"):
        await open_embedder(bedrock).__aenter__()
