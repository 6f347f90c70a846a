import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from recollect.memory.ports.store import Store
from recollect.memory.values.period import Period
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import not_owed, owed
from tests.contracts.store.samples import NASTY_TEXTS, NOW, SECOND, answer, asked, indexed
from tests.contracts.store.suite.past_turns import MINUTE, in_a_row, past, placed, said, without_message, without_reply

ADA = Scope("ada")
ADA_T1, ADA_T2 = Scope("ada", "t1"), Scope("ada", "t2")
ALWAYS = Period(NOW - timedelta(days=9), NOW + timedelta(days=9))
MICROSECOND = timedelta(microseconds=1)


async def talk(store: Store) -> list[Message]:
    """Store a thread in which search finds 1, 2 (no reply), 4 (no question) and 7 alone; return those in order."""
    disabled = not_owed("disabled")
    given = in_a_row(
        [
            past(1),
            without_reply(past(2)),
            past(3, update=disabled),
            without_message(past(4)),
            without_reply(past(5, update=disabled)),
            past(6, update=owed()),
            past(7),
        ]
    )
    assert await store.imports.insert(given) == 7
    await store.conversations.accept(asked("open"))
    foreign = [past(number, user_id="bob") for number in range(1, 8)]
    assert await store.imports.insert(foreign) == 7
    return said([given[0], given[1], given[3], given[6]])


def names_of(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]


class TimelineContract:
    many = 10_000
    """So many turns of two names."""

    async def test_names_come_once_in_ascending_order(self, store: Store):
        names = ["Zoë", "ada", "Ada", "Bob", "Ünal", "Bob", None, "\U0001f600"]
        given = [past(number, thread_id=f"t{number % 2}", name=name) for number, name in enumerate(names)]
        given += [past(9, user_id="bob", name="Carl"), past(8, user_id="eve")]
        for turn in given:
            assert await store.imports.insert([turn]) == 1
        expected = sorted({name for name in names if name})
        assert await store.timeline.names("ada", limit=99) == expected
        for limit in (0, 1, 3):
            assert await store.timeline.names("ada", limit=limit) == expected[:limit]
        assert await store.timeline.names("bob", limit=99) == ["Carl"]
        assert await store.timeline.names("eve", limit=99) == []
        assert await store.timeline.names("nobody", limit=99) == []

    async def test_any_text_is_a_name(self, store: Store):
        given = [past(number, name=text) for number, text in enumerate(NASTY_TEXTS)]
        assert await store.imports.insert(given) == len(given)
        assert await store.timeline.names("ada", limit=99) == sorted(text for text in NASTY_TEXTS if text)

    async def test_names_of_very_many_messages(self, store: Store):
        for first in range(0, self.many, 500):
            numbers = range(first, first + 500)
            turns = [past(number, name=("Ada", "Bob")[number % 2]) for number in numbers]
            await store.imports.insert(turns)
        assert await store.timeline.names("ada", limit=9) == ["Ada", "Bob"]

    async def test_the_messages_of_a_period_come_oldest_first(self, store: Store):
        found = await talk(store)
        other = placed(past(15, thread_id="t2"), 1)
        assert await store.imports.insert([other]) == 1
        during = store.timeline.during
        assert await during(ADA_T1, ALWAYS, limit=99) == found
        assert await during(ADA, ALWAYS, limit=99) == [*found, *said([other])]
        assert await during(ADA_T2, ALWAYS, limit=99) == said([other])
        assert await during(ADA, ALWAYS, limit=2) == found[:2]
        assert await during(ADA, ALWAYS, limit=0) == []
        assert await during(Scope("eve"), ALWAYS, limit=9) == []
        assert {message.user_id for message in await during(Scope("bob"), ALWAYS, limit=99)} == {"bob"}

    async def test_a_period_holds_its_beginning_and_not_its_end(self, store: Store):
        turns = in_a_row([past(1), past(2)])
        assert await store.imports.insert(turns) == 2
        first, reply, second, _ = said(turns)
        expected: dict[tuple[timedelta, timedelta], list[Message]] = {
            (MINUTE, 2 * MINUTE): [first, reply],
            (MINUTE, MINUTE + SECOND): [first],
            (MINUTE, MINUTE + SECOND + MICROSECOND): [first, reply],
            (MINUTE + MICROSECOND, 2 * MINUTE + MICROSECOND): [reply, second],
            (MINUTE, MINUTE): [first],
            (MINUTE + 2 * SECOND, 2 * MINUTE): [],
        }
        for scope in (ADA, ADA_T1):
            for (begin, end), messages in expected.items():
                assert await store.timeline.during(scope, Period(NOW + begin, NOW + end), limit=9) == messages

    async def test_messages_of_the_same_time_keep_their_places(self, store: Store):
        given = [past(number, thread_id=f"t{number % 2}") for number in range(1, 40)]
        given = [replace(turn, message=_at_now(turn.message), reply=_at_now(turn.reply)) for turn in given]
        for turn in given:
            assert await store.imports.insert([turn]) == 1
        even, odd = said(in_a_row(given[1::2])), said(in_a_row(given[::2]))
        assert await store.timeline.during(Scope("ada", "t1"), ALWAYS, limit=99) == odd
        assert await store.timeline.during(ADA, ALWAYS, limit=99) == [*even, *odd]
        assert await store.timeline.latest(ADA, limit=9) == odd[:-10:-1]
        assert await store.timeline.latest(Scope("ada", "t0"), limit=3) == even[:-4:-1]

    async def test_the_latest_come_newest_first(self, store: Store):
        found = await talk(store)
        other = placed(past(-5, thread_id="t2"), 1)
        assert await store.imports.insert([other]) == 1
        latest = store.timeline.latest
        assert await latest(ADA_T1, limit=99) == found[::-1]
        assert await latest(ADA, limit=99) == [*found[::-1], *said([other])[::-1]]
        assert await latest(ADA, limit=3) == found[:-4:-1]
        assert await latest(ADA_T2, limit=1) == said([other])[-1:]
        assert await latest(ADA, limit=0) == []
        assert await latest(Scope("eve"), limit=9) == []

    async def test_descriptions_come_in_pages_without_texts(self, store: Store):
        found = await talk(store)
        same = replace(placed(past(1), 1), message=replace(found[0], thread_id="t2", turn_id="same"))
        same = replace(same, reply=replace(same.message, role="assistant", position=2))
        assert await store.imports.insert([placed(past(15, thread_id="t2"), 3), same]) == 2
        for scope in (ADA, ADA_T1, ADA_T2):
            latest = await store.timeline.latest(scope, limit=99)
            pages, last = list[Message](), None
            while page := await store.timeline.described(scope, limit=2, before=last):
                pages, last = [*pages, *page], page[-1]
            assert pages == [replace(message, content="") for message in latest]
        assert await store.timeline.described(Scope("eve"), limit=9) == []

    async def test_what_search_may_not_find_hides_nothing(self, store: Store):
        first = placed(past(0), 1)
        assert await store.imports.insert([first]) == 1
        assert await store.imports.insert([past(number, update=owed()) for number in range(1, 41)]) == 40
        last = placed(past(50), 83)
        assert await store.imports.insert([last]) == 1
        for scope in (ADA, ADA_T1):
            assert await store.timeline.latest(scope, limit=3) == [*said([last])[::-1], *said([first])[1:]]
            assert await store.timeline.during(scope, ALWAYS, limit=3) == [*said([first]), last.message]
        assert await store.timeline.around(ADA_T1, 41, before=1, after=1) == [*said([first])[1:], last.message]
        before = [message.content for message in said([first])][::-1]
        assert await store.timeline.preceding(said([last]), count=3) == {
            last.message.id: before,
            said([last])[1].id: [last.message.content, *before],
        }

    @pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 9])
    async def test_each_message_is_preceded_by_those_that_search_may_find(self, store: Store, count: int):
        found = await talk(store)
        preceding = store.timeline.preceding
        texts = names_of(found)
        expected = {one.id: texts[max(at - count, 0) : at][::-1] for at, one in enumerate(found) if at and count}
        assert await preceding(found, count=count) == expected
        assert await preceding(found[::-1], count=count) == expected
        for message in found:
            alone = {message.id: expected[message.id]} if message.id in expected else {}
            assert await preceding([message], count=count) == alone
        assert await preceding([], count=count) == {}

    async def test_a_turn_that_is_just_being_indexed_follows_those_that_are(self, store: Store):
        found = await talk(store)
        listed = await store.conversations.messages(ADA_T1, limit=99)
        by_content = {message.content: message for message in listed}
        waits, reply = by_content["Message 6."], by_content["Reply 6."]
        assert await store.timeline.preceding([reply, waits, by_content["Hello."]], count=2) == {
            waits.id: ["Reply 4.", "Message 2."],
            reply.id: ["Message 6.", "Reply 4."],
            by_content["Hello."].id: ["Reply 7.", "Message 7."],
        }
        assert names_of(found)[2:4] == ["Message 2.", "Reply 4."]

    async def test_messages_of_many_users_and_threads_are_preceded_at_once(self, store: Store):
        turns: list[Turn] = []
        for user_id in ("ada", "bob"):
            for thread_id in ("t1", "t2", "t3"):
                given = [past(number, user_id=user_id, thread_id=thread_id) for number in range(40)]
                made = [_of_thread(turn) for turn in in_a_row(given)]
                assert await store.imports.insert(made) == 40
                turns += made
        messages = said(turns)
        expected = {
            later.id: [earlier.content] for earlier, later in pairwise(messages) if earlier.scope == later.scope
        }
        assert await store.timeline.preceding(messages, count=1) == expected
        assert len(expected) == 480 - 6

    async def test_what_lies_around_a_place(self, store: Store):
        found = await talk(store)
        contents = names_of(found)
        assert contents == ["Message 1.", "Reply 1.", "Message 2.", "Reply 4.", "Message 7.", "Reply 7."]
        around = store.timeline.around
        for place, message in enumerate(found):
            expected = found[max(place - 2, 0) : place] + found[place + 1 : place + 2]
            assert await around(ADA_T1, message.position, before=2, after=1) == expected
        assert await around(ADA_T1, 11, before=9, after=9) == found
        assert await around(ADA_T1, 0, before=9, after=2) == found[:2]
        assert await around(ADA_T1, 99, before=2, after=9) == found[-2:]
        assert await around(ADA_T1, found[2].position, before=0, after=0) == []
        assert await around(ADA_T2, 3, before=9, after=9) == []

    async def test_a_live_turn_is_found_once_it_is_indexed(self, store: Store):
        message = await store.conversations.accept(asked())
        reply = answer(message)
        assert await store.conversations.commit(reply, result={}, update=owed())
        timeline = store.timeline
        assert await timeline.latest(ADA_T1, limit=9) == []
        (turn,) = await store.updates.pending("ada", limit=9)
        assert await store.updates.record(turn, indexed(), generation=1)
        assert await timeline.latest(ADA_T1, limit=9) == [reply, message]
        assert await timeline.during(ADA, ALWAYS, limit=9) == [message, reply]
        await store.conversations.delete(ADA_T1)
        found = await asyncio.gather(timeline.latest(ADA, limit=9), timeline.around(ADA_T1, 2, before=9, after=9))
        assert found == [[], []]


def _at_now(message: Message | None) -> Message:
    assert message is not None
    return replace(message, created_at=NOW)


def _of_thread(turn: Turn) -> Turn:
    """Return the turn with its thread in its id, since turn ids are the user's."""
    assert turn.reply is not None
    turn_id = f"{turn.message.thread_id}-{turn.message.turn_id}"
    return replace(turn, message=replace(turn.message, turn_id=turn_id), reply=replace(turn.reply, turn_id=turn_id))
