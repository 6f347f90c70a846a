import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import cast

import pytest
from langgraph.graph import START, StateGraph  # pyright: ignore[reportMissingTypeStubs]
from typing_extensions import TypedDict

from recollect.memory.ports.chat_model import ChatModel, ChatReply, ChatRequest, Usage
from recollect.memory.providers.catalog import open_chat_model, open_extraction_chats
from recollect.memory.providers.openai.events import event_data
from recollect.memory.values.errors import ModelTimeout, ModelUnavailable
from recollect.memory.values.mem_config import MemoryConfig
from tests.fakes.openai_server import FakeOpenAI, call
from tests.providers.requests import AS_JSON, DECIDE, EXTRACT, HELLO, SEARCH, WITH_TOOLS, streamed


async def test_a_reply_brings_text_model_and_usage(chat: ChatModel, fake: FakeOpenAI) -> None:
    reply = await chat.complete(HELLO)
    assert reply == ChatReply("All right.", "fake-chat", usage=Usage(10, 2))
    sent = fake.chats[0]
    assert sent["messages"] == [{"content": "Be kind.", "role": "system"}, {"content": "Hello", "role": "user"}]
    assert "tools" not in sent
    assert "extra_body" not in sent
    assert fake.requests[0].headers["authorization"] == "Bearer none-needed"


async def test_a_stream_yields_pieces_then_the_same_reply(chat: ChatModel, fake: FakeOpenAI) -> None:
    fake.script("The dog is called Rex.")
    pieces, reply = await streamed(chat, HELLO)
    assert len(pieces) == 5
    assert "".join(pieces) == reply.text == "The dog is called Rex."
    assert (reply.model, reply.usage) == ("fake-chat", Usage(10, 2))
    assert fake.chats[0]["messages"][1] == {"content": "Hello", "role": "user"}


async def test_tool_calls_come_whole_in_both_forms(chat: ChatModel, fake: FakeOpenAI) -> None:
    fake.script(call("search_memory", query="Rex"), call("search_memory", query="Rex"))
    plain = await chat.complete(WITH_TOOLS)
    _, in_pieces = await streamed(chat, WITH_TOOLS)
    for reply in (plain, in_pieces):
        assert [(item.id, item.name, item.args) for item in reply.tool_calls] == [
            ("call_search_memory", "search_memory", {"query": "Rex"})
        ]
    assert [body["tools"] for body in fake.chats] == [[SEARCH], [SEARCH]]
    assert all("tool_choice" not in body for body in fake.chats)


async def test_several_streamed_calls_stay_apart(chat: ChatModel, fake: FakeOpenAI) -> None:
    calls = [{"id": f"c{n}", "name": "search_memory", "arguments": json.dumps({"query": f"q{n}"})} for n in range(3)]
    fake.script({"content": "Let me see.", "tool_calls": calls})
    _, reply = await streamed(chat, WITH_TOOLS)
    assert reply.text == "Let me see."
    assert [(item.id, item.args) for item in reply.tool_calls] == [(f"c{n}", {"query": f"q{n}"}) for n in range(3)]


async def test_a_named_tool_goes_out_in_openai_s_form(chat: ChatModel, fake: FakeOpenAI) -> None:
    fake.decide([{"decision": "add"}])
    reply = await chat.complete(EXTRACT)
    assert fake.extractions[0]["tool_choice"] == {"type": "function", "function": {"name": "record_decisions"}}
    assert fake.extractions[0]["tools"] == [DECIDE]
    assert reply.tool_calls[0].args == {"decisions": [{"decision": "add"}]}


async def test_json_mode_asks_for_an_object(chat: ChatModel, fake: FakeOpenAI) -> None:
    reply = await chat.complete(AS_JSON)
    assert fake.chats[0]["response_format"] == {"type": "json_object"}
    assert json.loads(reply.text) == {"decisions": []}


@pytest.mark.parametrize("arguments", ['{"query": "Re', "no json", "[1, 2]", '"text"', "", "null"])
async def test_arguments_that_are_no_object_are_empty(chat: ChatModel, fake: FakeOpenAI, arguments: str) -> None:
    broken = {"content": "", "tool_calls": [{"id": "c", "name": "search_memory", "arguments": arguments}]}
    fake.script(broken, broken)
    _, in_pieces = await streamed(chat, WITH_TOOLS)
    assert [(item.name, item.args) for item in in_pieces.tool_calls] == [("search_memory", {})]
    plain = await chat.complete(WITH_TOOLS)
    assert [(item.name, item.args) for item in plain.tool_calls] == [("search_memory", {})]


async def test_a_tool_round_is_sent_as_openai_wants_it(chat: ChatModel, fake: FakeOpenAI) -> None:
    function = {"name": "search_memory", "arguments": '{"query": "Rex"}'}
    request = ChatRequest(
        messages=[
            *HELLO.messages,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "Rex is a dog."},
        ],
        tools=[SEARCH],
    )
    await chat.complete(request)
    asked, answered = fake.chats[0]["messages"][2:]
    assert asked["tool_calls"] == [{"id": "c", "type": "function", "function": function}]
    assert answered == {"content": "Rex is a dog.", "role": "tool", "tool_call_id": "c"}


@pytest.mark.parametrize(
    ("status", "outage", "named"),
    [
        (400, False, "CHAT_MODEL"),
        (401, False, "OPENAI_API_KEY"),
        (402, False, "CHAT_MODEL"),
        (403, False, "OPENAI_API_KEY"),
        (404, False, "CHAT_MODEL"),
        (422, False, "CHAT_MODEL"),
        (429, True, "429"),
        (500, True, "500"),
        (503, True, "503"),
    ],
)
@pytest.mark.parametrize("form", ["plain", "stream"])
async def test_a_status_becomes_an_outage_or_a_refusal(
    chat: ChatModel, fake: FakeOpenAI, status: int, outage: bool, named: str, form: str
) -> None:
    fake.fail(status, times=-1)
    with pytest.raises(ModelUnavailable) as caught:
        await (chat.complete(HELLO) if form == "plain" else streamed(chat, HELLO))
    assert caught.value.outage is outage
    assert named in caught.value.message
    assert "scripted" not in caught.value.message
    assert len(fake.requests) == (2 if outage else 1)
    assert caught.value.__cause__ is None


async def test_a_preset_s_own_key_is_named(fake: FakeOpenAI, config: MemoryConfig) -> None:
    fake.fail(401, times=-1)
    groq = config.replace(provider="groq", api_key="k", extraction_model="other,another")
    async with open_chat_model(groq) as chat:
        with pytest.raises(ModelUnavailable, match="GROQ_API_KEY"):
            await chat.complete(HELLO)
    fake.recover()
    fake.fail(404, times=-1)
    async with open_extraction_chats(groq) as extraction:
        assert [model.name for model in extraction.models] == ["other", "another"]
        for model in extraction.models:
            with pytest.raises(ModelUnavailable, match="EXTRACTION_MODEL"):
                await model.complete(HELLO)


async def test_another_model_of_the_same_provider_is_opened_by_its_name(fake: FakeOpenAI, config: MemoryConfig) -> None:
    async with open_extraction_chats(config) as extraction:
        assert extraction.open_named is not None
        async with extraction.open_named("fresh") as chat:
            assert (await chat.complete(HELLO)).text == "All right."
    assert [body["model"] for body in fake.chats] == ["fresh"]


GARBAGE: list[bytes | dict[str, object]] = [
    b"<html>It works!</html>",
    b"",
    b"{",
    b"null",
    {"choices": None},
    {"choices": []},
    {"choices": [{"index": 0}]},
    {"id": "x"},
    {"choices": [{"index": 0, "message": {"role": "assistant", "content": ""}}]},
    {"choices": [{"index": 0, "message": {"role": "assistant", "content": 7}}]},
    {"error": {"message": "secret words"}},
]


@pytest.mark.parametrize("answer", GARBAGE, ids=range(len(GARBAGE)))
async def test_an_answer_that_nobody_understands_is_a_refusal(
    chat: ChatModel, fake: FakeOpenAI, answer: bytes | dict[str, object]
) -> None:
    fake.on_chat = lambda body: answer
    with pytest.raises(ModelUnavailable) as caught:
        print(await chat.complete(HELLO))  # noqa: T201 - shown where nothing was raised
    assert not caught.value.outage
    assert "secret" not in caught.value.message
    with pytest.raises(ModelUnavailable):
        await streamed(chat, HELLO)


async def test_an_error_inside_a_good_status_is_read(chat: ChatModel, fake: FakeOpenAI) -> None:
    fake.on_chat = lambda body: {"error": {"message": "too busy", "code": 429}, "choices": None}
    with pytest.raises(ModelUnavailable) as caught:
        await chat.complete(HELLO)
    assert caught.value.outage


async def test_a_lost_connection_is_an_outage(chat: ChatModel, fake: FakeOpenAI) -> None:
    fake.drop(times=-1)
    for work in (chat.complete(HELLO), streamed(chat, HELLO), chat.ping()):
        with pytest.raises(ModelUnavailable) as caught:
            await work
        assert caught.value.outage


async def test_a_stream_that_breaks_off_is_an_outage(chat: ChatModel, fake: FakeOpenAI) -> None:
    fake.piece_seconds = 0.05
    fake.script(" ".join(["word"] * 100))
    stream = chat.stream(HELLO)
    assert await anext(stream) == "word "
    fake.cut()
    with pytest.raises(ModelUnavailable) as caught:
        await anext(item async for item in stream if isinstance(item, ChatReply))
    assert caught.value.outage


class Asked(TypedDict):
    number: int


@pytest.mark.parametrize("request_", [HELLO, WITH_TOOLS, EXTRACT, AS_JSON])
async def test_inside_a_streamed_graph_the_reply_is_the_same(
    chat: ChatModel, fake: FakeOpenAI, request_: ChatRequest
) -> None:
    replies: list[ChatReply] = []

    async def agent(state: Asked) -> Asked:
        replies.append(await chat.complete(request_))
        return state

    graph = StateGraph(Asked).add_node("agent", agent).add_edge(START, "agent").compile()  # pyright: ignore[reportUnknownMemberType]
    if request_ is WITH_TOOLS:
        fake.script(*[call("search_memory", query="Rex")] * 2)
    modes = [mode async for mode, _ in graph.astream({"number": 1}, stream_mode=["messages", "updates"])]  # pyright: ignore[reportUnknownMemberType]
    assert modes[-1] == "updates"
    assert replies == [await chat.complete(request_)]
    assert fake.requests[0].body.get("stream") is True


async def test_one_lost_connection_is_mended_by_the_retry(chat: ChatModel, fake: FakeOpenAI) -> None:
    fake.drop()
    assert (await chat.complete(HELLO)).text == "All right."


async def test_a_server_elsewhere_is_asked_through_the_environment_s_proxy(
    fake: FakeOpenAI, config: MemoryConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", fake.url.removesuffix("/v1"))
    async with open_chat_model(config.replace(base_url="http://model.invalid/v1")) as chat:
        assert (await chat.complete(HELLO)).text == "All right."
    assert fake.requests[0].headers["host"] == "model.invalid"


@pytest.mark.parametrize("answer", [429, 500, 503])
async def test_a_passing_refusal_is_asked_once_more(chat: ChatModel, fake: FakeOpenAI, answer: int) -> None:
    fake.fail(answer, times=1)
    assert (await chat.complete(HELLO)).text == "All right."
    assert len(fake.requests) == 2


async def test_a_call_is_bounded_as_a_whole(fake: FakeOpenAI, config: MemoryConfig) -> None:
    async with open_chat_model(config.replace(chat_timeout_seconds=0.2)) as chat:
        fake.hang()
        with pytest.raises(ModelTimeout, match="CHAT_TIMEOUT_SECONDS"):
            await chat.complete(HELLO)
        fake.release()
        fake.piece_seconds = 0.03
        fake.script("one two three four five six seven eight nine ten eleven twelve thirteen")
        stream = chat.stream(HELLO)
        assert await anext(stream) == "one "
        with pytest.raises(ModelTimeout):
            await anext(item async for item in stream if isinstance(item, ChatReply))
        await fake.until(lambda: fake.requests[-1].abandoned)


@pytest.mark.parametrize("way", ["close", "cancel"])
async def test_an_abandoned_stream_closes_its_connection(chat: ChatModel, fake: FakeOpenAI, way: str) -> None:
    fake.piece_seconds = 0.02
    fake.script(" ".join(["word"] * 400))
    stream = cast("AsyncGenerator[str | ChatReply]", chat.stream(HELLO))
    first = await anext(stream)
    assert first == "word "
    if way == "close":
        await stream.aclose()
    else:
        reading = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    await fake.until(lambda: fake.requests[-1].abandoned)


@pytest.mark.parametrize("status", [400, 404, 422])
@pytest.mark.parametrize("form", ["plain", "stream"])
async def test_a_model_without_tools_is_asked_without_them(
    chat: ChatModel, fake: FakeOpenAI, caplog: pytest.LogCaptureFixture, status: int, form: str
) -> None:
    fake.on_chat = lambda body: status if body.get("tools") else None
    assert chat.calls_tools
    with caplog.at_level(logging.WARNING, logger="recollect.memory"):
        for _ in range(2):
            reply = await chat.complete(WITH_TOOLS) if form == "plain" else (await streamed(chat, WITH_TOOLS))[1]
            assert reply.text == "All right."
    assert not chat.calls_tools
    assert ["tools" in body for body in fake.chats] == [True, False, False]
    assert [getattr(record, "action", None) for record in caplog.records] == ["tools_refused"]


async def test_a_refusal_that_tools_do_not_explain_teaches_nothing(chat: ChatModel, fake: FakeOpenAI) -> None:
    fake.fail(400, times=2)
    with pytest.raises(ModelUnavailable):
        await chat.complete(WITH_TOOLS)
    assert chat.calls_tools
    assert (await chat.complete(WITH_TOOLS)).text == "All right."


async def test_a_refused_extraction_tells_whether_tools_are_to_blame(chat: ChatModel, fake: FakeOpenAI) -> None:
    answers = iter(["tool_choice must be auto", "registry/gemma does not support tools"])
    fake.on_chat = lambda body: {"status": 400, "error": {"message": next(answers)}, "choices": None}
    for still_offered in (True, False):
        with pytest.raises(ModelUnavailable) as caught:
            await chat.complete(EXTRACT)
        assert not caught.value.outage
        assert chat.calls_tools is still_offered


async def test_an_ignored_tool_choice_is_no_error(chat: ChatModel, fake: FakeOpenAI) -> None:
    fake.on_chat = lambda body: {"content": ""}
    reply = await chat.complete(EXTRACT)
    assert (reply.text, reply.tool_calls) == ("", ())


async def test_ping_spends_no_tokens(chat: ChatModel, fake: FakeOpenAI) -> None:
    await chat.ping()
    fake.models = None
    await chat.ping()
    fake.fail(401)
    await chat.ping()
    assert {item.path for item in fake.requests} == {"/v1/models"}
    fake.fail(503)
    with pytest.raises(ModelUnavailable):
        await chat.ping()


async def test_forty_calls_at_once_share_the_client(chat: ChatModel, fake: FakeOpenAI) -> None:
    fake.chat_seconds = 0.1
    loop = asyncio.get_running_loop()
    began = loop.time()
    replies = await asyncio.gather(*(chat.complete(HELLO) for _ in range(40)))
    assert [reply.text for reply in replies] == ["All right."] * 40
    assert loop.time() - began < 2.0


STREAM = b': hello\r\nevent: chunk\r\ndata: {"a":\r\ndata: 1}\r\n\r\n\ndata:two\n\ndata: [DONE]\n\ndata: late'


@pytest.mark.parametrize("size", [1, 2, 7, len(STREAM)])
async def test_events_are_the_same_in_whatever_pieces_they_come(size: int) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(STREAM), size):
            yield STREAM[start : start + size]

    read = [data async for data in event_data(pieces())]
    assert read == [b'{"a":\n1}', b"two", b"[DONE]", b"late"]


@pytest.mark.parametrize(("error", "outage"), [({"message": "secret words"}, True), ({"code": 404}, False)])
async def test_an_error_in_a_stream_breaks_it_off(
    chat: ChatModel, fake: FakeOpenAI, error: dict[str, object], outage: bool
) -> None:
    said = b'data: {"choices": [{"delta": {"content": "Well"}}]}\n\n'
    fake.on_chat = lambda body: said + b"data: " + str({"error": error}).replace("'", '"').encode() + b"\n\n"
    with pytest.raises(ModelUnavailable) as caught:
        await streamed(chat, HELLO)
    assert caught.value.outage is outage
    assert "secret" not in caught.value.message
