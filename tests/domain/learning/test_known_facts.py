import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from recollect.memory.language.sentences import MOST_SENTENCES, sentences
from recollect.memory.learning.known_facts import Nomination
from recollect.memory.ports.extractor import Said
from recollect.memory.ports.vector_index import Entry, Point, VectorIndex
from recollect.memory.providers.lexical import LexicalEmbedder
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.values.errors import IndexUnavailable, ModelUnavailable
from recollect.memory.values.fact import Fact
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.turn import derived_id
from tests.contracts.store.samples import NOW, fact

SCOPE = Scope("ada", "t1")
EMBEDDER = LexicalEmbedder()


@dataclass
class Counting:
    """The embedder, counting its calls; or an outage."""

    calls: int = 0
    down: bool = False
    knows_meaning = False
    embeds_alike = False

    @property
    def model(self) -> str:
        return EMBEDDER.model

    async def dimension(self) -> int:
        return await EMBEDDER.dimension()

    async def embed_query(self, text: str) -> Sequence[float]:
        return await EMBEDDER.embed_query(text)

    async def embed_documents(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.calls += 1
        if self.down:
            raise ModelUnavailable
        return await EMBEDDER.embed_documents(texts)

    async def ping(self) -> None:
        return None


@pytest.fixture
async def index(tmp_path: Path) -> AsyncGenerator[VectorIndex]:
    dimension = await EMBEDDER.dimension()
    async with open_edge_index(tmp_path, base="t", model=EMBEDDER.model, dimension=dimension) as opened:
        yield opened


def known(number: int, statement: str, *, key: str | None = None, value: str = "x", indexed: bool = True) -> Fact:
    made = fact(derived_id("ada", f"turn{number}", "fact"), key=key, value=value, statement=statement)
    return replace(made, confirmed_at=NOW + timedelta(seconds=number), created_at=NOW, indexed=indexed)


async def index_facts(index: VectorIndex, facts: Sequence[Fact]) -> None:
    vectors = await EMBEDDER.embed_documents([one.statement for one in facts])
    await index.upsert(
        [
            Point(Entry(one.id, one.user_id, None, one.turn_id, "fact", one.statement, one.created_at), vector)
            for one, vector in zip(facts, vectors, strict=True)
        ]
    )


async def chosen(nomination: Nomination, living: Sequence[Fact], *messages: str) -> list[str]:
    found = await nomination.choose([Said(message, "Noted.") for message in messages], living, SCOPE)
    assert [one for one in living if one in found] == found
    return [one.statement for one in found]


FILLING = [known(number, f"filler alpha{number} beta{number} gamma{number}") for number in range(300)]


async def test_few_facts_are_all_shown_and_nothing_is_embedded(index: VectorIndex) -> None:
    embedder = Counting()
    living = FILLING[:50]
    assert await Nomination(index, embedder, 0.9).choose([Said("Hi", "")], living, SCOPE) == living
    assert embedder.calls == 0


async def test_every_fact_alike_enough_is_shown_however_many(index: VectorIndex) -> None:
    alike = [known(1_000 + number, "The user plays chess with Bo.") for number in range(160)]
    living = [*FILLING, *alike]
    await index_facts(index, living)
    embedder = Counting()
    message = "Do you remember? It was long ago. The user plays chess with Bo. Anyway, tell me of the weather in Oslo."
    shown = await chosen(Nomination(index, embedder, 0.9), living, "Hello there.", message)
    assert shown.count("The user plays chess with Bo.") == 160
    assert embedder.calls == 1


async def test_the_nearest_the_named_and_the_unindexed_are_shown_and_the_rest_filled_up(index: VectorIndex) -> None:
    near = known(400, "The user has a garden with roses in Utrecht.")
    named = known(401, "xyzzy", key="favourite_team", value="Ajax")
    valued = known(402, "plugh", key="k", value="saxophone")
    fresh = known(403, "quux", indexed=False)
    weighty = replace(known(404, "grault"), importance=1.0)
    others = [near, named, valued, fresh, weighty]
    living = [*others, *FILLING]
    await index_facts(index, [one for one in living if one.indexed])
    message = "Roses grow in my garden in Utrecht, for the team. And the saxophones!"
    shown = await chosen(Nomination(index, Counting(), 0.9), living, message)
    assert {one.statement for one in others} <= set(shown)
    assert len(shown) == 50
    assert FILLING[-1].statement in shown, "the most recently confirmed ones fill up"


async def test_global_facts_are_found_by_meaning_too(index: VectorIndex) -> None:
    shared = replace(known(500, "The office opens at nine."), user_id=GLOBAL_USER, scope="global")
    foreign = replace(known(501, "The office opens at nine."), user_id="bob")
    await index_facts(index, [*FILLING, shared, foreign])
    turns = [Said("the office opens at nine", "")]
    shown = await Nomination(index, Counting(), 0.9).choose(turns, [*FILLING, shared], SCOPE)
    assert shared in shown
    assert foreign not in shown


async def test_an_outage_is_passed_on(index: VectorIndex) -> None:
    with pytest.raises(ModelUnavailable):
        await Nomination(index, Counting(down=True), 0.9).choose([Said("Hi", "")], FILLING, SCOPE)


async def test_a_closed_index_is_an_outage(tmp_path: Path) -> None:
    dimension = await EMBEDDER.dimension()
    async with open_edge_index(tmp_path, base="t", model=EMBEDDER.model, dimension=dimension) as closed:
        pass
    with pytest.raises(IndexUnavailable):
        await Nomination(closed, Counting(), 0.9).choose([Said("Hi", "")], FILLING, SCOPE)


async def test_five_thousand_facts_and_a_long_message_take_little_time(index: VectorIndex) -> None:
    living = [known(number, f"The user likes thing{number}.", key=f"likes_{number}") for number in range(5_000)]
    message = " ".join(f"word{number}" for number in range(3_500))
    started = time.process_time()
    assert len(await chosen(Nomination(index, Counting(), 0.9), living, message)) == 50
    assert time.process_time() - started < 2.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("?! \n", []),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("I take 1.5 mg. Really...", ["I take 1.5 mg.", "Really..."]),
        ('He said "No." Then he left.', ['He said "No.', "Then he left."]),
        ("one\ntwo\n\nthree", ["one", "two", "three"]),
        ("\u6211\u5728\u3002\u4f60\u597d\uff01", ["\u6211\u5728\u3002", "\u4f60\u597d\uff01"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_sentences_are_bounded() -> None:
    assert len(sentences("A. " * 1_000)) == MOST_SENTENCES
    assert [len(sentence) for sentence in sentences("x" * 32_000)] == [500]
    for piece in (". ", "!", "\n", "\u3002", "a.", "?)"):
        started = time.process_time()
        sentences((piece * 32_000)[:32_000])
        assert time.process_time() - started < 0.1
