"""A turn goes before the updates of its user's earlier turns, as the model's server sees it."""

from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.lessons import chats_of, embeddings_of, extractions_of
from tests.service.support.running import Service, until

BEYOND = {"window": 1, "top_k": 5}
"""A window that does not show the whole thread: the turn embeds its message before its chat call."""


@dataclass(frozen=True)
class Recalling:
    """A turn that waits for the embedding of its question, and what another turn of its user is to teach meanwhile."""

    question: str
    lesson: str
    turn: Future[dict[str, Any]]


@contextmanager
def recalling(served: Service, model: FakeOpenAI, user: str) -> Generator[Recalling]:
    model.chat_seconds = 0.1  # with a model that answers at once a turn would take no way
    for said in ("I live by the sea.", "I like strong tea."):
        served.turn(said, user=user, wait_for_memory=True)
    question, lesson = f"Where does {user} live?", f"I, {user}, keep bees."  # no earlier test has cached its vector
    model.embedding_seconds = 0.6
    with ThreadPoolExecutor(1) as threads:
        turn = threads.submit(served.turn, question, user=user, memory=BEYOND)
        until(lambda: len(embeddings_of(model, question)) == 1)
        model.embedding_seconds = 0.0
        yield Recalling(question, lesson, turn)
        served.settled(turn.result()["turn_id"], user=user)  # so that no later test sees its calls


def test_an_update_begins_after_the_chat_call_of_a_turn_that_is_recalling(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    with recalling(served, model, user) as waits:
        taught = served.turn(waits.lesson, user=user, thread="t2", memory={"top_k": 0})
    served.settled(taught["turn_id"], user=user)
    (asked,), (learned,) = chats_of(model, waits.question), extractions_of(model, waits.lesson)
    bodies = [request.body for request in model.requests]
    assert bodies.index(asked) < bodies.index(learned)


def test_an_update_that_somebody_waits_for_goes_on_beside_a_recall(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    with recalling(served, model, user) as waits:
        taught = served.turn(waits.lesson, user=user, thread="t2", memory={"top_k": 0}, wait_for_memory=True)
        assert taught["memory"]["update"]["status"] == "done"
        assert not chats_of(model, waits.question)
