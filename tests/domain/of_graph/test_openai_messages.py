from typing import Any

import pytest

from recollect.api.openai.messages import read_messages
from recollect.api.openai.tools import read_tools
from recollect.memory.values.errors import InvalidRequest

Json = dict[str, Any]

HI = {"role": "user", "content": "Hi."}
CALL = {"id": "c1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "noon"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


def wrong_field(messages: list[Json]) -> str:
    with pytest.raises(InvalidRequest) as raised:
        read_messages(messages)
    return raised.value.problems[0].field


def test_the_last_user_message_is_the_turns() -> None:
    read = read_messages(
        [{"role": "developer", "content": "Be brief."}, HI, {"role": "assistant", "content": "Yes?"}, HI]
    )
    assert [message["role"] for message in read.history] == ["system", "user", "assistant"]
    assert (read.message, read.content, read.rounds) == ("Hi.", None, ())


def test_what_stands_behind_it_are_rounds() -> None:
    read = read_messages([HI, CALLING, RESULT])
    assert read.history == ()
    assert [message["role"] for message in read.rounds] == ["assistant", "tool"]
    assert read.rounds[0]["tool_calls"] == [CALL]


def test_text_parts_become_one_text_and_others_go_on() -> None:
    text = [{"type": "text", "text": "Look:"}, {"type": "text", "text": "here."}]
    read = read_messages([{"role": "user", "content": text}])
    assert (read.message, read.content) == ("Look:\nhere.", None)
    read = read_messages([{"role": "user", "content": [*text, IMAGE]}])
    assert (read.message, read.content) == ("Look:\nhere.", [*text, IMAGE])


WRONG: list[tuple[list[Any], str]] = [
    ([{"content": "x"}], "messages.0.role"),
    ([{"role": "function", "content": "x"}], "messages.0.role"),
    ([{"role": ["user"], "content": "x"}], "messages.0.role"),
    ([{"role": "system", "content": "x"}], "messages"),
    ([{"role": "user"}], "messages.0.content"),
    ([HI, {"role": "user", "content": ""}], "messages.1.content"),
    ([{"role": "user", "content": "x" * 200_001}], "messages.0.content"),
    ([{"role": "user", "content": "a\x00b"}], "messages.0.content"),
    ([{"role": "user", "content": [IMAGE]}], "messages.0.content"),
    ([{"role": "user", "content": []}], "messages.0.content"),
    ([{"role": "user", "content": 7}], "messages.0.content"),
    ([{"role": "user", "content": ["x"]}], "messages.0.content.0"),
    ([{"role": "user", "content": [{"type": "text"}]}], "messages.0.content.0.text"),
    ([{"role": "user", "content": [{"type": "video"}]}], "messages.0.content.0"),
    ([{"role": "user", "content": [{"type": "image_url"}]}], "messages.0.content.0"),
    ([{"role": "system", "content": [IMAGE]}, HI], "messages.0.content.0"),
    ([HI, {"role": "tool", "content": "x"}], "messages.1.tool_call_id"),
    ([HI, RESULT], "messages.1.tool_call_id"),
    ([HI, CALLING], "messages.1.tool_calls"),
    ([HI, CALLING, HI], "messages.1.tool_calls"),
    ([HI, CALLING, RESULT, RESULT], "messages.3.tool_call_id"),
    ([HI, {"role": "assistant", "tool_calls": "x"}], "messages.1.tool_calls"),
    ([HI, {"role": "assistant", "tool_calls": [{"id": "c"}]}], "messages.1.tool_calls.0.function"),
    ([HI, {"role": "assistant", "tool_calls": [{**CALL, "id": 7}]}], "messages.1.tool_calls.0.id"),
]


@pytest.mark.parametrize(("messages", "field"), WRONG)
def test_the_first_field_that_is_wrong_is_named(messages: list[Json], field: str) -> None:
    assert wrong_field(messages) == field


def tool(name: Any) -> Json:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "x-own": 1}}}


def test_tools_are_passed_on_as_they_are() -> None:
    assert read_tools([tool("a"), tool("b")], "required") == (tool("a"), tool("b"))
    assert read_tools([tool("a")], {"type": "function", "function": {"name": "a"}}) == (tool("a"),)
    assert read_tools([], "none") == ()


@pytest.mark.parametrize(
    ("tools", "choice", "field"),
    [
        ([{"type": "custom", "custom": {"name": "a"}}], None, "tools.0.type"),
        ([{"type": "function"}], None, "tools.0.type"),
        ([tool("a"), tool("")], None, "tools.1.function.name"),
        ([tool(7)], None, "tools.0.function.name"),
        ([tool("search_memory")], None, "tools.0.function.name"),
        ([tool("a"), tool("remember_fact")], None, "tools.1.function.name"),
        ([tool("a"), tool("a")], None, "tools.1.function.name"),
        ([], "required", "tool_choice"),
        ([tool("a")], {"type": "function", "function": {"name": "b"}}, "tool_choice"),
        ([tool("a")], {"type": "function"}, "tool_choice"),
    ],
)
def test_tools_that_cannot_be_offered_are_refused(tools: list[Json], choice: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_tools(tools, choice)
    assert raised.value.problems[0].field == field
