"""A turn goes before the updates of its user's earlier turns, as the model's server sees it."""

from concurrent.futures import ThreadPoolExecutor

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.lessons import chats_of, embeddings_of, extractions_of
from tests.service.support.running import Service, until

BEYOND = {"window": 1, "top_k": 5}
"""A window that does not show the whole thread: the turn embeds its message before its chat call."""


def test_an_update_begins_after_the_chat_call_of_a_turn_that_is_recalling(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    model.chat_seconds = 0.1  # with a model that answers at once a turn would take no way
    for said in ("I live by the sea.", "I like strong tea."):
        served.turn(said, user=user, wait_for_memory=True)
    question, lesson = f"Where does {user} live?", f"I, {user}, keep bees."  # no earlier test has cached its vector
    model.embedding_seconds = 0.6
    with ThreadPoolExecutor(1) as threads:
        recalling = threads.submit(served.turn, question, user=user, memory=BEYOND)
        until(lambda: len(embeddings_of(model, question)) == 1)
        model.embedding_seconds = 0.0
        taught = served.turn(lesson, user=user, thread="t2", memory={"top_k": 0})
        served.settled(recalling.result()["turn_id"], user=user)  # so that no later test sees its calls
    served.settled(taught["turn_id"], user=user)
    (asked,), (learned,) = chats_of(model, question), extractions_of(model, lesson)
    bodies = [request.body for request in model.requests]
    assert bodies.index(asked) < bodies.index(learned)


def test_an_update_that_somebody_waits_for_goes_on_beside_a_recall(
    served: Service, model: FakeOpenAI, user: str
) -> None:
    model.chat_seconds = 0.1  # with a model that answers at once a turn would take no way
    for said in ("I live by the sea.", "I like strong tea."):
        served.turn(said, user=user, wait_for_memory=True)
    question, lesson = f"Where does {user} live?", f"I, {user}, keep bees."  # no earlier test has cached its vector
    model.embedding_seconds = 0.6
    with ThreadPoolExecutor(1) as threads:
        recalling = threads.submit(served.turn, question, user=user, memory=BEYOND)
        until(lambda: len(embeddings_of(model, question)) == 1)
        model.embedding_seconds = 0.0
        taught = served.turn(lesson, user=user, thread="t2", memory={"top_k": 0}, wait_for_memory=True)
        assert taught["memory"]["update"]["status"] == "done"
        assert not chats_of(model, question)
        served.settled(recalling.result()["turn_id"], user=user)  # so that no later test sees its calls
