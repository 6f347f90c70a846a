"""Exports everything of a user, line by line, in an order that every store keeps.

Documents come first, then the threads with their summaries, then the turns thread by thread, then the facts, then what
OpenAI's clients left open: whatever a line names stands before it.
"""

from collections.abc import AsyncIterator, Sequence
from itertools import chain

from recollect.memory.memory import Memory
from recollect.memory.ports.store import Store
from recollect.memory.transfer.document_export import document_lines
from recollect.memory.transfer.export_lines import Line, exported_fact, of_types, record_line, thread_lines, turn_lines
from recollect.memory.values.document import Attached
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.items import fact_item, message_item, summary_item
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Turn

TYPES = ("message", "fact", "turn", "thread", "summary", "document", "client_record")


def export_of(
    memory: Memory, scope: Scope, *, types: frozenset[str] | None = None, asked: Filter | None = None
) -> AsyncIterator[Sequence[Line]]:
    """Yield the lines of `export_lines` from an open memory."""
    return export_lines(memory.parts.store, scope, types=types, asked=asked)


async def export_lines(
    store: Store, scope: Scope, *, types: frozenset[str] | None = None, asked: Filter | None = None
) -> AsyncIterator[Sequence[Line]]:
    """Yield all lines of the user (or of the thread alone), in batches. `types` limits them to lines of these types.

    `asked` limits them to what fulfils the filter: a turn is exported whole where one of its messages does, and a
    thread with its summary where the summary does.

    Raises:
        StoreUnavailable: the store cannot be reached.
    """
    wanted = frozenset(TYPES) if types is None else types
    parts: Sequence[tuple[set[str], AsyncIterator[Sequence[Line]]]] = (
        ({"document"}, _documents(store, scope, asked)),
        ({"thread", "summary"}, _threads(store, scope) if asked is None else _asked_threads(store, scope, asked)),
        ({"message", "turn"}, _turns(store, scope, asked)),
        ({"fact"}, _facts(store, scope, asked)),
        ({"client_record"}, _records(store, scope, asked)),
    )
    for kinds, part in parts:
        if wanted & kinds:
            async for lines in part:
                yield of_types(lines, types)


async def _documents(store: Store, scope: Scope, asked: Filter | None) -> AsyncIterator[Sequence[Line]]:
    """Yield the user's documents, which belong to no thread."""
    if scope.thread_id is None:
        async for lines in document_lines(store.documents, scope.user_id, asked=asked):
            yield lines


async def _facts(store: Store, scope: Scope, asked: Filter | None) -> AsyncIterator[Sequence[Line]]:
    async for facts in store.facts.every(scope.user_id):
        own = [fact for fact in facts if scope.thread_id in (None, fact.home)]
        yield [exported_fact(fact) for fact in own if asked is None or asked.fulfilled(fact_item(fact))]


async def _turns(store: Store, scope: Scope, asked: Filter | None) -> AsyncIterator[Sequence[Line]]:
    async for turns in store.conversations.every(scope):
        kept = [turn for turn in turns if asked is None or _is_asked_for(turn, asked)]
        yield list(chain.from_iterable(map(turn_lines, kept)))


async def _records(store: Store, scope: Scope, asked: Filter | None) -> AsyncIterator[Sequence[Line]]:
    """Yield the client records, of which none fulfils a filter."""
    if asked is None:
        async for records in store.client_records.every(scope):
            yield [record_line(record) for record in records]


def _is_asked_for(turn: Turn, asked: Filter) -> bool:
    return any(asked.fulfilled(message_item(one)) for message in turn.messages for one in message.spoken)


async def _threads(store: Store, scope: Scope) -> AsyncIterator[Sequence[Line]]:
    """Yield the threads that have a record, then those that only have attached documents."""
    if scope.thread_id is not None:
        record = await store.threads.record(scope)
        attached = await store.documents.attached(scope)
        if record is not None or attached:
            yield list(thread_lines(record, (scope.user_id, scope.thread_id), attached))
        return
    waiting: dict[str, Sequence[Attached]] = dict(await store.documents.attachments(scope.user_id))
    async for records in store.threads.every(scope.user_id):
        lines = [
            thread_lines(record, (record.user_id, record.thread_id), waiting.pop(record.thread_id, ()))
            for record in records
        ]
        yield list(chain.from_iterable(lines))
    others = [thread_lines(None, (scope.user_id, thread_id), waiting[thread_id]) for thread_id in sorted(waiting)]
    yield list(chain.from_iterable(others))


async def _asked_threads(store: Store, scope: Scope, asked: Filter) -> AsyncIterator[Sequence[Line]]:
    """Yield the threads whose summary fulfils the filter, without attachments: what they attach may not fulfil it."""
    async for records in store.threads.every(scope.user_id):
        kept = [
            record
            for record in records
            if scope.thread_id in (None, record.thread_id)
            and record.summary is not None
            and asked.fulfilled(summary_item(record))
        ]
        lines = [thread_lines(record, (record.user_id, record.thread_id), ()) for record in kept]
        yield list(chain.from_iterable(lines))
