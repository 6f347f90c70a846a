from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.decision import Decision, FactScope, Proposal, ProposalSource
from memory.evidence import quote_problem
from memory.fact import Fact, fact_dict
from memory.reconciliation import Plan, PlanRequest, plan
from memory.turn import derived_id

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SAID = "I'm Ada Lovelace. I live in Paris, I no longer like jazz, and I take 10 mg. Is it late?"


def fact(number: int, key: str | None, value: str, statement: str | None = None) -> Fact:
    at = NOW - timedelta(days=1) + timedelta(minutes=number)
    return Fact(
        id=f"f{number}",
        user_id="ada",
        key=key,
        value=value,
        statement=statement or f"{key}: {value}",
        created_at=at,
        updated_at=at,
        confirmed_at=at,
        valid_from=at,
    )


NAME = fact(1, "name", "Ada")
HOME = fact(2, "location", "Berlin", "The user lives in Berlin.")
JAZZ = fact(3, None, "jazz", "The user likes jazz.")
DOSE = fact(4, None, "5 mg", "The user takes 5 mg.")
KNOWN = (NAME, HOME, JAZZ, DOSE)


def planned(*proposals: Proposal, living: Sequence[Fact] = KNOWN, message: str = SAID) -> Plan:
    return plan(
        PlanRequest(
            proposals=proposals,
            known=tuple(living),
            living=living,
            message=message,
            user_id="ada",
            thread_id="t1",
            turn_id="turn-1",
            now=NOW,
        )
    )


def done(made: Plan, facts: Sequence[Fact]) -> dict[str, Fact]:
    """The facts after the plan's writes, as a store does them."""
    stored = {item.id: item for item in facts}
    for write in made.writes:
        new = write.new_fact(user_id="ada", thread_id="t1", turn_id="turn-1")
        if new is not None and new.id not in stored:
            stored[new.id] = new
        if write.ends is not None and stored[write.ends].valid_to is None:
            stored[write.ends] = replace(stored[write.ends], valid_to=write.at, updated_at=write.at)
        if write.confirms is not None and stored[write.confirms].valid_to is None:
            confirmed_at = max(stored[write.confirms].confirmed_at, write.at)
            stored[write.confirms] = replace(stored[write.confirms], confirmed_at=confirmed_at)
    return stored


def living_after(made: Plan, facts: Sequence[Fact] = KNOWN) -> list[str]:
    return [item.text for item in done(made, facts).values() if item.valid_to is None]


def says(decision: Decision, quote: str = "I live in Paris", **fields: object) -> Proposal:
    return replace(Proposal(decision, evidence=quote), **fields)  # pyright: ignore[reportArgumentType]  # a table's row


ACCEPTED = [
    # what is proposed, what becomes of it: decision, key, before, after
    (says("add", key="city", value="Paris"), ("add", "city", None, "Paris")),
    (says("add", key="location", value="Paris"), ("update", "location", "Berlin", "Paris")),
    (says("update", key="location", value="Paris"), ("update", "location", "Berlin", "Paris")),
    (says("update", shown=2, value="Paris"), ("update", "location", "Berlin", "Paris")),
    (says("update", key="city", value="Paris"), ("add", "city", None, "Paris")),
    (says("add", "I'm Ada", key="name", value=" ADA. "), ("keep", "name", "Ada", "Ada")),
    (says("update", "I'm Ada", shown=1, key="name", value="ada"), ("keep", "name", "Ada", "Ada")),
    (says("keep", "I'm Ada", shown=1), ("keep", "name", "Ada", "Ada")),
    (says("keep", "I'm Ada", key="name"), ("keep", "name", "Ada", "Ada")),
    (says("keep", shown=2, value="Paris"), ("update", "location", "Berlin", "Paris")),
    (
        says("keep", "I take 10 mg", shown=4, statement="The user takes 10 mg."),
        ("update", None, "The user takes 5 mg.", "The user takes 10 mg."),
    ),
    (
        says("keep", "I take 10 mg", shown=4, statement="5 mg is what the user takes."),
        ("keep", None, "The user takes 5 mg.", "The user takes 5 mg."),
    ),
    (says("delete", "I no longer like jazz", shown=3), ("delete", None, "The user likes jazz.", None)),
    (
        says("delete", "I no longer like jazz", statement="the user likes jazz"),
        ("delete", None, "The user likes jazz.", None),
    ),
    (says("delete", "I'm Ada Lovelace", key="name"), ("delete", "name", "Ada", None)),
    (says("add", statement="The user lives in Paris."), ("add", None, None, "The user lives in Paris.")),
    (
        says("add", statement="the user LIKES jazz"),
        ("keep", None, "The user likes jazz.", "The user likes jazz."),
    ),
    (
        says("add", key="likes_jazz", value="jazz", statement="The user likes jazz."),
        ("keep", None, "The user likes jazz.", "The user likes jazz."),
    ),
    (says("add", key="city", value="Paris", shown=99), ("add", "city", None, "Paris")),
    (
        says("add", key="lives_abroad", value="yes", statement="The user lives abroad."),
        ("add", "lives_abroad", None, "yes"),
    ),
    (
        says("update", shown=3, key="music", value="rock", statement="The user likes rock."),
        ("update", "music", "The user likes jazz.", "rock"),
    ),
]


@pytest.mark.parametrize(("proposal", "expected"), ACCEPTED)
def test_a_decision_becomes_a_change(
    proposal: Proposal, expected: tuple[str, str | None, str | None, str | None]
) -> None:
    made = planned(proposal)
    assert made.refused == ()
    (change,) = made.changes
    assert (change.decision, change.key, change.before, change.after) == expected
    assert change.evidence == proposal.evidence
    assert len(made.writes) == 1


NOT_SHOWN = "it names a fact that was not shown"
KEY_FORM = "the key is not of the form [a-z][a-z0-9_]{0,63}"
REFUSED = [
    (says("add", "I live in Rome", key="city", value="Rome"), "the quote is not in the user's message"),
    (says("add", "", key="city", value="Rome"), "there is no quote"),
    (says("keep", "", shown=1), "there is no quote"),
    (says("add", "Is it late?", key="time", value="late"), "the quote is a question"),
    (says("add", key="City", value="Paris"), KEY_FORM),
    (says("add", key="", value="Paris"), KEY_FORM),
    (says("add", key="a" * 65, value="Paris"), KEY_FORM),
    (says("add", key="city", value=" "), "the value is empty"),
    (says("add", key="city", value="!?"), "the value is empty"),
    (says("add", key="city", statement="The user lives in Paris."), "the value is empty"),
    (says("add", key="name", statement="The user is Eva."), "the value is empty"),
    (says("add", value="Paris"), "the statement is empty"),
    (says("add", statement="Yes."), "it is a bare yes or no"),
    (says("add", key="abroad", value="Yes"), "it is a bare yes or no"),
    (says("add", statement="Does the user live in Paris?"), "it is a question"),
    (says("add", key="city", value="Which one?"), "it is a question"),
    (says("add", key="city", value="P" * 1001), "the value is longer than 1000 characters"),
    (says("add", statement="P" * 2001), "the statement is longer than 2000 characters"),
    (says("add", key="city", value="Par\0is"), "it holds characters that cannot be stored"),
    (says("add", key="city", value="Par\ud800is"), "it holds characters that cannot be stored"),
    (says("add", key="city", value="Paris", scope="global"), "global facts are written by administrators only"),
    (says("update", shown=99, value="Paris"), NOT_SHOWN),
    (says("update", shown=0, value="Paris"), NOT_SHOWN),
    (says("delete", shown=-1), NOT_SHOWN),
    (says("update", shown=1, key="location", value="Paris"), "its key is not that of the fact it names"),
    (says("keep", "I'm Ada", shown=2, key="name"), "its key is not that of the fact it names"),
    (says("update", shown=3, key="name", value="Paris"), "its key is that of another known fact"),
    (says("delete", key="city"), "it names no known fact"),
    (says("keep", key="city", value="Paris"), "it names no known fact"),
    (says("delete", "I take 10 mg", shown=1), "the quote names nothing of the fact"),
    (says("delete", "and I", shown=3), "the quote names nothing of the fact"),
    (says("delete", "I live in Paris", key="location", value="Paris"), "its value is not that of the fact it names"),
    (says("keep", shown=2, value="yes"), "it is a bare yes or no"),
]


@pytest.mark.parametrize(("proposal", "reason"), REFUSED)
def test_a_refused_decision_says_why_and_spoils_no_neighbour(proposal: Proposal, reason: str) -> None:
    good = says("add", "I'm Ada Lovelace", key="full_name", value="Ada Lovelace")
    made = planned(good, proposal, says("keep", "I'm Ada", shown=1))
    assert [refused.reason for refused in made.refused] == [reason]
    assert [change.decision for change in made.changes] == ["add", "keep"]
    assert all("\0" not in refused.evidence for refused in made.refused)


@pytest.mark.parametrize("guard", [{"pinned": True}, {"source": "manual"}])
@pytest.mark.parametrize(
    "proposal",
    [
        says("add", key="location", value="Paris"),
        says("update", shown=1, value="Paris"),
        says("keep", shown=1, value="Paris"),
        says("delete", "I live in Paris", shown=1),
        says("add", key="location", value="Paris", scope="thread"),
    ],
)
def test_no_model_changes_what_a_person_wrote_or_pinned(guard: dict[str, object], proposal: Proposal) -> None:
    guarded = replace(HOME, **guard)  # pyright: ignore[reportArgumentType]  # a table's row
    made = planned(proposal, living=[guarded])
    assert made.changes == ()
    assert [(item.fact_id, item.reason) for item in made.refused] == [("f2", "a person wrote or pinned the fact")]


def test_telling_again_what_a_person_wrote_confirms_it() -> None:
    made = planned(says("add", "I'm Ada", key="name", value="Ada"), living=[replace(NAME, pinned=True)])
    assert [change.decision for change in made.changes] == ["keep"]


def test_an_update_supersedes_and_the_old_value_keeps_its_history() -> None:
    made = planned(says("update", key="location", value="Paris", statement="The user lives in Paris."))
    stored = done(made, KNOWN)
    new = stored[derived_id("ada", "turn-1", "fact:location")]
    assert (new.value, new.replaces, new.turn_id, new.thread_id, new.source) == ("Paris", "f2", "turn-1", "t1", "turn")
    assert (new.valid_from, new.valid_to, new.evidence) == (NOW, None, "I live in Paris")
    assert stored["f2"].valid_to == NOW
    assert fact_dict(stored.values())["location"] == "Paris"


def test_what_supersedes_is_newer_even_where_clocks_disagree() -> None:
    ahead = replace(HOME, created_at=NOW + timedelta(hours=1))
    made = planned(says("update", key="location", value="Paris"), living=[ahead])
    assert made.writes[0].at > ahead.created_at


def test_a_keyed_fact_without_a_statement_gets_one() -> None:
    made = planned(says("add", key="city", value="Paris"))
    assert made.writes[0].statement == "city: Paris"


def test_importance_and_tags_are_bounded() -> None:
    proposal = says(
        "add", key="city", value="Paris", importance=7.0, tags=(" a ", "", "a", "x" * 65, *map(str, range(20)))
    )
    (write,) = planned(proposal).writes
    assert write.importance == 1.0
    assert write.tags == ("a", *map(str, range(9)))
    assert planned(says("add", key="city", value="Paris", importance=float("nan"))).writes[0].importance == 0.5
    assert planned(says("add", key="city", value="Paris", importance=float("-inf"))).writes[0].importance == 0.0


def test_the_same_told_twice_is_one_change() -> None:
    twice = [
        says("add", key="city", value="Paris", source="tool"),
        says("add", key="city", value="paris."),
        says("add", key="city", value="Paris", scope="thread"),
        says("add", statement="The user lives in Paris."),
        says("add", statement="the user lives in paris"),
        says("keep", "I'm Ada", shown=1),
        says("add", "I'm Ada", key="name", value="Ada"),
    ]
    made = planned(*twice)
    assert made.refused == ()
    assert [change.after for change in made.changes] == ["Paris", "The user lives in Paris.", "Ada"]


def test_of_two_values_for_one_key_the_first_holds_and_the_second_is_refused() -> None:
    made = planned(says("add", key="city", value="Paris"), says("add", "I take 10 mg", key="city", value="Rome"))
    assert [change.after for change in made.changes] == ["Paris"]
    assert [item.reason for item in made.refused] == ["an earlier decision of this turn already sets it"]


@pytest.mark.parametrize(
    "again", [says("add", key="city", value="Rome"), says("delete", "I live in Paris", key="city")]
)
def test_what_this_turn_has_written_already_is_neither_changed_nor_ended_by_it(again: Proposal) -> None:
    first = done(planned(says("add", key="city", value="Paris", source="tool")), KNOWN)
    made = planned(again, living=list(first.values()))
    assert made.writes == ()
    assert [item.reason for item in made.refused] == ["an earlier decision of this turn already sets it"]


def test_the_agents_own_proposals_come_first() -> None:
    made = planned(says("add", key="city", value="Rome"), says("add", key="city", value="Paris", source="tool"))
    assert [change.after for change in made.changes] == ["Paris"]
    assert made.writes[0].source == "tool"


def test_one_change_a_fact() -> None:
    update = says("update", key="location", value="Paris")
    delete = says("delete", "I live in Paris", shown=2)
    keep = says("keep", shown=2)
    earlier = "an earlier decision of this turn is about the same fact"
    for proposals in ([update, delete], [update, keep]):
        made = planned(*proposals)
        assert [change.decision for change in made.changes] == ["update"]
        assert [item.reason for item in made.refused] == [earlier]
    for proposals in ([delete, update], [keep, update]):
        made = planned(*proposals)
        assert [change.decision for change in made.changes] == ["update"]
        assert made.refused == ()


def test_a_threads_fact_leaves_the_users_alone() -> None:
    made = planned(says("add", key="location", value="Paris", scope="thread"))
    (write,) = made.writes
    assert (write.scope, write.ends) == ("thread", None)
    assert write.inserts != derived_id("ada", "turn-1", "fact:location")


def test_decisions_after_the_twentieth_are_refused() -> None:
    made = planned(*(says("add", key=f"k{number}", value="Paris") for number in range(500)))
    assert len(made.changes) == 20
    assert {item.reason for item in made.refused} == {"it comes after the turn's first 20 decisions"}
    assert len(made.refused) == 480


def test_a_fact_that_ended_meanwhile_is_not_touched() -> None:
    made = plan(PlanRequest([says("update", shown=1, value="Paris")], [HOME], [], SAID, "ada", "t1", "turn-1", NOW))
    assert [item.reason for item in made.refused] == ["the fact it names has ended"]


TEXTS = st.one_of(
    st.sampled_from(["", "Paris", "Ada", "jazz", "Yes", "no?", "\0", "\ud800", "10 mg", "The user likes jazz."]),
    st.text(max_size=30),
)
QUOTES = st.one_of(
    st.sampled_from(["I live in Paris", "I no longer like jazz", "I'm Ada", "Is it late?", ""]), st.text(max_size=20)
)
DECISIONS: list[Decision] = ["add", "update", "delete", "keep"]
SCOPES: list[FactScope] = ["user", "thread", "global"]
SOURCES: list[ProposalSource] = ["extraction", "tool"]
PROPOSALS = st.builds(
    Proposal,
    decision=st.sampled_from(DECISIONS),
    key=st.one_of(st.none(), st.sampled_from(["name", "location", "city", "", "Bad key"]), TEXTS),
    value=st.one_of(st.none(), TEXTS),
    statement=st.one_of(st.none(), TEXTS),
    evidence=QUOTES,
    shown=st.one_of(st.none(), st.integers(-2, 7)),
    scope=st.sampled_from(SCOPES),
    importance=st.floats(),
    tags=st.lists(TEXTS, max_size=12).map(tuple),
    source=st.sampled_from(SOURCES),
)


@given(st.lists(PROPOSALS, max_size=25))
def test_no_proposal_raises_and_a_plan_done_twice_is_done_once(proposals: list[Proposal]) -> None:
    made = planned(*proposals)
    once = done(made, KNOWN)
    assert done(made, list(once.values())) == once
    assert len(made.changes) == len(made.writes) <= 20
    touched = [change.before for change in made.changes if change.before is not None]
    assert len(touched) == len(set(touched))
    keys = [item.key for item in once.values() if item.valid_to is None and item.key and item.scope == "user"]
    assert len(keys) == len(set(keys))


@given(st.lists(PROPOSALS.filter(lambda item: quote_problem(item.evidence, SAID) is not None), max_size=10))
def test_nothing_without_a_valid_quote_changes_anything(proposals: list[Proposal]) -> None:
    made = planned(*proposals)
    assert made.changes == ()
    assert made.writes == ()
    assert len(made.refused) == len(proposals)


def test_the_same_turn_planned_again_after_its_writes_leaves_the_facts_as_they_are() -> None:
    proposals = [says("update", key="location", value="Paris"), says("delete", "I no longer like jazz", shown=3)]
    once = done(planned(*proposals), KNOWN)
    again = [item for item in once.values() if item.valid_to is None]
    made = planned(proposals[0], living=again)
    assert [change.decision for change in made.changes] == ["keep"]
    assert living_after(made, again) == [item.text for item in again]
