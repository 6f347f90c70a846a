"""Stores the lines of an export under the ids that they had. Whatever is stored under such an id is known and stays.

A conflict fails with a reason: a fact whose key has another living fact here, a turn whose id another turn has. Ids
derive from the user's id, so that nobody can import another user's lines as their own.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from recollect.memory.background.batches import batches
from recollect.memory.erasure.fences import Writing
from recollect.memory.facts.fact_rivals import home_scope, is_rival
from recollect.memory.memory import Memory
from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.transfer.document_restoring import restore_document
from recollect.memory.transfer.export_reading import read_exported
from recollect.memory.transfer.exported import (
    AttachedDocument,
    ExportedMessage,
    ExportedSummary,
    ExportedThread,
    ExportedTurn,
)
from recollect.memory.transfer.exported_groups import Groups, NumberedDocument, NumberedThread
from recollect.memory.transfer.import_batch import MOST_TURNS, FailedLine, Stored, TurnImport
from recollect.memory.transfer.import_fences import ImportFences
from recollect.memory.transfer.restoring_turns import NumberedTurn, RestoredTurns
from recollect.memory.values.fact import Fact
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.thread_record import ThreadRecord

RIVAL = "Another fact lives under this key here; change or forget that one, then import again."
NO_DOCUMENT = "A document that the thread has attached is not here."
MOST_KNOWN_FACTS = 500
_INSERTED_AT_ONCE = 100


@dataclass
class Restoring:
    """Collects the lines of an export and stores them, in the order in which they need each other."""

    memory: Memory
    turns: TurnImport
    fences: ImportFences
    _groups: Groups = field(init=False, default_factory=Groups)
    _facts: list[tuple[int, Fact]] = field(init=False, default_factory=list[tuple[int, Fact]])
    _records: list[tuple[int, ClientRecord]] = field(init=False, default_factory=list[tuple[int, ClientRecord]])
    _own: set[tuple[str, str]] = field(init=False, default_factory=set[tuple[str, str]])

    @property
    def size(self) -> int:
        """Return how many turns, threads, documents, facts and client records are ready to be stored."""
        groups = self._groups
        return len(groups.turns) + len(groups.threads) + len(groups.documents) + len(self._facts) + len(self._records)

    def take(self, number: int, said: Mapping[str, Any], kind: str) -> None:
        """Read the line `said` of type `kind`.

        Raises:
            BadLine: it cannot be taken.
        """
        line, dropped = read_exported(said, kind)
        groups = self._groups
        groups.failed += [FailedLine(number, sentence) for sentence in dropped]
        if isinstance(line, ExportedSummary):
            return groups.summary(number, line)
        groups.end_threads()
        if isinstance(line, ClientRecord):
            return self._records.append((number, line))
        if isinstance(line, Fact):
            return self._facts.append((number, line))
        if isinstance(line, ExportedMessage):
            return groups.message(number, line)
        if isinstance(line, ExportedTurn):
            return groups.turn(number, line)
        if isinstance(line, ExportedThread):
            return groups.thread(number, line)
        return groups.document(number, line)

    def end(self) -> None:
        """Complete the last group, or fail its lines: no line follows."""
        self._groups.end()

    async def store(self) -> Stored:
        """Store all that is ready, and return what became of its lines.

        Raises:
            StoreUnavailable: the store cannot be reached; a repeat of the lines completes it.
        """
        # Threads name documents; a record comes before its turns, because it covers none in a thread with messages.
        outcome, groups = Stored(), self._groups
        documents, groups.documents = groups.documents, []
        for document in documents:
            store = partial(self._store_document, document)
            _add(outcome, await self.fences.store(document.parts[0].user_id, document.numbers, store))
        threads, groups.threads = groups.threads, []
        for thread in threads:
            store = partial(self._store_thread, thread)
            _add(outcome, await self.fences.store(thread.scope.user_id, thread.numbers, store))
        turns, groups.turns = groups.turns, []
        await self._store_turns(turns, outcome)
        facts, self._facts = self._facts, []
        await self._store_facts(facts, outcome)
        records, self._records = self._records, []
        for number, record in records:
            store = partial(self._store_record, number, record)
            _add(outcome, await self.fences.store(record.user_id, (number,), store))
        failed, groups.failed = groups.failed, []
        outcome.failed += failed
        return outcome

    async def _store_turns(self, turns: Sequence[NumberedTurn], outcome: Stored) -> None:
        restored = RestoredTurns(self.turns)
        by_user: dict[str, list[NumberedTurn]] = defaultdict(list)
        for turn in turns:
            by_user[turn.turn.message.user_id].append(turn)
        for user_id, of_user in by_user.items():
            for some in batches(of_user, MOST_TURNS):
                numbers = [number for turn in some for number in turn.numbers]
                _add(outcome, await self.fences.store(user_id, numbers, partial(restored.write, user_id, some)))
            self.memory.parts.retention.touch(user_id)

    async def _store_document(self, given: NumberedDocument, writing: Writing) -> Stored:
        return _came_of(given.numbers, await restore_document(self.memory, given.parts, writing))

    async def _store_thread(self, given: NumberedThread, writing: Writing) -> Stored:
        thread, summary, scope = given.thread, given.summary, given.scope
        documents = self.memory.parts.store.documents
        is_new = False
        if thread is not None and thread.record is not None:
            is_new = await self._put_thread(thread.record, summary)
            if is_new:
                writing.on_erased(lambda: self.memory.parts.store.threads.delete(scope))
        elif summary is not None:
            is_new = await self._put_summary(scope, summary)
        missing = False
        for document in thread.documents if thread is not None else ():
            attached = await self._attach(scope, document)
            missing, is_new = missing or attached is None, is_new or bool(attached)
            if attached:
                writing.on_erased(partial(documents.detach, scope, document_id=document.id))
        if is_new:
            self.memory.parts.points.notify(scope.user_id)
        return _came_of(given.numbers, NO_DOCUMENT if missing else is_new)

    async def _store_record(self, number: int, record: ClientRecord, writing: Writing) -> Stored:
        """Store the record, unless the user has one with its id."""
        records = self.memory.parts.store.client_records
        is_new = await records.insert(record)
        if is_new:
            writing.on_erased(lambda: records.remove(user_id=record.user_id, record_id=record.id))
        return _came_of((number,), is_new)

    async def _put_thread(self, record: ThreadRecord, summary: ExportedSummary | None) -> bool:
        """Store the record with its summary, and return True, unless the thread has a record.

        A thread that has messages here continues from them: the summary then covers none of them yet, so that the next
        one covers them all, and the thread is not archived.
        """
        if summary is not None:
            record = replace(record, summary=summary.content, summary_by=summary.by)
        if await self.memory.parts.store.conversations.last_position(record.scope):
            record = replace(record, summarised_to=0, archived_to=0, archived_at=None, closing=False)
        return await self.memory.parts.store.threads.put(record, revision=0)

    async def _put_summary(self, scope: Scope, summary: ExportedSummary) -> bool:
        """Store the summary, and return True, unless the thread has one."""
        threads = self.memory.parts.store.threads
        record = await threads.record(scope)
        if record is not None and record.summary is not None:
            return False
        blank = record or ThreadRecord(scope.user_id, scope.thread)
        written = blank.revised(summary=summary.content, summary_by=summary.by, summarised_at=self.memory.now())
        return await threads.put(written, revision=blank.revision)

    async def _attach(self, scope: Scope, given: AttachedDocument) -> bool | None:
        """Attach the document; tell whether it was not attached before, or return None where it does not exist."""
        documents = self.memory.parts.store.documents
        owner = GLOBAL_USER if given.shared else scope.user_id
        document = await documents.document(user_id=owner, document_id=given.id)
        return None if document is None else await documents.attach(scope, document, at=given.attached_at)

    async def _store_facts(self, facts: Sequence[tuple[int, Fact]], outcome: Stored) -> None:
        by_user: dict[str, list[tuple[int, Fact]]] = defaultdict(list)
        for number, fact in facts:
            by_user[fact.user_id].append((number, fact))
        for user_id, of_user in by_user.items():
            for some in batches(of_user, MOST_KNOWN_FACTS):
                store = partial(self._store_some, user_id, some)
                _add(outcome, await self.fences.store(user_id, [number for number, _ in some], store))
            self.memory.parts.retention.touch(user_id)
            await self.memory.parts.points.sync_soon(user_id)

    async def _store_some(self, user_id: str, given: Sequence[tuple[int, Fact]], writing: Writing) -> Stored:
        """Store those of these facts that are new and have no living rival under their key."""
        outcome, store, now = Stored(), self.memory.parts.store.facts, self.memory.now()
        ids = [fact.id for _, fact in given]
        there = {fact.id for fact in await store.facts(user_id=user_id, fact_ids=ids)}
        # Facts of one export are no rivals of each other: they lived side by side where they come from.
        self._own |= {(user_id, fact_id) for fact_id in ids}
        living: dict[Scope, list[Fact]] = {}
        new: dict[str, Fact] = {}
        for number, fact in given:
            home = home_scope(fact)
            if fact.id not in there and fact.is_living(now):
                if fact.key is not None and home not in living:
                    living[home] = await store.living(home, at=now, limit=MOST_FACTS)
                if any(self._is_foreign_rival(one, fact) for one in living.get(home, ())):
                    outcome.failed.append(FailedLine(number, RIVAL))
                    continue
            if fact.id not in there:
                new.setdefault(fact.id, fact)
        writing.on_erased(lambda: store.remove(user_id=user_id, fact_ids=list(new)))
        for some in batches(list(new.values()), _INSERTED_AT_ONCE):
            outcome.imported += len(await store.insert_all(some))
        outcome.known = len(given) - len(outcome.failed) - outcome.imported
        return outcome

    def _is_foreign_rival(self, other: Fact, fact: Fact) -> bool:
        """Tell whether `other` lives, is no fact of this import, and contradicts `fact`."""
        is_living = other.is_living(self.memory.now()) and (other.user_id, other.id) not in self._own
        return is_living and is_rival(other, fact)


def _came_of(numbers: Sequence[int], what: bool | str) -> Stored:
    """Count these lines as new (`what` True), known (False), or failed for a reason (a sentence)."""
    if isinstance(what, str):
        return Stored(failed=[FailedLine(number, what) for number in numbers])
    return Stored(imported=len(numbers)) if what else Stored(known=len(numbers))


def _add(outcome: Stored, stored: Stored) -> None:
    """Add the counts and failures of `stored` to `outcome`."""
    outcome.imported += stored.imported
    outcome.known += stored.known
    outcome.failed += stored.failed
