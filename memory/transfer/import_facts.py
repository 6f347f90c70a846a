"""Reads the facts and summaries of an import, and stores its facts, many at once."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from hashlib import blake2b
from typing import Any, cast

from recollect.memory.background.batches import batches
from recollect.memory.erasure.fences import Writing
from recollect.memory.facts.fact_rivals import superseded
from recollect.memory.facts.fact_writes import revise
from recollect.memory.ports.facts import Facts
from recollect.memory.ports.store import Store
from recollect.memory.transfer.import_line import BadLine, check_fields, read_id, read_text, read_time
from recollect.memory.values.errors import FactConflict
from recollect.memory.values.fact import Fact, fold, is_key
from recollect.memory.values.fact_limits import (
    MOST_FACTS,
    MOST_STATEMENT_CHARACTERS,
    MOST_TAG_CHARACTERS,
    MOST_TAGS,
    MOST_VALUE_CHARACTERS,
)
from recollect.memory.values.frozen import frozen
from recollect.memory.values.json_values import metadata_problem
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import derived_id

MOST_SUMMARY_CHARACTERS = 40_000
MOST_TAKEN = 500
_INSERTED_AT_ONCE, _ENDED_AT_ONCE = 100, 20
_FACT_FIELDS = frozenset({"user_id", "key", "value", "timestamp", "tags", "metadata", "agent_id"})
_SUMMARY_FIELDS = frozenset({"user_id", "thread_id", "content"})


@frozen
class ImportFact:
    """Holds a fact of an import; without a key, `value` is the whole statement. `at` is since when it is so (UTC)."""

    user_id: str
    key: str | None
    value: str
    at: datetime | None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agent_id: str | None = None

    @property
    def id(self) -> str:
        """Return the fact's id, which every import derives from user, key and value."""
        digest = blake2b(f"{self.key or ''}\n{fold(self.value)}".encode(), digest_size=16).hexdigest()
        # A turn's id is never empty: no turn derives an equal id.
        return derived_id(self.user_id, "", f"import:{digest}")


@frozen
class ImportSummary:
    """Holds a thread's summary of an import."""

    scope: Scope
    content: str


def read_extra(said: Mapping[str, Any], kind: str) -> ImportFact | ImportSummary:
    """Return the fact or the summary of these fields.

    Raises:
        BadLine: a field is missing, unknown, of a wrong type, or none that can be stored.
    """
    if kind == "fact":
        check_fields(said, known=_FACT_FIELDS, needed=("user_id", "value"))
        key = said.get("key")
        if key is not None and not (isinstance(key, str) and is_key(key)):
            raise BadLine("key must be of the form [a-z][a-z0-9_]{0,63}.")
        most = MOST_STATEMENT_CHARACTERS if key is None else MOST_VALUE_CHARACTERS
        time = said.get("timestamp")
        return ImportFact(
            read_id(said, "user_id"),
            key,
            read_text(said, "value", most=most),
            None if time is None else read_time(time),
            _tags(said.get("tags")),
            _metadata(said.get("metadata")),
            None if said.get("agent_id") is None else read_id(said, "agent_id"),
        )
    check_fields(said, known=_SUMMARY_FIELDS, needed=("user_id", "thread_id", "content"))
    scope = Scope(read_id(said, "user_id"), read_id(said, "thread_id"))
    return ImportSummary(scope, read_text(said, "content", most=MOST_SUMMARY_CHARACTERS))


async def take_facts(store: Store, given: Sequence[ImportFact], writing: Writing, *, now: datetime) -> list[bool]:
    """Store those of these facts (at most MOST_TAKEN, of one user) that are new, and tell of each whether it was.

    One is not where it is known already, or where its key has a fact that must not be replaced: a fact of an import
    replaces only an older one of an import, never one that a person wrote or a turn taught. Forgotten facts stay
    forgotten. The outcome is that of taking one fact after the other.

    Raises:
        StoreUnavailable: the store cannot be reached; a repeat of the lines completes it.
    """
    facts, user_id = store.facts, given[0].user_id
    stored = await facts.facts(user_id=user_id, fact_ids=list({fact.id for fact in given}))
    living: list[Fact] = []
    if any(fact.key is not None for fact in given):
        living = await facts.living(Scope(user_id), at=now, limit=MOST_FACTS)
    taking = _Taking(now, stored, living)
    taken = [taking.take(fact) for fact in given]
    writing.on_erased(lambda: facts.remove(user_id=user_id, fact_ids=list(taking.new)))
    inserted: set[str] = set()
    for some in batches(list(taking.new.values()), _INSERTED_AT_ONCE):
        inserted |= await facts.insert_all(some)
    # Insert before ending the older ones: a kill in between leaves two, and a repeat of the lines ends the older.
    # Where somebody else has inserted the newer one meanwhile, the end of the older one is theirs.
    ends = [older for older, newer in taking.ends if newer in inserted or newer not in taking.new]
    for some in batches(ends, _ENDED_AT_ONCE):
        # All of them end before an error is raised: none may write on when the fence is left.
        ended = await asyncio.gather(*(_end(facts, user_id, one, now) for one in some), return_exceptions=True)
        for error in filter(None, ended):
            raise error
    return [is_new and fact.id in inserted for fact, is_new in zip(given, taken, strict=True)]


class _Taking:
    """Decides which facts are `new` (by id, in order), and which each of them, or a known one, ends: `ends`."""

    def __init__(self, now: datetime, stored: Sequence[Fact], living: Sequence[Fact]) -> None:
        self.new: dict[str, Fact] = {}
        self.ends: list[tuple[str, str]] = []
        self._now = now
        self._known = {fact.id: fact for fact in stored}
        self._ended: set[str] = set()
        self._living: dict[str, list[Fact]] = defaultdict(list)
        for fact in living:
            if fact.key is not None and fact.is_living(now) and (fact.scope, fact.home) == ("user", None):
                self._living[fact.key].append(fact)

    def take(self, given: ImportFact) -> bool:
        """Take the next fact, and return whether it is new."""
        begins = min(given.at or self._now, self._now)
        under = self._living[given.key] if given.key is not None else []
        older = [fact for fact in under if fact.id != given.id]
        if not all(_gives_way(fact, given, begins) for fact in older):
            return False
        known = self._known.get(given.id)
        fact = known or _fact(given, begins=begins, now=self._now, replaces=older[0].id if older else None)
        if known is None:
            self._known[given.id] = self.new[given.id] = fact
        if fact.is_living(self._now) and fact.id not in self._ended:
            self.ends += [(one.id, fact.id) for one in older]
            self._ended |= {one.id for one in older}
            under[:] = [fact]
        return known is None


def _tags(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    tags = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = [tag for tag in tags if isinstance(tag, str)]
    if len(texts) < len(tags) or len(texts) > MOST_TAGS:
        raise BadLine(f"tags must be a list of at most {MOST_TAGS} texts.")
    for tag in texts:
        read_text({"tags": tag}, "tags", most=MOST_TAG_CHARACTERS)
    return tuple(dict.fromkeys(texts))


def _metadata(value: object) -> Mapping[str, Any]:
    problem = None if value is None else metadata_problem(value)
    if problem is not None:
        raise BadLine(f"metadata {problem}.")
    return cast("Mapping[str, Any]", value or {})


def _gives_way(fact: Fact, given: ImportFact, begins: datetime) -> bool:
    """Tell whether `given`, which holds from `begins`, may replace `fact`."""
    is_other = fold(fact.value) != fold(given.value)
    return fact.source == "import" and not fact.is_guarded and is_other and fact.valid_from <= begins


async def _end(facts: Facts, user_id: str, fact_id: str, now: datetime) -> None:
    # On a conflict its other writer keeps changing it, and knows the new fact by now.
    with contextlib.suppress(FactConflict):
        await revise(facts, user_id=user_id, fact_id=fact_id, change=superseded(by="person", at=now))


def _fact(given: ImportFact, *, begins: datetime, now: datetime, replaces: str | None) -> Fact:
    return Fact(
        id=given.id,
        user_id=given.user_id,
        key=given.key,
        value=given.value[:MOST_VALUE_CHARACTERS],
        statement=given.value if given.key is None else f"{given.key}: {given.value}",
        created_at=begins,
        updated_at=now,
        confirmed_at=begins,
        valid_from=begins,
        source="import",
        tags=given.tags,
        replaces=replaces,
        metadata=given.metadata,
        agent_id=given.agent_id,
    )
