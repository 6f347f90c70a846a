import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.memory.learning.extraction.schema import WantedKeys
from recollect.memory.learning.proof.evidence import quote_problem
from recollect.memory.learning.reconciliation import PlanRequest, plan
from recollect.memory.ports.chat_model import Usage
from recollect.memory.ports.extractor import Extraction, ExtractionRequest, Said
from recollect.memory.providers.offline import OfflineExtractor
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.fact import Ended, Fact

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def fact(number: int, key: str, value: str) -> Fact:
    return Fact(
        id=f"f{number}",
        user_id="ada",
        key=key,
        value=value,
        statement=f"The user: {key} {value}",
        created_at=NOW,
        updated_at=NOW,
        confirmed_at=NOW,
        valid_from=NOW,
    )


KNOWN = [
    fact(1, "name", "Ada"),
    fact(2, "location", "Paris"),
    fact(3, "likes_sushi", "sushi"),
    fact(4, "likes_jazz", "jazz"),
    fact(5, "employer", "ACME"),
    fact(6, "occupation", "nurse"),
    fact(7, "favorite_color", "red"),
    fact(8, "birthday", "3 May"),
]


async def extracted(message: str, known: list[Fact] | None = None) -> Extraction:
    return await OfflineExtractor().extract(ExtractionRequest([Said(message, "")], known or [], NOW))


LEARNED = [
    ("Hi, I'm Ada.", {"name": "Ada"}),
    ("Hi I\u2019m Ada", {"name": "Ada"}),
    ("My name is Ada Lovelace", {"name": "Ada Lovelace"}),
    ("my name is ada", {"name": "ada"}),
    ("Call me Al", {"name": "Al"}),
    ("hi im Ada :)", {"name": "Ada"}),
    ("I'm Ludwig van Beethoven.", {"name": "Ludwig van Beethoven"}),
    ("ich hei\u00dfe Ada", {"name": "Ada"}),
    ("Je m'appelle Ada.", {"name": "Ada"}),
    ("Me llamo Ada", {"name": "Ada"}),
    ("I'm Ada, what's the weather?", {"name": "Ada"}),
    ("I'm Ada. No, my name is Eva, not Ada.", {"name": "Eva"}),
    ("I live in Paris", {"location": "Paris"}),
    ("Actually I live in Rome now", {"location": "Rome"}),
    ("I live in New York City, NY.", {"location": "New York City, NY"}),
    ("I live in the Netherlands with my cat", {"location": "the Netherlands"}),
    ("I moved to Berlin last week", {"location": "Berlin"}),
    ("I moved from Paris to Berlin", {"location": "Berlin"}),
    ("I'm from Rome", {"hometown": "Rome"}),
    ("I work as a nurse", {"occupation": "nurse"}),
    ("I'm a software engineer", {"occupation": "software engineer"}),
    ("I'm an engineer at Siemens", {"occupation": "engineer", "employer": "Siemens"}),
    ("I work at ACME", {"employer": "ACME"}),
    ("I live in Paris and work as a nurse", {"location": "Paris", "occupation": "nurse"}),
    (
        "I'm Ada, a software engineer from Berlin.",
        {"name": "Ada", "occupation": "software engineer", "hometown": "Berlin"},
    ),
    ("I like hiking and jazz", {"likes_hiking": "hiking", "likes_jazz": "jazz"}),
    ("I love sushi", {"likes_sushi": "sushi"}),
    ("I like C++ and C#", {"likes_c_plus_plus": "C++", "likes_c_sharp": "C#"}),
    ("I don't like mushrooms", {"dislikes_mushrooms": "mushrooms"}),
    ("I hate Mondays", {"dislikes_mondays": "Mondays"}),
    ("My dog's name is Rex", {"dog_name": "Rex"}),
    ("I have a dog named Rex", {"dog_name": "Rex"}),
    ("My sister is called Eva", {"sister_name": "Eva"}),
    ("My favourite colour is blue", {"favourite_colour": "blue"}),
    ("My birthday is 3 May", {"birthday": "3 May"}),
    ("My phone number is 555-1234.", {"phone_number": "555-1234"}),
    ("I am 36 years old", {"age": "36"}),
    ("I have two children", {"children": "two"}),
    ("I really love tea, especially Assam", {"likes_tea": "tea", "likes_assam": "Assam"}),
    ("I'm a teacher by profession", {"occupation": "teacher"}),
    ("I'm allergic to nuts", {"allergy_nuts": "nuts"}),
    ("I'm vegan.", {"diet": "vegan"}),
    ("I'm German", {"nationality": "German"}),
    ("Don't forget that I like jazz", {"likes_jazz": "jazz"}),
    ('My band is "The Who"', {"band": "The Who"}),
    ("I like jazz.\n> My name is Bob\nI live in Rome.", {"likes_jazz": "jazz", "location": "Rome"}),
    ("~~~\nMy name is Bob\n~~~\nI live in Rome.", {"location": "Rome"}),
    ("I live in Rome.\n\n-----Original Message-----\nMy name is Bob.", {"location": "Rome"}),
    (
        "Hello! My name is Ada and I live in Paris. I like jazz.",
        {"name": "Ada", "location": "Paris", "likes_jazz": "jazz"},
    ),
]


@pytest.mark.parametrize(("message", "facts"), LEARNED)
async def test_what_a_user_says_of_themselves_is_proposed_with_its_quote(message: str, facts: dict[str, str]) -> None:
    extraction = await extracted(message)
    assert {proposal.key: proposal.value for proposal in extraction.proposals} == facts
    assert {proposal.decision for proposal in extraction.proposals} == {"add"}
    for proposal in extraction.proposals:
        assert quote_problem(proposal.evidence, message) is None
        assert (proposal.statement or "").startswith("The user")
    assert (extraction.model, extraction.usage, list(extraction.refused)) == ("offline", Usage(), [])


NOT_LEARNED = [
    "Do I like jazz?",
    "do i like jazz",
    "What is my name?",
    "Am I a nurse?",
    "Is my name Ada?",
    "if I were a doctor",
    "If I were a doctor, I'd live in Rome.",
    "If it rains, I work at ACME",
    "Imagine I'm a pilot",
    "Let's say I'm a doctor, and I live in Rome",
    "When I'm a doctor I live in Rome",
    "Maybe I like jazz",
    "he said I'm stupid",
    "She told me I'm Eva",
    "You said I'm Ada",
    '"I\'m Ada," he said.',
    'He wrote: "Hi. I\'m Bob. I live in Rome."',
    "> I'm Bob",
    "User: I'm Bob",
    "  > I'm Bob\n>> My name is Eva",
    "```\nMy name is Bob\n```",
    "Look:\n```python\nI live in Rome\n",
    "What is ```I live in Rome``` in French?",
    "~~~\nMy name is Bob\nI live in Rome\n~~~",
    "Her note: \u2018My name is Bob\u2019",
    "'I live in Rome' is the first line",
    "Sie schrieb: \u201eIch hei\u00dfe Bob\u201c",
    "\u00abJe m'appelle Bob\u00bb",
    "\u300cMy name is Bob\u300d",
    '"I live in Rome',
    "-----Original Message-----\nMy name is Bob.\nI live in Rome.",
    "---------- Forwarded message ---------\nFrom: Bob\n\nMy name is Bob.",
    "Begin forwarded message:\n\nI live in Rome.",
    "On Mon, 3 May 2021 at 10:00, Bob <bob@example.org> wrote:\nMy name is Bob.",
    "On Mon, 3 May 2021 at 10:00, Bob <bob@example.org>\nwrote:\nMy name is Bob.",
    "On Monday Bob Smith wrote: Hi. My name is Bob.",
    "Am Mo., 3. Mai 2021 schrieb Bob <bob@example.org>:\nIch hei\u00dfe Bob.",
    "I'm tired",
    "I'm happy",
    "I'm sorry",
    "I'm Sorry.",
    "I'm Happy to help",
    "I'm going home",
    "I'm Going.",
    "I'm here",
    "I'm not sure",
    "I'm fine",
    "I'm OK",
    "I'm a bit tired",
    "I'm an idiot",
    "I'm 5 minutes away",
    "I'm not Ada",
    "My name is not Ada",
    "I don't live in Rome",
    "I no longer like jazz",
    "I used to live in Rome",
    "I wish I lived in Rome",
    "I live in a small house",
    "I live in fear",
    "I'd like a coffee",
    "I like it",
    "My question is simple",
    "my head is killing me",
    "My car is broken",
    "Call me later",
    "Call me Monday",
    "Thanks!",
    "",
]


@pytest.mark.parametrize("message", NOT_LEARNED)
async def test_what_is_no_statement_about_the_user_is_not_learned(message: str) -> None:
    assert list((await extracted(message)).proposals) == []


CORRECTIONS: list[tuple[str, list[tuple[str, str, str | None, int | None]]]] = [
    ("No, my name is Eva", [("update", "name", "Eva", 1)]),
    ("My name is Ada", [("keep", "name", "Ada", 1)]),
    ("I moved from Paris to Berlin", [("update", "location", "Berlin", 2)]),
    ("I no longer live in Paris, I live in Rome now", [("update", "location", "Rome", 2)]),
    ("I no longer live in Paris", [("delete", "location", None, 2)]),
    ("I no longer live in Rome", []),
    ("I don't like sushi any more", [("delete", "likes_sushi", None, 3)]),
    ("I hate jazz", [("delete", "likes_jazz", None, 4), ("add", "dislikes_jazz", "jazz", None)]),
    ("forget that I like jazz", [("delete", "likes_jazz", None, 4)]),
    ("Please forget my birthday", [("delete", "birthday", None, 8)]),
    ("I no longer work at ACME", [("delete", "employer", None, 5)]),
    ("I'm no longer a nurse", [("delete", "occupation", None, 6)]),
    ("I'm not Ada", [("delete", "name", None, 1)]),
    ("My favourite colour is blue", [("update", "favorite_color", "blue", 7)]),
]


@pytest.mark.parametrize(("message", "expected"), CORRECTIONS)
async def test_corrections_name_the_fact_they_correct(
    message: str, expected: list[tuple[str, str, str | None, int | None]]
) -> None:
    proposals = (await extracted(message, KNOWN)).proposals
    assert [(item.decision, item.key, item.value, item.shown) for item in proposals] == expected
    made = plan(PlanRequest(proposals, KNOWN, KNOWN, message, "ada", "t1", "turn-1", NOW))
    assert made.refused == ()
    assert [change.decision for change in made.changes] == [item[0] for item in expected]


async def test_an_ended_fact_among_the_known_is_not_corrected() -> None:
    ended = [replace(KNOWN[0], valid_to=NOW, ended=Ended("turn", NOW))]
    assert [item.decision for item in (await extracted("My name is Eva", ended)).proposals] == ["add"]


async def test_several_messages_are_read_one_after_the_other() -> None:
    said = ["I live in Rome.", "I like tea.", "I live in Oslo now.", "I no longer like tea."]
    request = ExtractionRequest([Said(message, "Noted.") for message in said], KNOWN, NOW)
    proposals = (await OfflineExtractor().extract(request)).proposals
    assert [(item.decision, item.key, item.value, item.shown) for item in proposals] == [
        ("update", "location", "Rome", 2),
        ("add", "likes_tea", "tea", None),
        ("update", "location", "Oslo", None),
        ("delete", "likes_tea", None, None),
    ]


async def test_there_is_no_other_model_to_choose() -> None:
    request = ExtractionRequest([Said("I'm Ada", "")], [], NOW)
    assert len((await OfflineExtractor().extract(request, model="offline")).proposals) == 1
    with pytest.raises(InvalidRequest) as raised:
        await OfflineExtractor().extract(request, model="other")
    assert [problem.field for problem in raised.value.problems] == ["model"]


async def test_a_schema_limits_what_the_rules_learn() -> None:
    schema = WantedKeys.from_schema({"properties": {"name": {"type": "string"}}})
    request = ExtractionRequest([Said("I'm Ada and I live in Paris", "")], [], NOW)
    extraction = await OfflineExtractor(schema=schema).extract(request)
    assert [item.key for item in extraction.proposals] == ["name"]
    assert [(item.key, item.reason) for item in extraction.refused] == [
        ("location", "its key is not among those that are wanted")
    ]


DATED = [
    ("I live in Paris until May.", "Paris", None, datetime(2026, 6, 1, tzinfo=UTC)),
    ("I've lived in Paris since 2019", "Paris", datetime(2019, 1, 1, tzinfo=UTC), None),
    ("I live in Paris since 2019", "Paris", datetime(2019, 1, 1, tzinfo=UTC), None),
    (
        "I live in Paris from May 2026 until June 2026",
        "Paris",
        datetime(2026, 5, 1, tzinfo=UTC),
        datetime(2026, 7, 1, tzinfo=UTC),
    ),
]


@pytest.mark.parametrize(("message", "value", "valid_from", "valid_to"), DATED)
async def test_dates_that_the_message_says_set_the_validity(
    message: str, value: str, valid_from: datetime | None, valid_to: datetime | None
) -> None:
    proposals = (await extracted(message)).proposals
    (write,) = plan(PlanRequest(proposals, [], [], message, "ada", "t1", "turn-1", NOW)).writes
    fact = write.new_fact(user_id="ada", thread_id="t1", turn_id="turn-1")
    assert fact is not None
    assert (fact.key, fact.value, fact.valid_from, fact.valid_to) == ("location", value, valid_from or NOW, valid_to)


LONG_AGO = datetime(2020, 5, 15, 12, tzinfo=UTC)
RELATIVE = [
    ("I moved to Rome last month.", datetime(2020, 4, 1, tzinfo=UTC)),
    ("I moved to Rome yesterday.", datetime(2020, 5, 14, tzinfo=UTC)),
    ("I've lived in Rome since last year", datetime(2019, 1, 1, tzinfo=UTC)),
    ("I moved to Rome two years ago.", datetime(2018, 5, 15, tzinfo=UTC)),
    ("I live in Rome since March", datetime(2020, 3, 1, tzinfo=UTC)),
    ("I live in Rome this month", LONG_AGO),
    ("I moved to Rome", LONG_AGO),
]


@pytest.mark.parametrize(("message", "begins"), RELATIVE)
async def test_relative_dates_are_reckoned_from_when_it_was_said(message: str, begins: datetime) -> None:
    request = ExtractionRequest([Said(message, "", LONG_AGO)], [], NOW)
    proposals = (await OfflineExtractor().extract(request)).proposals
    made = plan(PlanRequest(proposals, [], [], message, "ada", "t1", "turn-1", NOW, LONG_AGO))
    (write,) = made.writes
    fact = write.new_fact(user_id="ada", thread_id="t1", turn_id="turn-1")
    assert fact is not None
    assert (fact.value, fact.valid_from, fact.valid_to) == ("Rome", begins, None)


SAID = "i i'm am my name is ada Ada Paris live in like and no longer not forget that a the , . ? ! ' \" :"
WORDS = SAID.split(" ")


@given(st.lists(st.sampled_from([*WORDS, "\u201c", "\ud800", "\n", "work at", "call me"]), max_size=25).map(" ".join))
async def test_every_proposal_has_a_quote_that_stands(message: str) -> None:
    for proposal in (await extracted(message, KNOWN)).proposals:
        assert quote_problem(proposal.evidence, message) in {None, "the quote is a question"}


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "I ",
        "I'm ",
        "I like ",
        '"',
        "\u201c",
        "```",
        "I like a, ",
        "my ",
        ", I",
        "I moved from ",
        ".",
        " ",
        "\n",
        "I'm A ",
        "I'm Ada. ",
        "my dog's name is ",
        "now ",
        "I live in Paris. ",
        "forget that ",
        "and i",
        "\u3002",
    ],
)
async def test_a_hostile_message_takes_no_time(piece: str) -> None:
    message = (piece * 32_000)[:32_000]
    started = time.process_time()
    await extracted(message, KNOWN)
    assert time.process_time() - started < 0.1
