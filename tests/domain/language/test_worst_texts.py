"""No text costs much more than another of its length: attackers choose theirs.

Every public function of the domain that takes a text is listed, with what is worst for it, or named as one that takes
short texts alone.
"""

import ast
import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.api.cli.terminal import plain_text
from recollect.memory.facts import wording as proposal
from recollect.memory.index import bm25
from recollect.memory.language import folding, lexemes, punctuation, quoted_parts, sentences
from recollect.memory.language.said_hash import said_hash
from recollect.memory.language.trivial import is_trivial
from recollect.memory.learning.attribution import attribute
from recollect.memory.learning.extraction.answer import read_decisions
from recollect.memory.learning.plan import PlanRequest
from recollect.memory.learning.proof.claim import ProposedFact, proof_problem
from recollect.memory.learning.proof.evidence import heard, quote_problem
from recollect.memory.learning.proof.quote_place import quote_place
from recollect.memory.learning.proof.witness import Witness
from recollect.memory.learning.reconciliation import plan
from recollect.memory.learning.validity import read_validity
from recollect.memory.ports.document_reader import checked_text
from recollect.memory.providers.lexical import embed
from recollect.memory.providers.offline import acknowledgement, clauses, questions, rules
from recollect.memory.recall.memory_block import by_passages
from recollect.memory.recall.packing import excerpt
from recollect.memory.recall.query import prepare_query
from recollect.memory.temporal import temporal
from recollect.memory.temporal.dates import Times, date_starts, read_date, says_time
from recollect.memory.temporal.time_languages import languages_of
from recollect.memory.threads import summary_text
from recollect.memory.threads.extractive_summary import extract
from recollect.memory.transfer.file_names import file_name
from recollect.memory.transfer.sources import records
from recollect.memory.values import text
from recollect.memory.values.decision import Proposal
from recollect.memory.values.document import text_hash
from recollect.memory.values.errors import RecollectError
from recollect.memory.values.fact import fold

NOW = datetime(2026, 5, 5, 12, tzinfo=UTC)
MOST = 200_000
"""MAX_MESSAGE_CHARACTERS as it is by default."""
RATIO = 40
"""Most CPU time of a text, as a multiple of what plain text of its length takes, which is at least LEAST seconds."""
LEAST = 0.025
PLAIN = "I drink green tea with Ada and I like it a lot. "
MARKS = ("\u0323\u0301", "\u0f73")
QUERY = prepare_query("What tea does Ada like?")
KNOWN = questions.KnownTexts({"name": "Ada", "location": "Paris"})


def _proved(said: str) -> object:
    """Return what a claim and its quote of such a text come to."""
    claim = ProposedFact("note", said[:1_000], said[:2_000])
    return proof_problem(claim, said[:1_900], Witness.of(said, heard(said), at=NOW, asked=said))


FUNCTIONS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "learning.attribution.attribute": (
        lambda said: attribute([Proposal("add", evidence=said[:size]) for size in range(1, 21)], [said]),
        ("a? ", "\u3316"),
    ),
    "index.bm25.document_weights": (bm25.document_weights, ("1\u5e74", "\u6211")),
    "index.bm25.query_weights": (bm25.query_weights, ()),
    "index.bm25.stems": (bm25.stems, ("\u3316",)),
    "language.said_hash.said_hash": (said_hash, ("\u0390",)),
    "temporal.dates.Times": (Times.of, ("1", "1 ", "\U0001f600a")),
    "temporal.dates.date_starts": (lambda said: list(date_starts(said)), (";",)),
    "temporal.dates.read_date": (read_date, ("1", " ")),
    "temporal.dates.says_time": (says_time, ("in may",)),
    "ports.document_reader.checked_text": (lambda said: checked_text(said, most=MOST), ()),
    "learning.proof.evidence.heard": (heard, ("\ufdfa", "a" + "\u0301" * 30)),
    "learning.proof.evidence.quote_problem": (lambda said: quote_problem(said[:2_000], said), ("a? ", ", ", "' ")),
    "learning.proof.quote_place.quote_place": (
        lambda said: quote_place(said[:2_000], said + "x"),
        ("a ", "' ", "a'", " ", "a\n  b "),
    ),
    "learning.extraction.answer.read_decisions": (read_decisions, ('{"a":', "[", "{", "```")),
    "threads.extractive_summary.extract": (lambda said: extract(said[:40_000], [said], tokens=500), (". ", "A. ")),
    "values.fact.fold": (fold, ("\u200d", "1.", "-")),
    "transfer.file_names.file_name": (file_name, ()),
    "language.folding.folded": (folding.folded, ("\ufdfa", "\u0130", "a" + "\u0301" * 30, "\uff9e")),
    "language.folding.nfkc": (folding.nfkc, ("\u3316",)),
    "language.folding.nfkd": (folding.nfkd, ("\u1fa7",)),
    "transfer.sources.records.fact_key": (records.fact_key, ("aA",)),
    "transfer.sources.records.note_fields": (lambda said: records.note_fields(said, user_id=None), ()),
    "transfer.sources.records.split_exchange": (records.split_exchange, ("User: a\n", " ", "User: \nAssistant: ")),
    "transfer.sources.records.thread_name": (records.thread_name, (" a",)),
    "language.lexemes.words": (lambda said: list(lexemes.words(said)), ("1\u5e74", "+", "\ufeff")),
    "ports.documents.text_hash": (text_hash, ()),
    "recall.packing.excerpt": (lambda said: excerpt(said, 2_000, relevance=QUERY.relevance), ("a. ", "\n")),
    "facts.wording.Terms": (proposal.Terms.of, ("\u200d",)),
    "facts.wording.clean_excerpt": (proposal.clean_excerpt, ()),
    "facts.wording.clean": (proposal.clean, ()),
    "facts.wording.numbers_in": (proposal.numbers_in, ("1,", "-1")),
    "providers.lexical.embed": (embed, ("1\u5e74",)),
    "providers.offline.acknowledgement.small_talk": (lambda said: acknowledgement.small_talk(said, "Ada"), (" ",)),
    "providers.offline.clauses.read_clauses": (clauses.read_clauses, ('"', "A. ", "\u201ca ", "I ", " and")),
    "providers.offline.questions.answer_question": (
        lambda said: questions.answer_question(said, KNOWN),
        ("my is is ", "how old "),
    ),
    "providers.offline.rules.read_findings": (
        lambda said: rules.read_findings(said, KNOWN.facts),
        ("my ", "I live in ", "forget "),
    ),
    "language.quoted_parts.own_words": (quoted_parts.own_words, ("on 1\n", "```", "> ", "-- ", "= =\n")),
    "language.quoted_parts.speech": (
        lambda said: list(quoted_parts.speech(said)),
        ("'a ", '"', "\u201ca ", "' ", "a'\n"),
    ),
    "learning.proof.claim.proof_problem": (
        _proved,
        ("a, ", "A ", "1 ", "one ", "\u4e00", "de89 ", "not ", "5 ft ", "no longer "),
    ),
    "language.quoted_parts.speeches": (quoted_parts.speeches, ("'a ", '"I ', "\u201ci ")),
    "language.quoted_parts.without_speech": (quoted_parts.without_speech, ("'a ", '"I ', "\u201ci ")),
    "learning.reconciliation.plan": (lambda said: plan(_request(said)), ("a? ", "1 ", "\u3316")),
    "recall.query.prepare_query": (
        lambda said: prepare_query(said, names=["Ada Lovelace", "Bob"]),
        ("what x x ", "Ada ", " "),
    ),
    "recall.query.relevance": (QUERY.relevance, ("\u3316",)),
    "language.punctuation.asks": (punctuation.asks, (" ",)),
    "language.sentences.sentences": (sentences.sentences, (". ", ".)", '"', "\n ")),
    "threads.summary_text.cut_at_sentence": (lambda said: summary_text.cut_at_sentence(said, 500), (". ",)),
    "threads.summary_text.cut_at_word": (lambda said: summary_text.cut_at_word(said, 500), (" ",)),
    "threads.summary_text.readable_summary": (
        lambda said: summary_text.readable_summary(said[:100_000], tokens=500),
        (" ", "<think>", "</think>"),
    ),
    "threads.summary_text.summary_sentences": (summary_text.summary_sentences, ("A. ", "1. ", ".")),
    "temporal.temporal.find_interval": (
        lambda said: temporal.find_interval(said, now=NOW, timezone=UTC),
        ("2019 ", "last ", "in may "),
    ),
    "values.text.cut": (lambda said: text.cut(said, 500), ()),
    "values.text.message_problem": (lambda said: text.message_problem(said, most=MOST), ()),
    "values.text.check_message": (text.check_message, ()),
    "values.text.check_text": (lambda said: text.check_text(said, field="text"), ()),
    "values.text.text_problem": (text.text_problem, ("\U0001f600",)),
    "temporal.time_languages.languages_of": (languages_of, ("\u0130",)),
    "language.trivial.is_trivial": (is_trivial, ("ok ", "ha")),
    "learning.validity.read_validity": (
        lambda said: read_validity("2019", "2020", said[:2_000], said_at=NOW, message=Times.of(said)),
        ("since ", "from 2019 to ", "1 "),
    ),
    "recall.memory_block.by_passages": (
        lambda said: by_passages([{"content": said}], said, recall_tokens=1_500),
        ("a. ",),
    ),
    "api.cli.terminal.plain_text.line": (plain_text.line, ("\ufeff",)),
    "api.cli.terminal.plain_text.shown_text": (plain_text.shown_text, ("\ufeff",)),
}
SHORT = {
    "language.said_hash.comparable": "a part of said_hash, above",
    "providers.presets.provider_name": "a setting",
    "recall.coverage.coverage_questions.why_covered": "the first 300 characters of 500 at most",
    "learning.proof.evidence.find_quote": "as quote_problem",
    "learning.proof.evidence.folded_quote": "at most 2,000 characters: a quote",
    "learning.proof.addresses.says_address": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.claim.carried_tags": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.claim.ending_problem": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.latin.sounds": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.names.claimed_names": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.names.is_carried": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.names.is_time": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.names.small_words": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.names.unsaid_signs": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.numbers.ascii_digits": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.numbers.claimed_numbers": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.sentence.clauses_of": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.short.answer_of": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.short.is_one_word": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.units.amounts": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.units.converted_numbers": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.vocabulary.contents": "at most 4,000 characters: a quote's sentence, or a claim",
    "learning.proof.validity_dates.says_date": "at most 4,000 characters: a quote's sentence, and 500 of the message",
    "temporal.dated_phrases.dated_phrases": "at most 500 characters, from find_interval",
    "documents.document_kind.kind_of_document": "a file's name",
    "learning.extraction.prompt.second_messages": "at most 2,000 characters of an answer",
    "values.document.passage_id": "ids alone",
    "values.filtering.keys.read_filter_keys": "a setting",
    "values.filtering.terms.text_term": "one digest of the whole text",
    "values.filtering.filter.read_instant": "a pattern of digits that ends at the first other character",
    "values.filtering.reading.read_json_object": "JSON's own reader",
    "values.filtering.reading.read_filter_text": "JSON's own reader, and an address of bounded length",
    "values.tool_use.call_of": "a tool's call, whose texts are cut to their bounds",
    "values.tool_use.result_of": "a tool's answer, which is cut to its bound",
    "values.tool_use.use_of": "a tool's answer, which is cut to its bound",
    "values.document.text_hash": "one digest of the whole text",
    "values.fact.is_key": "64 characters at most",
    "temporal.foreign_times.first_phrase": "at most 500 characters, from find_interval",
    "transfer.import_line.read_id": "a field's name",
    "transfer.import_line.read_text": "a field's name",
    "ports.keys.check_name": "a key's name",
    "ports.keys.is_key_id": "16 characters",
    "ports.keys.read_key": "a key",
    "ports.keys.read_role": "a role",
    "recall.packing.cost": "its length counts alone",
    "facts.wording.names_another": "at most 2,000 characters: a quote",
    "facts.wording.names_fact": "at most 2,000 characters: a quote",
    "providers.local.local_model.batches_by_length": "lengths alone",
    "providers.offline.finding.free_key": "at most 500 characters: a clause",
    "providers.offline.finding.slug": "at most 500 characters: a clause",
    "providers.offline.finding.trimmed": "at most 500 characters: a clause",
    "providers.offline.names.split_name": "at most 500 characters: a clause",
    "providers.openai.listing.model_ids": "a server's list",
    "providers.presets.preset": "a setting",
    "temporal.temporal.read_timezone": "64 characters at most",
    "temporal.time_leads.read_lead": "at most 500 characters, from find_interval",
    "temporal.time_phrases.count": "a number",
    "temporal.time_phrases.phrases": "at most 500 characters, from find_interval",
    "values.tokens.estimate_tokens": "its length counts alone",
    "values.tokens.fit_first": "lengths alone",
    "values.tokens.fit_last": "lengths alone",
    "temporal.wall_time.ago": "a unit's name",
    "temporal.wall_time.coming": "a unit's name",
    "temporal.wall_time.part": "a unit's name",
    "temporal.wall_time.since": "a unit's name",
    "temporal.wall_time.unit": "a unit's name",
    "language.words.word_set": "lists of our own",
}
TEXTS = {"text", "texts", "message", "messages", "question", "quote", "answer", "said", "content", "statement", "name"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_worst_text_costs_little_more_than_plain_text_of_its_length(name: str) -> None:
    function, pieces = FUNCTIONS[name]
    _seconds(function, PLAIN)  # what is made at the first call is no cost of a text
    most = RATIO * max(LEAST, _seconds(function, PLAIN))
    for piece in (*MARKS, *pieces):
        assert _seconds(function, piece) < most, f"{piece!r} again and again"


def test_every_function_of_a_text_is_listed() -> None:
    functions = set(_functions_of_texts())
    assert functions - {*FUNCTIONS, *SHORT} == set()
    assert set(SHORT) - functions == set(), "these are gone or have another name"


def _request(said: str) -> PlanRequest:
    """Return what twenty decisions on one message come to."""
    proposals = [
        Proposal("add", key=f"key_{size}", value="tea", evidence=said[:size], valid_from="2019", valid_to="2020")
        for size in range(1, 21)
    ]
    return PlanRequest(proposals, (), (), said, user_id="ada", thread_id="t1", turn_id="turn", now=NOW)


def _seconds(function: Callable[[str], object], piece: str) -> float:
    """CPU time of one call."""
    whole = (piece * MOST)[:MOST]
    started = time.thread_time()
    with contextlib.suppress(RecollectError):
        function(whole)
    return time.thread_time() - started


def _functions_of_texts() -> Iterator[str]:
    """Public functions of `memory/`, without its stores, that take a text."""
    root = Path(folding.__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        if "stores" in path.parts or "reading" in path.parts:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and _takes_text(node):
                yield ".".join((*path.relative_to(root).with_suffix("").parts, node.name))


def _takes_text(node: ast.FunctionDef) -> bool:
    return any(argument.arg in TEXTS and _is_text(argument.annotation) for argument in node.args.args)


def _is_text(annotation: ast.expr | None) -> bool:
    kinds = {"str", "str | None", "Sequence[str]", "Iterable[str]"}
    return annotation is not None and ast.unparse(annotation) in kinds
