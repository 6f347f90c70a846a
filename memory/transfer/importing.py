"""Imports lines in bulk: stores what they hold, reports each bad line, and stores nothing twice."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from recollect.memory.background.batches import batches
from recollect.memory.erasure.fences import Writing
from recollect.memory.memory import Memory
from recollect.memory.transfer.import_batch import MOST_TURNS, FailedLine, Stored, TurnImport
from recollect.memory.transfer.import_facts import MOST_TAKEN, ImportFact, ImportSummary, read_extra, take_facts
from recollect.memory.transfer.import_fences import ImportFences
from recollect.memory.transfer.import_line import BadLine, ImportMessage, parse_object, read_message, thread_of_line
from recollect.memory.transfer.import_order import ImportOrder, Kept
from recollect.memory.transfer.import_pairs import Numbered, Pair, Pairing
from recollect.memory.transfer.line_source import SourceLine, Unreadable, to_line
from recollect.memory.transfer.line_types import is_exported, split_type
from recollect.memory.transfer.restoring import Restoring
from recollect.memory.values.errors import ImportUnfinished, InvalidRequest, NotFound
from recollect.memory.values.frozen import frozen

MOST_FAILED = 1_000
"""Most failed lines that are named; further ones are only counted."""
READY = 4 * MOST_TURNS
"""Number of turns that are collected before they are stored, so that lines of many users still make large batches."""
AT_ONCE, MOST_BYTES_AT_ONCE = 200, 1_000_000
"""Most lines, and most bytes of them, that a thread reads in one go."""
LAST_SECONDS = 20.0
"""Longest time in which an import whose time is up stores the lines that came."""

Progress = Callable[[int], None]
"""Called with the number of lines that were stored, known or refused so far."""


class SenderGone(Exception):
    """Whoever sends the lines has gone: nobody wants the rest of the work."""


@frozen
class ImportResult:
    """Counts the lines of an import: new ones, those known already, and those that failed (see `MOST_FAILED`).

    `out_of_order` counts messages that came behind a later one of their thread; they are stored in the order of their
    times all the same.
    """

    imported: int = 0
    known: int = 0
    failed: tuple[FailedLine, ...] = ()
    more_failed: int = 0
    out_of_order: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the result for the HTTP contract; `more_failed` and `out_of_order` only where they are above 0."""
        shown: dict[str, Any] = {
            "imported": self.imported,
            "known": self.known,
            "failed": [line._asdict() for line in self.failed],
        }
        others = {"more_failed": self.more_failed, "out_of_order": self.out_of_order}
        return shown | {name: number for name, number in others.items() if number}


async def import_lines(  # noqa: PLR0913 - what the doors say of an import
    memory: Memory,
    lines: AsyncIterable[SourceLine],
    *,
    learn: bool = False,
    progress: Progress | None = None,
    only_user: str | None = None,
    may_write: Callable[[str], bool] | None = None,
    agent_id: str | None = None,
    seconds: float | None = None,
) -> ImportResult:
    """Store the messages, facts and summaries of `lines`. With `learn`, facts are learned from them in the background.

    Messages are stored once all lines have come, in the order of their times (see `ImportOrder`). A turn is a user's
    message with the assistant's that comes next in its thread; a message without a counterpart is a turn whose other
    place is absent. A message is known by its `message_id`, or without one by all its fields. Lines of an export are
    stored as they come, under their ids; see `restoring`. With `only_user`, lines of other users fail, and lines that
    name nobody are this user's; with `may_write`, lines of users that it refuses fail. Call it with a place in
    `recollect.memory.background.bulk`, where others import too.

    Raises:
        StoreUnavailable: the store cannot be reached. What was stored stays; a repeat of the lines completes it.
        ImportUnfinished: it takes longer than `seconds`. The lines that came are stored, if `LAST_SECONDS` suffice.
        SenderGone: `lines` raised it; the lines that are not stored yet are dropped.
        Exception: anything else that `lines` raises; the lines before it are stored.
    """
    turns = TurnImport(
        memory.parts.store, memory.parts.index, memory.parts.embedder, memory.parts.clock, memory.bulk, learn
    )
    fences = ImportFences(memory.parts.fences)
    running = _Import(memory, turns, fences, Restoring(memory, turns, fences), only_user, may_write, agent_id, progress)
    whole = asyncio.timeout(seconds)
    try:
        try:
            async with whole:
                await running.read(lines)
                return await running.end()
        except TimeoutError:
            if not whole.expired():
                raise
        await running.end_soon()
        raise ImportUnfinished
    finally:
        running.close()


@dataclass
class Tally:
    """Counts the lines that were stored, known or failed."""

    imported: int = 0
    known: int = 0
    failed: list[FailedLine] = field(default_factory=list[FailedLine])
    more_failed: int = 0

    def fail(self, lines: Iterable[FailedLine]) -> None:
        """Count failed lines, and keep the first `MOST_FAILED`."""
        for line in lines:
            if len(self.failed) < MOST_FAILED:
                self.failed.append(line)
            else:
                self.more_failed += 1

    def result(self, *, out_of_order: int) -> ImportResult:
        """Return the counts, with failed lines sorted by their numbers."""
        failed = tuple(sorted(self.failed))
        return ImportResult(self.imported, self.known, failed, self.more_failed, out_of_order)


_LABELLED = frozenset({"message", "fact", "document"})
"""The types of lines that carry the label of an agent."""
_SHARED = frozenset({"thread", "summary", "client_record"})
"""The types of lines that no agent's label is on."""


@dataclass
class _Import:
    """Runs one import. `_waiting` are unread lines, `_order` the messages on disk, `_ready` the pairs to store."""

    memory: Memory
    turns: TurnImport
    fences: ImportFences
    restoring: Restoring
    only_user: str | None
    may_write: Callable[[str], bool] | None
    agent_id: str | None
    progress: Progress | None
    _tally: Tally = field(init=False, default_factory=Tally)
    _taken: int = field(init=False, default=0)
    _waiting: list[SourceLine] = field(init=False, default_factory=list[SourceLine])
    _order: ImportOrder = field(init=False, default_factory=ImportOrder)
    _is_reading: bool = field(init=False, default=True)
    _pairing: Pairing = field(init=False, default_factory=Pairing)
    _ready: list[Pair] = field(init=False, default_factory=list[Pair])
    _facts: list[tuple[int, ImportFact]] = field(init=False, default_factory=list[tuple[int, ImportFact]])
    _summaries: list[tuple[int, ImportSummary]] = field(init=False, default_factory=list[tuple[int, ImportSummary]])

    async def read(self, lines: AsyncIterable[SourceLine]) -> None:
        """Take all lines; store on the way what does not have to be sorted.

        Raises:
            Exception: see `import_lines`; the lines before it are stored.
        """
        size = 0
        source = aiter(lines)
        while (line := await self._next(source)) is not None:
            self._waiting.append(line)
            size += len(line.said) if isinstance(line.said, bytes) else 0
            if len(self._waiting) == AT_ONCE or size >= MOST_BYTES_AT_ONCE:
                size = 0
                await self._take_waiting()

    async def end(self) -> ImportResult:
        """Store all that is not stored yet, and return the result."""
        self._is_reading = False
        await self._take_waiting()
        self.restoring.end()
        bulk = self.memory.bulk
        turns = self._order.turns()
        while some := await bulk.run(lambda: list(islice(turns, AT_ONCE))):
            await bulk.each(self._take_turn, some)
            if self._is_full:
                await self._store()
        await self._store()
        return self._tally.result(out_of_order=self._order.out_of_order)

    async def end_soon(self) -> None:
        """Store the lines that came, within `LAST_SECONDS`, where the time was up while lines were read."""
        # An `end` that the time cut off cannot begin again: it has taken lines from the order already.
        if self._is_reading:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self.end()

    def close(self) -> None:
        """Drop lines that are not stored, and wake the updater for users with pending steps."""
        self._order.close()
        for user_id in self.turns.owing:
            self.memory.parts.updater.notify(user_id)

    async def _next(self, source: AsyncIterator[SourceLine]) -> SourceLine | None:
        try:
            return await anext(source, None)
        except SenderGone:
            raise
        except Exception:
            # The sender still waits for an answer: what it sent so far is stored before the error is raised.
            await self.end()
            raise

    @property
    def _is_full(self) -> bool:
        return len(self._ready) + len(self._facts) + len(self._summaries) + self.restoring.size >= READY

    async def _take_waiting(self) -> None:
        """Read the waiting lines in a thread, because the work grows with their length; store once enough is ready."""
        lines, self._waiting = self._waiting, []
        await self.memory.bulk.each(self._take, lines)
        self._taken += len(lines)
        if self._is_full:
            await self._store()

    def _take(self, line: SourceLine) -> None:
        """Read one line; a bad one fails, and keeps its thread's next line from answering the one before."""
        try:
            self._read(line)
        except BadLine as error:
            self._tally.fail([FailedLine(line.number, error.error)])
            self._order.interrupt(line.number, error.thread)

    def _take_turn(self, lines: tuple[Kept, ...]) -> None:
        """Read the sorted lines of a turn, or a summary, again: only their text was kept."""
        for number, text in lines:
            kind, fields = split_type(self._of_user(parse_object(text)))
            if kind == "message":
                self._ready += self._pairing.take(Numbered(number, self._message(fields)))
            elif isinstance(extra := read_extra(fields, kind), ImportSummary):
                self._summaries.append((number, extra))
        # The lines of a turn come together: a message without an answer here has none.
        self._ready += self._pairing.rest()

    async def _store(self) -> None:
        """Store all that is ready: turns first, then lines of an export, facts and summaries, which need threads."""
        ready, self._ready = self._ready, []
        by_user: dict[str, list[Pair]] = defaultdict(list)
        for pair in ready:
            by_user[pair.lines[0].message.user_id].append(pair)
        for user_id, pairs in by_user.items():
            for batch in batches(pairs, MOST_TURNS):
                await self._store_turns(user_id, batch)
            self.memory.parts.retention.touch(user_id)
        self._add(await self.restoring.store())
        await self._store_facts()
        await self._store_summaries()
        if self.progress is not None:
            self.progress(max(0, self._taken - len(self._order)))

    def _read(self, line: SourceLine) -> None:
        """Read one line, and hand it to what stores its type.

        Raises:
            BadLine: the line cannot be taken.
        """
        if isinstance(line.said, Unreadable):
            raise BadLine(line.said.error)
        said = self._of_user(parse_object(line.said) if isinstance(line.said, bytes) else line.said)
        kind, fields = split_type(said)
        most = self.memory.config.max_message_characters
        if kind == "message" and "turn_id" not in fields:
            message = self._message(fields)
            text = line.said if isinstance(line.said, bytes) else to_line(line.said)
            asks = message.role == "user"
            self._order.message(line.number, text, place=message.place, asks=asks, at=message.created_at)
        elif is_exported(kind, fields):
            if kind == "message" and fields.get("role") == "user" and len(str(fields.get("content"))) > most:
                raise BadLine(f"content must have 1 to {most:,} characters.")
            self.restoring.take(line.number, fields, kind)
        else:
            extra = read_extra(fields, kind)
            if isinstance(extra, ImportFact):
                self._facts.append((line.number, extra))
                return
            # A summary waits for the messages of its thread, and stands between two of them.
            self._order.interrupt(line.number, thread_of_line(said))
            self._order.later(line.number, line.said if isinstance(line.said, bytes) else to_line(line.said))

    def _message(self, fields: Mapping[str, Any]) -> ImportMessage:
        config = self.memory.config
        return read_message(fields, most=config.max_message_characters, most_replied=config.max_reply_characters)

    def _of_user(self, said: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the fields as those of `only_user`, or raise BadLine where they name a user whom nobody may write."""
        named = said.get("user_id")
        if self.may_write is not None and isinstance(named, str) and not self.may_write(named):
            raise BadLine("user_id is not yours.")
        if self.agent_id is not None:
            kind = said.get("type", "message")
            if kind in _SHARED:
                raise BadLine("The key is bound to an agent, and lines of this type are of all who speak in a thread.")
            said = {**said, "agent_id": self.agent_id} if kind in _LABELLED else said
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
        store = partial(self.turns.write, user_id, pairs)
        self._add(await self.fences.store(user_id, numbers, store))

    async def _store_facts(self) -> None:
        facts, self._facts = self._facts, []
        by_user: dict[str, list[tuple[int, ImportFact]]] = defaultdict(list)
        for number, fact in facts:
            by_user[fact.user_id].append((number, fact))
        for user_id, of_user in by_user.items():
            for some in batches(of_user, MOST_TAKEN):
                store = partial(self._store_some, [fact for _, fact in some])
                self._add(await self.fences.store(user_id, [number for number, _ in some], store))
            self.memory.parts.retention.touch(user_id)
            await self.memory.parts.points.sync_soon(user_id)

    async def _store_some(self, facts: Sequence[ImportFact], writing: Writing) -> Stored:
        are_new = await take_facts(self.memory.parts.store, facts, writing, now=self.memory.now())
        return Stored(imported=sum(are_new), known=len(are_new) - sum(are_new))

    async def _store_summaries(self) -> None:
        """Store the summaries of threads that have none yet."""
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
