"""The corpus of persons who talk with an assistant reads the same in every run; its questions name its messages."""

from collections import Counter
from statistics import fmean

from benchmarks.assistant_recall import KINDS, Found, table
from benchmarks.assistant_talks import AssistantQuestion, read_assistant_talks


def test_every_question_names_messages_and_half_of_the_talks_are_held_out() -> None:
    talks = read_assistant_talks()
    assert talks == read_assistant_talks()
    assert Counter(talk.is_held_out for talk in talks) == {True: 3, False: 3}
    for talk in talks:
        roles = {said.message_id: said.role for said in talk.messages}
        assert len(roles) == len(talk.messages)
        for question in talk.questions:
            assert set(question.evidence) <= roles.keys(), question.text
            asked_for = "assistant" if question.kind == "answer" else "user"
            assert {roles[label] for label in question.evidence} == {asked_for}, question.text
        assert {question.kind for question in talk.questions} == set(KINDS)
        assert [said.at for said in talk.messages] == sorted(said.at for said in talk.messages)


def test_answers_are_long() -> None:
    for talk in read_assistant_talks():
        lengths = {
            role: [len(one.content) for one in talk.messages if one.role == role] for role in ("user", "assistant")
        }
        assert fmean(lengths["assistant"]) > 8 * fmean(lengths["user"])


def test_the_table_counts_each_half_and_each_kind() -> None:
    found = [
        Found(AssistantQuestion(kind, "?", ("a",)), is_held_out, (0.0, float(is_held_out)))
        for kind in KINDS
        for is_held_out in (True, False)
    ]
    lines = table({"off": found}, "no embedding model").splitlines()
    assert "| open talks | 6 | 0.0 | 0.0 |" in lines
    assert "| held-out talks | 6 | 0.0 | 100.0 |" in lines
    assert "| order | 2 | 0.0 | 50.0 |" in lines
