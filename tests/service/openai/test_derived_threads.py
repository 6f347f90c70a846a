"""Clients that name no thread and send their whole history: the thread is the one whose turns the history continues."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.fakes.openai_answers import call
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.chats import WEATHER, assistant, system, user
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service, model_settings, service
from tests.service.support.scripts import facts, hits, prompt, texts

Json = dict[str, Any]


@pytest.fixture(scope="module")
def deriving(tmp_path_factory: pytest.TempPathFactory, scripted_model: FakeOpenAI) -> Iterator[Service]:
    """Yield a service with a user for those who name none."""
    settings = model_settings(scripted_model.url, EMBEDDING_MODEL="fake-embed", DEFAULT_USER="eve")
    with service(tmp_path_factory.mktemp("deriving"), **settings) as running:
        yield running


@dataclass
class Talk:
    """One conversation at a client that keeps its history itself."""

    running: Service
    user: str
    path: str = "chat/completions"
    history: list[Json] = field(default_factory=list[Json])

    def say(self, text: str, **fields: Any) -> Json:
        """Send the history and the text; return what became of it, and go on from the answer."""
        asked = [*self.history, user(text)]
        body: Json = {"input": asked} if self.path == "responses" else {"messages": asked}
        answer = self.running.http.post(f"/v1/{self.path}", json={**body, "user": self.user, **fields})
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        if self.path == "responses":
            said = shown["output"][0]["content"][0]["text"]
        else:
            said = shown["choices"][0]["message"]["content"] or ""
        self.history = [*asked, assistant(said)]
        return shown["memory"]

    def back(self, turns: int) -> "Talk":
        """Return the conversation as it was so many turns before."""
        return Talk(self.running, self.user, self.path, self.history[: len(self.history) - 2 * turns])

    def stored(self, fate: Json) -> list[str]:
        return [text for _, text in texts(self.running, user=self.user, thread=fate["thread_id"])]


PATHS = pytest.mark.parametrize("path", ["chat/completions", "responses"])


@PATHS
def test_a_conversation_is_one_thread(deriving: Service, model: FakeOpenAI, user: str, path: str) -> None:
    talk = Talk(deriving, user, path, [system("Be kind.")] if path == "chat/completions" else [])
    first = talk.say("I live in Oslo.")
    assert (first["stored"], first["user_id"], first["reason"]) == (True, user, None)
    for text in ("yes", "yes", "And now?"):
        assert talk.say(text)["thread_id"] == first["thread_id"]
    assert talk.stored(first)[::2] == ["I live in Oslo.", "yes", "yes", "And now?"]
    other = Talk(deriving, user, path).say("I live in Rome.")
    assert other["thread_id"] != first["thread_id"]
    assert Talk(deriving, f"{user}-b", path).say("I live in Oslo.")["thread_id"] != first["thread_id"]


@PATHS
def test_twin_openings_read_as_one_until_one_is_continued(
    deriving: Service, model: FakeOpenAI, user: str, path: str
) -> None:
    model.script("Hello!", "Hi!", "Hi!", "One.", "Two.", "Three.")
    talk, twin = Talk(deriving, user, path), Talk(deriving, user, path)
    first = talk.say("Hello.")
    again = twin.say("Hello.")
    assert (again["thread_id"], again["turn_id"]) == (first["thread_id"], first["turn_id"]), "a regeneration"
    assert twin.stored(first) == ["Hello.", "Hi!"]
    assert twin.say("Go on.")["thread_id"] == first["thread_id"]
    late = Talk(deriving, user, path)
    second = late.say("Hello.")
    assert second["thread_id"] != first["thread_id"]
    assert late.say("Else.")["thread_id"] == second["thread_id"], "both have begun with the same words"
    assert twin.say("Go further.")["thread_id"] == first["thread_id"]
    assert late.stored(second)[::2] == ["Hello.", "Else."]


@PATHS
def test_an_edited_message_supersedes_the_turns_after_it(
    deriving: Service, model: FakeOpenAI, user: str, path: str
) -> None:
    teach(model, {"I live in Oslo.": [add("Oslo", key="city")], "My dog is Rex.": [add("Rex", key="dog")]})
    model.script("Hello!", "Nice.", "Woof.", "Good.")
    talk = Talk(deriving, user, path)
    thread = talk.say("Hello.")["thread_id"]
    left = [talk.say(text)["turn_id"] for text in ("I live in Oslo.", "My dog is Rex.")]
    for turn_id in left:
        deriving.settled(turn_id, user=user)
    assert facts(deriving, user=user) == {"city": "Oslo", "dog": "Rex"}
    edited = talk.back(2)
    fate = edited.say("I live in Rome.")
    assert (fate["thread_id"], fate["stored"]) == (thread, True)
    assert prompt(model.chats[-1]) == ["Hello.", "Hello!", "I live in Rome."]
    assert facts(deriving, user=user) == {}
    context = deriving.http.post("/api/context", json={"user_id": user, "thread_id": thread, "message": "Rex?"}).json()
    assert [message["content"] for message in context["window"]] == ["Hello.", "Hello!", "I live in Rome.", "Good."]
    found = hits(deriving, "My dog is Rex.", user=user, thread="elsewhere")
    assert found
    assert not {hit["turn_id"] for hit in found} & set(left)
    shown = deriving.http.get(f"/api/turns/{left[0]}", params={"user_id": user}).json()
    assert (shown["state"], shown["reply"]) == ("unfinished", None), "the user's own words are not lost"
    assert edited.say("And?")["thread_id"] == thread


@PATHS
def test_an_earlier_message_is_asked_again(deriving: Service, model: FakeOpenAI, user: str, path: str) -> None:
    model.script("Hello!", "One.", "Two.", "One, again.", "One, once more.")
    talk = Talk(deriving, user, path)
    first = talk.say("Hello.")
    for text in ("Count.", "Further."):
        talk.say(text)
    again = talk.back(2).say("Count.")
    assert again["thread_id"] == first["thread_id"]
    assert prompt(model.chats[-1]) == ["Hello.", "Hello!", "Count."]
    once_more = talk.back(2).say("Count.")
    assert once_more["turn_id"] == again["turn_id"]
    window = deriving.http.post(
        "/api/context", json={"user_id": user, "thread_id": first["thread_id"], "message": "?"}
    ).json()["window"]
    assert [message["content"] for message in window] == ["Hello.", "Hello!", "Count.", "One, once more."]


@PATHS
def test_an_edited_first_message_begins_a_new_thread(
    deriving: Service, model: FakeOpenAI, user: str, path: str
) -> None:
    talk = Talk(deriving, user, path)
    first = talk.say("Hello.")
    talk.say("Go on.")
    edited = Talk(deriving, user, path).say("Hello, you.")
    assert edited["thread_id"] != first["thread_id"]
    assert len(talk.stored(first)) == 4


def test_turns_of_any_door_are_continued(deriving: Service, model: FakeOpenAI, user: str) -> None:
    model.script("Welcome.")
    deriving.turn("I am Ada.", user=user, thread="mine")
    talk = Talk(deriving, user, history=[{"role": "user", "content": "i am  Ada."}, assistant("Welc")])
    assert talk.say("Who am I?")["thread_id"] == "mine", "a client that was stopped shows a part of the answer"
    assert talk.say("Sure?", memory_id="named")["thread_id"] == "named", "a thread that is named goes first"


@PATHS
def test_requests_at_once_are_one_thread(deriving: Service, model: FakeOpenAI, user: str, path: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        at_once = [pool.submit(Talk(deriving, user, path).say, "Hello, all.") for _ in range(4)]
        fates = [each.result() for each in at_once]
    assert len({fate["thread_id"] for fate in fates}) == 1
    assert len({fate["turn_id"] for fate in fates}) == 1
    assert Talk(deriving, user).stored(fates[0])[0] == "Hello, all."
    assert len(Talk(deriving, user).stored(fates[0])) == 2


def test_a_round_of_tools_is_of_the_thread_that_its_answer_begins(
    deriving: Service, model: FakeOpenAI, user: str
) -> None:
    model.script(call("get_weather", city="Oslo"), "It rains.")
    asked = [{"role": "user", "content": "The weather?"}]
    body: Json = {"messages": asked, "user": user, "tools": [WEATHER]}
    first = deriving.http.post("/v1/chat/completions", json=body).json()
    assert (first["memory"]["stored"], first["memory"]["reason"]) == (False, None)
    message = first["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "Rain."}
    second = deriving.http.post("/v1/chat/completions", json={**body, "messages": [*asked, message, result]}).json()
    assert second["memory"]["thread_id"] == first["memory"]["thread_id"]
    assert second["memory"]["stored"] is True


def test_what_is_not_to_be_kept_has_no_thread(deriving: Service, model: FakeOpenAI, user: str) -> None:
    fate = Talk(deriving, user, "responses").say("Secret.", store=False)
    assert (fate["stored"], fate["thread_id"], fate["reason"]) == (False, None, "store_false")
    nobody = deriving.http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hi."}]}).json()
    assert nobody["memory"]["user_id"] == "eve"


def test_without_the_setting_nothing_is_derived(served: Service, model: FakeOpenAI, user: str) -> None:
    assert Talk(served, user).say("Hello.")["reason"] == "no_thread"
    threads = {Talk(served, user, "responses").say("Hello.")["thread_id"] for _ in range(2)}
    assert len(threads) == 2
