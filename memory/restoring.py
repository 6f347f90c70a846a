"""Lines of an export, stored: each thing under the id it had. What is there under that id is known and stays.

A conflict is named: a fact whose key has another living fact here, a turn whose id another turn has. Ids derive from
their user's, so lines cannot change hands.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from memory.document_restoring import restore_document
from memory.export_reading import read_exported
from memory.exported import (
    AttachedDocument,
    ExportedMessage,
    ExportedSummary,
    ExportedThread,
    ExportedTurn,
)
from memory.exported_groups import Groups, NumberedDocument, NumberedThread
from memory.fact import Fact
from memory.fact_rivals import home_scope, is_rival
from memory.fences import Writing
from memory.import_batch import MOST_TURNS, FailedLine, Stored, TurnImport
from memory.import_fences import ImportFences
from memory.memory import Memory
from memory.recall import MOST_FACTS
from memory.restoring_turns import NumberedTurn, RestoredTurns
from memory.scope import GLOBAL_USER, Scope
from memory.thread_record import ThreadRecord

RIVAL = "Another fact lives under this key here; change or forget that one, then import again."
NO_DOCUMENT = "A document that the thread has attached is not here."
MOST_KNOWN_FACTS = 500


@dataclass
class Restoring:
    """Collects the lines of an export and stores them, in the order in which they need each other."""

    memory: Memory
    turns: TurnImport
    fences: ImportFences
    _groups: Groups = field(init=False, default_factory=Groups)
    _facts: list[tuple[int, Fact]] = field(init=False, default_factory=list[tuple[int, Fact]])
    _own: set[tuple[str, str]] = field(init=False, default_factory=set[tuple[str, str]])

    @property
    def size(self) -> int:
        """How many things are ready to be stored."""
        groups = self._groups
        return len(groups.turns) + len(groups.threads) + len(groups.documents) + len(self._facts)

    def take(self, number: int, said: Mapping[str, Any], kind: str) -> None:
        """Read a line of this `type`.

        Raises:
            BadLine: it cannot be taken.
        """
        line = read_exported(said, kind)
        groups = self._groups
        if isinstance(line, ExportedSummary):
            return groups.summary(number, line)
        groups.end_threads()
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
        """No line comes any more."""
        self._groups.end()

    async def store(self) -> Stored:
        """Store what is ready; what became of its lines.

        Raises:
            StoreUnavailable: the documents cannot be reached; the same lines again complete it.
        """
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
        failed, groups.failed = groups.failed, []
        outcome.failed += failed
        return outcome

    async def _store_turns(self, turns: Sequence[NumberedTurn], outcome: Stored) -> None:
        restored = RestoredTurns(self.turns)
        by_user: dict[str, list[NumberedTurn]] = defaultdict(list)
        for turn in turns:
            by_user[turn.turn.message.user_id].append(turn)
        for user_id, of_user in by_user.items():
            for start in range(0, len(of_user), MOST_TURNS):
                some = of_user[start : start + MOST_TURNS]
                numbers = [number for turn in some for number in turn.numbers]
                _add(outcome, await self.fences.store(user_id, numbers, partial(restored.store, user_id, some)))
            self.memory.bounds.touch(user_id)

    async def _store_document(self, given: NumberedDocument, writing: Writing) -> Stored:
        return _came_of(given.numbers, await restore_document(self.memory, given.parts, writing))

    async def _store_thread(self, given: NumberedThread, writing: Writing) -> Stored:
        thread, summary, scope = given.thread, given.summary, given.scope
        library = self.memory.documents.library
        is_new = False
        if thread is not None and thread.record is not None:
            is_new = await self._put_thread(thread.record, summary)
            if is_new:
                writing.take_back(lambda: self.memory.documents.threads.delete(scope))
        elif summary is not None:
            is_new = await self._put_summary(scope, summary)
        missing = False
        for document in thread.documents if thread is not None else ():
            attached = await self._attach(scope, document)
            missing, is_new = missing or attached is None, is_new or bool(attached)
            if attached:
                writing.take_back(partial(library.detach, scope, document_id=document.id))
        if is_new:
            self.memory.points.notify(scope.user_id)
        return _came_of(given.numbers, NO_DOCUMENT if missing else is_new)

    async def _put_thread(self, record: ThreadRecord, summary: ExportedSummary | None) -> bool:
        """Store the record with its summary, where there is none.

        A thread that has messages here goes on from them: the summary then stands for none of them yet, so that the
        next one covers them all, and the thread is open.
        """
        if summary is not None:
            record = replace(record, summary=summary.content, summary_by=summary.by)
        if await self.memory.documents.conversations.last_position(record.scope):
            record = replace(record, summarised_to=0, archived_to=0, archived_at=None, closing=False)
        return await self.memory.documents.threads.put(record, revision=0)

    async def _put_summary(self, scope: Scope, summary: ExportedSummary) -> bool:
        """Give the thread the summary, where it has none."""
        threads = self.memory.documents.threads
        record = await threads.record(scope)
        if record is not None and record.summary is not None:
            return False
        blank = record or ThreadRecord(scope.user_id, scope.thread)
        written = blank.revised(summary=summary.content, summary_by=summary.by, summarised_at=self.memory.clock())
        return await threads.put(written, revision=blank.revision)

    async def _attach(self, scope: Scope, given: AttachedDocument) -> bool | None:
        """Whether it is attached now and was not before; None where there is no such document."""
        library = self.memory.documents.library
        owner = GLOBAL_USER if given.shared else scope.user_id
        document = await library.document(user_id=owner, document_id=given.id)
        return None if document is None else await library.attach(scope, document, at=given.attached_at)

    async def _store_facts(self, facts: Sequence[tuple[int, Fact]], outcome: Stored) -> None:
        by_user: dict[str, list[tuple[int, Fact]]] = defaultdict(list)
        for number, fact in facts:
            by_user[fact.user_id].append((number, fact))
        for user_id, of_user in by_user.items():
            for start in range(0, len(of_user), MOST_KNOWN_FACTS):
                some = of_user[start : start + MOST_KNOWN_FACTS]
                store = partial(self._store_some, user_id, some)
                _add(outcome, await self.fences.store(user_id, [number for number, _ in some], store))
            self.memory.bounds.touch(user_id)
            await self.memory.points.sync_soon(user_id)

    async def _store_some(self, user_id: str, given: Sequence[tuple[int, Fact]], writing: Writing) -> Stored:
        outcome, store, now = Stored(), self.memory.documents.facts, self.memory.clock()
        ids = [fact.id for _, fact in given]
        there = {fact.id for fact in await store.facts(user_id=user_id, fact_ids=ids)}
        # What these lines hold themselves was side by side where they come from.
        self._own |= {(user_id, fact_id) for fact_id in ids}
        new = [fact_id for fact_id in ids if fact_id not in there]
        writing.take_back(lambda: store.remove(user_id=user_id, fact_ids=new))
        living: dict[Scope, list[Fact]] = {}
        for number, fact in given:
            is_new = False
            if fact.id not in there:
                home = home_scope(fact)
                if fact.key is not None and fact.is_living(now) and home not in living:
                    living[home] = await store.living(home, at=now, limit=MOST_FACTS)
                if fact.is_living(now) and any(self._is_foreign_rival(one, fact) for one in living.get(home, ())):
                    outcome.failed.append(FailedLine(number, RIVAL))
                    continue
                is_new = await store.insert(fact)
            _add(outcome, _came_of((number,), is_new))
        return outcome

    def _is_foreign_rival(self, other: Fact, fact: Fact) -> bool:
        is_living = other.is_living(self.memory.clock()) and (other.user_id, other.id) not in self._own
        return is_living and is_rival(other, fact)


def _came_of(numbers: Sequence[int], what: bool | str) -> Stored:
    """Lines that are new (True), known (False), or failed for a reason."""
    if isinstance(what, str):
        return Stored(failed=[FailedLine(number, what) for number in numbers])
    return Stored(imported=len(numbers)) if what else Stored(known=len(numbers))


def _add(outcome: Stored, stored: Stored) -> None:
    outcome.imported += stored.imported
    outcome.known += stored.known
    outcome.failed += stored.failed
