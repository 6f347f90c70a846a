"""How the command cuts a source into bodies for the service."""

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recollect.api.cli.import_bodies import Bodies, Body
from recollect.memory.transfer.import_line import read_message
from recollect.memory.transfer.import_pairs import Numbered, Pairing
from recollect.memory.transfer.line_source import SourceLine, Unreadable

Fields = dict[str, Any]
Pairs = list[tuple[int | None, int | None]]


def fields(thread: str, role: str) -> Fields:
    return {"user_id": "ada", "thread_id": thread, "role": role, "content": "x", "timestamp": 1}


async def source(lines: Iterable[bytes | Fields | Unreadable]) -> AsyncIterator[SourceLine]:
    for number, line in enumerate(lines, 1):
        yield SourceLine(number, line)


async def cut(bodies: Bodies, lines: Iterable[bytes | Fields | Unreadable]) -> list[Body]:
    return [body async for body in bodies.cut(source(lines))]


def paired(lines: Iterable[tuple[int, Fields]]) -> Pairs:
    """Return the pairs that an import makes of these lines."""
    pairing = Pairing()
    found = [pair for number, line in lines for pair in pairing.take(Numbered(number, read_message(line)))]
    found += pairing.rest()
    return [(pair.user and pair.user.number, pair.assistant and pair.assistant.number) for pair in found]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["user", "assistant"]))), st.integers(1, 1_000))
async def test_bodies_hold_every_line_once_and_cut_no_pair(places: list[tuple[str, str]], most: int) -> None:
    lines = [fields(thread, role) for thread, role in places]
    bodies = await cut(Bodies(most=most), lines)
    numbers = [body.number_of(place) for body in bodies for place in range(1, len(body.lines) + 1)]
    assert sorted(numbers) == list(range(1, len(lines) + 1))
    apart = Pairs()
    for body in bodies:
        said = [json.loads(line) for line in body.content.splitlines()]
        assert [lines[body.number_of(place) - 1] for place in range(1, len(said) + 1)] == said
        assert body.size == len(body.content)
        apart += paired((body.number_of(place), line) for place, line in enumerate(said, 1))
    assert sorted(map(str, apart)) == sorted(map(str, paired(enumerate(lines, 1))))


async def test_bodies_stay_within_their_size_where_lines_do() -> None:
    line = json.dumps(fields("a", "assistant")).encode()
    bodies = await cut(Bodies(most=5 * (len(line) + 1)), [line] * 23)
    assert [len(body.lines) for body in bodies] == [5, 5, 5, 5, 3]
    assert [body.last for body in bodies] == [5, 10, 15, 20, 23]


async def test_what_is_no_line_fails_and_what_is_no_json_is_sent() -> None:
    bodies = Bodies()
    (body,) = await cut(bodies, [Unreadable("It is broken."), b"{", fields("a", "user")])
    assert bodies.failed == [(1, "It is broken.")]
    assert [body.number_of(place) for place in (1, 2)] == [2, 3]
    assert body.content.splitlines()[0] == b"{"
