"""The bulk import: lines in, what they say stored, each bad line reported, nothing stored twice."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from memory.errors import InvalidRequest, NotFound
from memory.fences import Writing
from memory.import_batch import MOST_TURNS, FailedLine, Stored, TurnImport
from memory.import_facts import ImportFact, ImportSummary, read_extra, take_fact
from memory.import_fences import ImportFences
from memory.import_line import BadLine, Thread, parse_object, read_message, thread_of
from memory.import_pairs import Numbered, Pair, Pairing
from memory.import_source import SourceLine, Unreadable
from memory.import_types import is_exported, split_type
from memory.memory import Memory
from memory.restoring import Restoring

MOST_FAILED = 1_000
"""So many failed lines are named; of the rest only their number is kept."""
READY = 4 * MOST_TURNS
"""So many turns are collected before they are stored, so that lines of many users still make large batches."""
TURN_OF_OTHERS = 100
"""After so many lines whatever else the event loop has to do has its turn."""

Progress = Callable[[int], None]
"""Told the number of the last line whose turn is stored or was refused."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of the lines: new ones, those known already, and those that failed (see `MOST_FAILED`)."""

    imported: int = 0
    known: int = 0
    failed: tuple[FailedLine, ...] = ()
    more_failed: int = 0

    def as_json(self) -> dict[str, Any]:
        """As the HTTP contract shows it; `more_failed` only where more failed than are named."""
        shown: dict[str, Any] = {
            "imported": self.imported,
            "known": self.known,
            "failed": [line._asdict() for line in self.failed],
        }
        return {**shown, "more_failed": self.more_failed} if self.more_failed else shown


async def import_lines(
    memory: Memory,
    lines: AsyncIterable[SourceLine],
    *,
    learn: bool = False,
    progress: Progress | None = None,
    only_user: str | None = None,
) -> ImportResult:
    """Store what the lines say. With `learn`, the turns are learned from afterwards, in the background.

    A turn is a user's message with the assistant's that comes next in its thread; what has no counterpart is a turn
    with one place absent. What is stored already is known by its `message_id`, or without one by all it says. Lines of
    an export are stored as what they were; see `restoring`. `only_user`: lines of other users fail, those that name
    nobody are this user's.

    Raises:
        StoreUnavailable: the documents cannot be reached. What was stored stays; the same lines again complete it.
        Exception: whatever `lines` raises; the messages that wait for an answer then are not stored.
    """
    turns = TurnImport(memory.documents, memory.index, memory.embedder, memory.clock, learn)
    fences = ImportFences(memory.fences)
    running = _Import(memory, turns, fences, Restoring(memory, turns, fences), only_user)
    async for line in lines:
        running.take(line)
        if line.number % TURN_OF_OTHERS == 0:
            await asyncio.sleep(0)
        if running.is_full:
            await running.store()
            if progress is not None:
                progress(line.number)
    return await running.end()


@dataclass
class Tally:
    """Counts what became of lines."""

    imported: int = 0
    known: int = 0
    failed: list[FailedLine] = field(default_factory=list[FailedLine])
    more_failed: int = 0

    def fail(self, lines: Iterable[FailedLine]) -> None:
        """Some lines failed."""
        for line in lines:
            if len(self.failed) < MOST_FAILED:
                self.failed.append(line)
            else:
                self.more_failed += 1

    def result(self) -> ImportResult:
        """What it came to, failed lines by their numbers."""
        return ImportResult(self.imported, self.known, tuple(sorted(self.failed)), self.more_failed)


@dataclass
class _Import:
    memory: Memory
    turns: TurnImport
    fences: ImportFences
    restoring: Restoring
    only_user: str | None
    _tally: Tally = field(init=False, default_factory=Tally)
    _pairing: Pairing = field(init=False, default_factory=Pairing)
    _ready: list[Pair] = field(init=False, default_factory=list[Pair])
    _facts: list[tuple[int, ImportFact]] = field(init=False, default_factory=list[tuple[int, ImportFact]])
    _summaries: list[tuple[int, ImportSummary]] = field(init=False, default_factory=list[tuple[int, ImportSummary]])

    @property
    def is_full(self) -> bool:
        return len(self._ready) + len(self._facts) + len(self._summaries) + self.restoring.size >= READY

    def take(self, line: SourceLine) -> None:
        """Read one line; what is complete with it is ready to be stored."""
        try:
            self._read(line)
        except BadLine as error:
            self._tally.fail([FailedLine(line.number, error.error)])
            self._ready += self._pairing.interrupt(error.thread)

    async def end(self) -> ImportResult:
        """Store what is left; what came of it all."""
        self._ready += self._pairing.rest()
        self.restoring.end()
        await self.store()
        for user_id in self.turns.owing:
            self.memory.updater.notify(user_id)
        return self._tally.result()

    async def store(self) -> None:
        """Store what is ready."""
        ready, self._ready = self._ready, []
        by_user: dict[str, list[Pair]] = defaultdict(list)
        for pair in ready:
            by_user[pair.lines[0].message.user_id].append(pair)
        for user_id, pairs in by_user.items():
            for start in range(0, len(pairs), MOST_TURNS):
                await self._store_turns(user_id, pairs[start : start + MOST_TURNS])
            self.memory.bounds.touch(user_id)
        self._add(await self.restoring.store())
        await self._store_facts()
        await self._store_summaries()

    def _read(self, line: SourceLine) -> None:
        if isinstance(line.said, Unreadable):
            raise BadLine(line.said.error)
        said = self._of_user(parse_object(line.said) if isinstance(line.said, bytes) else line.said)
        kind, fields = split_type(said)
        if kind == "message" and "turn_id" not in fields:
            self._ready += self._pairing.take(Numbered(line.number, read_message(fields)))
            return
        if is_exported(kind, fields):
            self.restoring.take(line.number, fields, kind)
            return
        extra = read_extra(fields, kind)
        if isinstance(extra, ImportFact):
            self._facts.append((line.number, extra))
        else:
            thread: Thread | None = thread_of(said)
            self._ready += self._pairing.interrupt(thread)
            self._summaries.append((line.number, extra))

    def _of_user(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.only_user is None or said.get("user_id") == self.only_user:
            return said
        if said.get("user_id") is not None:
            raise BadLine("user_id is not yours.")
        return {**said, "user_id": self.only_user}

    def _add(self, stored: Stored) -> None:
        self._tally.imported += stored.imported
        self._tally.known += stored.known
        self._tally.fail(stored.failed)

    async def _store_turns(self, user_id: str, pairs: Sequence[Pair]) -> None:
        numbers = [line.number for pair in pairs for line in pair.lines]
        store = partial(self.turns.store, user_id, pairs)
        self._add(await self.fences.store(user_id, numbers, store))

    async def _store_facts(self) -> None:
        facts, self._facts = self._facts, []
        for number, fact in facts:
            self._add(await self.fences.store(fact.user_id, [number], partial(self._store_fact, fact)))
        for user_id in {fact.user_id for _, fact in facts}:
            self.memory.bounds.touch(user_id)
            await self.memory.points.sync_soon(user_id)

    async def _store_fact(self, fact: ImportFact, writing: Writing) -> Stored:
        documents = self.memory.documents
        is_new = await take_fact(documents, fact, now=self.memory.clock())
        if is_new:
            writing.take_back(lambda: documents.facts.remove(user_id=fact.user_id, fact_ids=[fact.id]))
        return Stored(imported=int(is_new), known=int(not is_new))

    async def _store_summaries(self) -> None:
        """Give threads their summaries, those that have none yet."""
        summaries, self._summaries = self._summaries, []
        for number, given in summaries:
            try:
                is_new = (await self.memory.threads.summary(given.scope)).summary is None
                if is_new:
                    await self.memory.threads.set_summary(given.scope, given.content)
            except NotFound:
                self._tally.fail([FailedLine(number, "The summary's thread has no message.")])
            except InvalidRequest as error:
                self._tally.fail(
                    [FailedLine(number, " ".join(f"{one.field} {one.problem}." for one in error.problems))]
                )
            else:
                self._count(is_new=is_new)

    def _count(self, *, is_new: bool) -> None:
        if is_new:
            self._tally.imported += 1
        else:
            self._tally.known += 1
