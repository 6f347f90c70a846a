"""What an import brings beside messages: facts of a user, and summaries of threads."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from memory.documents import Documents
from memory.errors import FactConflict
from memory.fact import Fact, fold, is_key
from memory.fact_rivals import living_under, superseded
from memory.fact_writes import revise
from memory.import_line import BadLine, check_fields, read_id, read_text, read_time
from memory.proposal import MOST_STATEMENT_CHARACTERS, MOST_VALUE_CHARACTERS
from memory.scope import Scope
from memory.turn import derived_id

MOST_SUMMARY_CHARACTERS = 40_000
_FACT_FIELDS = frozenset({"user_id", "key", "value", "timestamp"})
_SUMMARY_FIELDS = frozenset({"user_id", "thread_id", "content"})


@dataclass(frozen=True, slots=True)
class ImportFact:
    """A fact as an importer brings it; without a key, `value` is the whole statement. `at` is when it was so (UTC)."""

    user_id: str
    key: str | None
    value: str
    at: datetime | None

    @property
    def id(self) -> str:
        """The same at every import."""
        digest = blake2b(f"{self.key or ''}\n{fold(self.value)}".encode(), digest_size=16).hexdigest()
        # A turn's id is never empty: no turn derives such an id.
        return derived_id(self.user_id, "", f"import:{digest}")


@dataclass(frozen=True, slots=True)
class ImportSummary:
    """A thread's summary as an importer brings it."""

    scope: Scope
    content: str


def read_extra(said: Mapping[str, Any], kind: str) -> ImportFact | ImportSummary:
    """The fact or the summary that these fields make.

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
        )
    check_fields(said, known=_SUMMARY_FIELDS, needed=("user_id", "thread_id", "content"))
    scope = Scope(read_id(said, "user_id"), read_id(said, "thread_id"))
    return ImportSummary(scope, read_text(said, "content", most=MOST_SUMMARY_CHARACTERS))


async def take_fact(documents: Documents, given: ImportFact, *, now: datetime) -> bool:
    """Store the fact; False where it is known already, or something else is known under its key.

    An import replaces what an earlier one brought, if it is newer, and nothing else: neither what a person wrote nor
    what a turn taught. What was forgotten stays forgotten.

    Raises:
        StoreUnavailable: the documents cannot be reached; the same again completes it.
    """
    facts = documents.facts
    begins = min(given.at or now, now)
    older: list[Fact] = []
    if given.key is not None:
        living = await living_under(facts, given.key, "user", Scope(given.user_id), at=now)
        older = [fact for fact in living if fact.id != given.id]
        if not all(_gives_way(fact, given, begins) for fact in older):
            return False
    is_new = await facts.insert(_fact(given, begins=begins, now=now, replaces=older[0].id if older else None))
    stored = None if is_new else await facts.fact(user_id=given.user_id, fact_id=given.id)
    if is_new or (stored is not None and stored.is_living(now)):
        # Also where a kill came between the two writes.
        await _end(documents, older, now)
    return is_new


def _gives_way(fact: Fact, given: ImportFact, begins: datetime) -> bool:
    is_other = fold(fact.value) != fold(given.value)
    return fact.source == "import" and not fact.is_guarded and is_other and fact.valid_from <= begins


async def _end(documents: Documents, older: list[Fact], now: datetime) -> None:
    end = superseded(by="person", at=now)
    for fact in older:
        try:
            await revise(documents.facts, user_id=fact.user_id, fact_id=fact.id, change=end)
        except FactConflict:
            continue  # It is being written all the time: whoever writes it knows the new one.


def _fact(given: ImportFact, *, begins: datetime, now: datetime, replaces: str | None) -> Fact:
    return Fact(
        id=given.id,
        user_id=given.user_id,
        key=given.key,
        value=given.value[:MOST_VALUE_CHARACTERS],
        statement=given.value if given.key is None else f"{given.key}: {given.value}",
        created_at=now,
        updated_at=now,
        confirmed_at=begins,
        valid_from=begins,
        source="import",
        replaces=replaces,
    )
