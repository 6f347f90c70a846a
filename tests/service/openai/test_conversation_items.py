"""Items of conversations, with OpenAI's own Python client: put in, listed, read one by one."""

from typing import Any

import openai
import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.chats import error_of, given
from tests.service.support.lessons import add, teach
from tests.service.support.responses import ask
from tests.service.support.running import Service, until
from tests.service.support.scripts import facts, texts

Json = dict[str, Any]


def said(role: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": text}


@pytest.fixture
def conversations(client: openai.OpenAI) -> Any:
    """Return the client's conversations, typed to take any item."""
    return client.conversations


@pytest.fixture
def whose(user: str) -> Json:
    return {"extra_headers": {"X-Memory-User": user}}


def test_items_are_turns_and_are_learned_from(
    served: Service, model: FakeOpenAI, client: openai.OpenAI, conversations: Any, user: str, whose: Json
) -> None:
    teach(model, {"I live in Oslo.": [add("Oslo", key="city")]})
    first: Any = [said("system", "Be kind."), said("user", "I live in Oslo."), said("assistant", "Nice.")]
    made = conversations.create(items=first, **whose)
    parts: Any = [{"type": "input_text", "text": "And"}, {"type": "input_text", "text": "now?"}]
    more: Any = [said("assistant", "Anything else?"), {"role": "user", "content": parts}]
    added = conversations.items.create(made.id, items=more, **whose)
    assert [(item.type, item.role) for item in added.data] == [("message", "assistant"), ("message", "user")]
    assert (added.first_id, added.last_id, added.has_more) == (added.data[0].id, added.data[1].id, False)
    stored = [
        ("user", "I live in Oslo."),
        ("assistant", "Nice."),
        ("assistant", "Anything else?"),
        ("user", "And\nnow?"),
    ]
    assert texts(served, user=user, thread=made.id) == stored
    until(lambda: facts(served, user=user) == {"city": "Oslo"})
    model.script("Then Bergen.")
    ask(client, user, "Where to?", conversation=made.id)
    assert given(model.chats[-1]) == [text for _, text in stored] + ["Where to?"]


def test_items_come_in_pages_and_one_by_one(conversations: Any, user: str, whose: Json) -> None:
    first: Any = [said("user", "One."), said("assistant", "Two."), said("system", "Three."), said("assistant", "Four.")]
    last: Any = [said("user", "Five."), said("user", "Six.")]
    made = conversations.create(items=first, **whose)
    conversations.items.create(made.id, items=last, **whose)
    words = ["One.", "Three.", "Two.", "Four.", "Five.", "Six."]
    for order, expected in (("asc", words), ("desc", words[::-1])):
        for limit in range(1, 8):
            wanted: Any = {"order": order, "limit": limit, **whose}
            items: list[Any] = list(conversations.items.list(made.id, **wanted))
            assert [item.content[0].text for item in items] == expected, (order, limit)
    for item in conversations.items.list(made.id, **whose):
        assert conversations.items.retrieve(item.id, conversation_id=made.id, **whose) == item
    for conversation, item_id in ((made.id, "in_none"), (made.id, "nonsense"), ("none", f"in_{made.id}")):
        with pytest.raises(openai.NotFoundError):
            conversations.items.retrieve(item_id, conversation_id=conversation, **whose)
    with pytest.raises(openai.NotFoundError):
        conversations.items.create("none", items=last, **whose)
    with pytest.raises(openai.NotFoundError):
        conversations.items.list("none", **whose)
    with pytest.raises(openai.NotFoundError):
        conversations.items.create(made.id, items=last, extra_headers={"X-Memory-User": f"{user}-other"})


@pytest.mark.parametrize(
    ("items", "field"),
    [
        ([], "items"),
        ([said("user", "x")] * 21, "items"),
        ([said("system", "Be kind.")], "items"),
        ([said("user", "")], "items[0].content"),
        ([said("user", "Hi."), said("assistant", "a\x00b")], "items[1].content"),
        ([{"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"}], "items[0].type"),
    ],
)
def test_wrong_items_are_named_and_nothing_is_stored(
    served: Service, conversations: Any, user: str, whose: Json, items: Any, field: str
) -> None:
    made = conversations.create(**whose)
    with pytest.raises(openai.BadRequestError) as raised:
        conversations.items.create(made.id, items=items, **whose)
    assert error_of(raised.value)["param"] == field
    assert texts(served, user=user, thread=made.id) == []
