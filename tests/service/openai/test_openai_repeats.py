"""A request that is sent again is one turn, whatever its history begins with, and a branch that was left stays away."""

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.service.openai.test_openai_history import said
from tests.service.support.chats import Chats, Json, assistant, given, system, turn_id_of, user
from tests.service.support.running import Service
from tests.service.support.scripts import texts

BEGINNINGS: dict[str, tuple[Json, ...]] = {
    "an assistant's greeting": (assistant("How may I help?"),),
    "few-shot examples": (system("Translate."), user("tea"), assistant("Tee"), user("milk"), assistant("Milch")),
    "a chat begun elsewhere": (user("I live in Oslo."), assistant("Nice.")),
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_the_same_request_twice_is_one_turn(served: Service, model: FakeOpenAI, chats: Chats, beginning: str) -> None:
    model.script("Old.", "New.", "Old too.", "New too.")
    history = BEGINNINGS[beginning]
    old = chats.ask(*history, user("Which tea?"))
    new = chats.ask(*history, user("Which tea?"))
    assert turn_id_of(new) == turn_id_of(old)
    assert said(served, chats) == ["Which tea?", "New."]
    longer = (*history, user("Which tea?"), assistant("New."))
    assert turn_id_of(chats.ask(*longer, user("Why?"))) == turn_id_of(chats.ask(*longer, user("Why?")))
    assert said(served, chats) == ["Which tea?", "New.", "Why?", "New too."]
    assert given(model.chats[-1])[-3:] == ["Which tea?", "New.", "Why?"]


def test_a_repeat_behind_an_edited_message_is_one_turn(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script("One.", "Two.", "Three.", "Three again.")
    chats.ask(user("First."))
    chats.ask(user("First."), assistant("One."), user("Second."))
    edited = (user("First."), assistant("One."), user("Second, edited."), assistant("Two, edited."))
    for _ in range(2):
        chats.ask(*edited, user("Third."))
    assert said(served, chats) == ["First.", "One.", "Second.", "Two.", "Third.", "Three again."]
    assert given(model.chats[-1]) == ["First.", "One.", "Second, edited.", "Two, edited.", "Third."]


def test_a_repeat_behind_another_answer_is_one_turn(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script("Oolong.", "Because.", "Because, again.")
    chats.ask(user("Which tea?"))
    for _ in range(2):
        chats.ask(user("Which tea?"), assistant("Sencha."), user("Why?"))
    assert said(served, chats) == ["Which tea?", "Oolong.", "Why?", "Because, again."]
    assert given(model.chats[-1]) == ["Which tea?", "Sencha.", "Why?"]


def test_the_same_message_after_another_history_is_a_turn_of_its_own(
    served: Service, model: FakeOpenAI, chats: Chats
) -> None:
    model.script("Shall I?", "Really?")
    greeting = assistant("How may I help?")
    chats.ask(greeting, user("yes"))
    chats.ask(greeting, user("yes"), assistant("Shall I?"), user("yes"))
    assert said(served, chats) == ["yes", "Shall I?", "yes", "Really?"]


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_a_clients_retries_of_what_failed_are_one_turn(
    served: Service, model: FakeOpenAI, chats: Chats, beginning: str
) -> None:
    request = {
        "messages": [*BEGINNINGS[beginning], user("Which tea?")],
        "user": chats.user,
        "memory_id": "t1",
    }
    model.fail(500, times=-1, path="chat/completions")
    for _ in range(3):
        assert served.http.post("/v1/chat/completions", json=request).status_code == 502
    model.recover()
    model.script("Oolong.")
    assert served.http.post("/v1/chat/completions", json=request).status_code == 200
    assert texts(served, user=chats.user) == [("user", "Which tea?"), ("assistant", "Oolong.")]


def test_a_branch_that_the_client_has_left_is_not_put_back(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script("One.", "Two.", "Three.", "Four.")
    first = (user("First."), assistant("One."))
    chats.ask(user("First."))
    chats.ask(*first, user("Second."))
    chats.ask(*first, user("Second, edited."))
    assert given(model.chats[-1]) == ["First.", "One.", "Second, edited."]
    chats.ask(user("Second, edited."), assistant("Three."), user("Third."))
    older = ["First.", "One.", "Second.", "Two."]
    assert given(model.chats[-1]) == [*older, "Second, edited.", "Three.", "Third."], "what is older is filled in"
