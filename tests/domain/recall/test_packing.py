from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.ports.vector_index import Entry
from recollect.memory.recall.hit import Hit
from recollect.memory.recall.packing import GAP, Relevance, cost, excerpt, pack

MAY = datetime(2026, 5, 8, tzinfo=UTC)
NOVEL = " ".join(f"Chapter {number} tells of the weather." for number in range(60))


def entry(entry_id: str, content: str, **fields: str) -> Entry:
    return Entry(entry_id, "ada", "t1", f"turn-{entry_id}", "episode", content, MAY, **{"role": "user", **fields})  # pyright: ignore[reportArgumentType]


def hit(entry_id: str, content: str = "Hello.", score: float = 0.5) -> Hit:
    return Hit(entry(entry_id, content), score, 0.4, 1.0)


def mentions(word: str) -> Relevance:
    return lambda text: float(word in text)


def test_a_cost_is_a_quarter_of_the_dated_line_rounded_up() -> None:
    assert cost(entry("a", "Hi!")) == -(-len("[2026-05-08] user: Hi!") // 4)
    assert cost(entry("a", "Hi!", name="Caroline")) == -(-len("[2026-05-08] Caroline: Hi!") // 4)


def test_hits_enter_in_their_order_until_the_budget_is_spent() -> None:
    hits = [hit(str(number)) for number in range(9)]
    price = cost(hits[0].entry)
    packed = pack(hits, 4 * price + 1, relevance=mentions("-"), neighbours={})
    assert [one.entry.id for one in packed.hits] == ["0", "1", "2", "3"]
    assert packed.left_out == {"4", "5", "6", "7", "8"}


def test_one_that_does_not_fit_does_not_keep_a_shorter_one_out() -> None:
    packed = pack([hit("a"), hit("b", "long " * 14), hit("c")], 16, relevance=mentions("-"), neighbours={})
    assert [one.entry.id for one in packed.hits] == ["a", "c"]
    assert packed.left_out == {"b"}


def test_a_long_message_enters_by_its_best_passages() -> None:
    text = NOVEL + " Only here the dragon sleeps. " + NOVEL
    (packed,) = pack([hit("a", text)], 100, relevance=mentions("dragon"), neighbours={}).hits
    assert packed.excerpt
    assert "Only here the dragon sleeps." in packed.entry.content
    assert GAP.strip() in packed.entry.content
    assert cost(packed.entry) <= 100
    assert packed.as_json()["excerpt"] is True


def test_a_short_message_is_whole_and_does_not_say_excerpt() -> None:
    (packed,) = pack([hit("a")], 100, relevance=mentions("-"), neighbours={}).hits
    assert packed == hit("a")
    assert "excerpt" not in packed.as_json()


def test_neighbours_follow_their_hit_and_come_last_to_the_budget() -> None:
    hits = [hit("a", score=0.9), hit("b", score=0.8)]
    beside = {"a": [entry("a+", "Hello.")], "b": [entry("b+", "Hello.")]}
    price = cost(hits[0].entry)
    packed = pack(hits, 3 * price, relevance=mentions("-"), neighbours=beside)
    assert [one.entry.id for one in packed.hits] == ["a", "a+", "b"]
    assert packed.neighbours == {"a+"}
    assert packed.hits[1].score == 0.9


def test_nothing_is_given_twice() -> None:
    beside = {"a": [entry("b", "Hello."), entry("c", "Hello.")], "b": [entry("c", "Hello.")]}
    packed = pack([hit("a"), hit("b")], 1_000, relevance=mentions("-"), neighbours=beside)
    assert [one.entry.id for one in packed.hits] == ["a", "c", "b"]


def test_an_excerpt_of_one_endless_sentence_is_its_beginning() -> None:
    assert excerpt("word " * 1_000, 60, relevance=mentions("-")).startswith("word word")


@given(st.text(max_size=2_000), st.integers(min_value=1, max_value=500))
def test_an_excerpt_never_exceeds_its_room(text: str, characters: int) -> None:
    assert len(excerpt(text, characters, relevance=mentions("a"))) <= characters


@given(st.lists(st.text(min_size=1, max_size=400), max_size=12), st.integers(min_value=1, max_value=300))
def test_a_packing_never_exceeds_its_budget(texts: list[str], budget: int) -> None:
    hits = [hit(str(place), text) for place, text in enumerate(texts)]
    beside = {"0": [entry("n", "Hello.")]}
    packed = pack(hits, budget, relevance=mentions("a"), neighbours=beside)
    assert sum(cost(one.entry) for one in packed.hits) <= budget
    given_ids = [one.entry.id for one in packed.hits]
    assert len(given_ids) == len(set(given_ids))
