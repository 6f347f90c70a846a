"""The client's own history: only its last user message becomes a turn, and nothing is stored or given twice."""

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.chats import WEATHER, Chats, assistant, given, system, turn_id_of, user
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service
from tests.service.support.scripts import facts, texts


def said(running: Service, chats: Chats, thread: str = "t1") -> list[str]:
    return [text for _, text in texts(running, user=chats.user, thread=thread)]


def test_a_client_with_its_whole_history(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script("Hello Ada.", "Oolong.", "Green.")
    messages = [system("Be brief."), user("I'm Ada.")]
    for text in ("Which tea?", "And another?"):
        messages += [assistant(chats.text(*messages)), user(text)]
    chats.ask(*messages)
    whole = ["I'm Ada.", "Hello Ada.", "Which tea?", "Oolong.", "And another?", "Green."]
    assert said(served, chats) == whole
    assert given(model.chats[-1]) == whole[:-1]


def test_a_client_that_sends_its_last_message_gets_the_window(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script("One.", "Two.", "Three.")
    for text in ("First.", "Second.", "Third."):
        chats.ask(user(text))
    assert given(model.chats[-1]) == ["First.", "One.", "Second.", "Two.", "Third."]
    assert said(served, chats) == ["First.", "One.", "Second.", "Two.", "Third.", "Three."]


def test_a_past_that_is_not_stored_is_given_and_not_stored(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    teach(model, {"I moved to Rome.": [add("Rome", key="city")], "I live in Oslo.": [add("Oslo", key="city")]})
    past = (user("I live in Oslo."), assistant("Nice."))
    answer = chats.ask(*past, user("I moved to Rome."))
    assert given(model.chats[-1]) == ["I live in Oslo.", "Nice.", "I moved to Rome."]
    assert said(served, chats) == ["I moved to Rome.", "All right."]
    served.settled(turn_id_of(answer), user=chats.user)
    assert facts(served, user=chats.user) == {"city": "Rome"}


def test_an_edited_answer_is_given_and_not_stored(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script("Oolong.")
    chats.ask(user("Which tea?"))
    chats.ask(user("which TEA"), assistant("Sencha."), user("Why?"))
    assert given(model.chats[-1]) == ["which TEA", "Sencha.", "Why?"]
    assert said(served, chats) == ["Which tea?", "Oolong.", "Why?", "All right."]


def test_what_the_client_shows_is_not_found_again(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    for number in range(3):
        served.turn(f"My tea number {number} is oolong.", user=chats.user, wait_for_memory=True)
    history = [
        item for number in range(3) for item in (user(f"My tea number {number} is oolong."), assistant("All right."))
    ]
    answer = chats.ask(*history, user("Which tea is mine?"))
    assert (answer.model_extra or {})["memory_hits"] == []
    assert len(given(model.chats[-1])) == 7


def test_the_last_message_after_the_same_history_is_answered_anew(
    served: Service, model: FakeOpenAI, chats: Chats
) -> None:
    teach(model, {"I live in Oslo.": [add("Oslo", key="city")]})
    model.script("Hello.", "Old answer.", "New answer.", "Why indeed.")
    history = (user("Hi."), assistant("Hello."))
    chats.ask(user("Hi."))
    old = chats.ask(*history, user("I live in Oslo."))
    served.settled(turn_id_of(old), user=chats.user)
    new = chats.ask(*history, user("I live in Oslo."))
    assert turn_id_of(new) == turn_id_of(old)
    assert said(served, chats) == ["Hi.", "Hello.", "I live in Oslo.", "New answer."]
    assert given(model.chats[-1]) == ["Hi.", "Hello.", "I live in Oslo."]
    served.settled(turn_id_of(new), user=chats.user)
    assert facts(served, user=chats.user) == {"city": "Oslo"}
    chats.ask(*history, user("I live in Oslo."), assistant("New answer."), user("Why?"))
    assert said(served, chats)[-2:] == ["Why?", "Why indeed."]


def test_a_short_message_said_twice_is_two_turns(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script("Shall I?", "Really?", "Done.")
    messages = [user("Delete it.")]
    for _ in range(2):
        messages += [assistant(chats.text(*messages)), user("yes")]
    chats.ask(*messages)
    assert said(served, chats) == ["Delete it.", "Shall I?", "yes", "Really?", "yes", "Done."]


def test_the_only_turn_of_a_thread_is_answered_anew_in_a_stream(
    served: Service, model: FakeOpenAI, chats: Chats
) -> None:
    model.script("Old.", "New one.")
    chats.ask(user("Tell me a joke."))
    chunks = list(chats.stream(user("Tell me a joke.")))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "New one."
    assert said(served, chats) == ["Tell me a joke.", "New one."]


def test_an_answer_anew_that_calls_tools_keeps_the_old_one_until_it_is_there(
    served: Service, model: FakeOpenAI, chats: Chats
) -> None:
    model.script(
        "I don't know.", {"content": None, "tool_calls": [{"id": "c", "name": "get_weather", "arguments": "{}"}]}
    )
    asked = user("Does it rain?")
    chats.ask(asked, tools=[WEATHER])
    answer = chats.ask(asked, tools=[WEATHER])
    assert answer.choices[0].finish_reason == "tool_calls"
    assert said(served, chats) == ["Does it rain?", "I don't know."]
    message = answer.choices[0].message.model_dump(exclude_none=True)
    model.script("Yes.")
    chats.ask(asked, message, {"role": "tool", "tool_call_id": "c", "content": "rain"}, tools=[WEATHER])
    assert said(served, chats) == ["Does it rain?", "Yes."]


def test_a_thread_may_be_continued_by_either_door(served: Service, model: FakeOpenAI, chats: Chats) -> None:
    model.script("One.", "Two.", "Three.")
    served.turn("First.", user=chats.user)
    chats.ask(user("First."), assistant("One."), user("Second."))
    served.turn("Third.", user=chats.user)
    assert given(model.chats[-1]) == ["First.", "One.", "Second.", "Two.", "Third."]
