"""The export: all that there is of a user, line by line, in an order that every store keeps.

Documents come first, then the threads with their summaries, then the turns thread by thread, then the facts: so that
whoever reads the lines one after the other finds what a line names.
"""

from collections.abc import AsyncIterator, Sequence
from itertools import chain

from memory.document_export import document_lines
from memory.documents import Documents
from memory.export_lines import Line, fact_line, of_types, thread_lines, turn_lines
from memory.library import Attached
from memory.scope import Scope

TYPES = ("message", "fact", "turn", "thread", "summary", "document")


async def export_lines(
    documents: Documents, scope: Scope, *, types: frozenset[str] | None = None
) -> AsyncIterator[Sequence[Line]]:
    """All that there is of the user, in batches; of a thread alone, what is the thread's. `types`: these lines alone.

    Raises:
        StoreUnavailable: the documents cannot be reached.
    """
    wanted = frozenset(TYPES) if types is None else types
    if "document" in wanted and scope.thread_id is None:
        async for lines in document_lines(documents.library, scope.user_id):
            yield lines
    if wanted & {"thread", "summary"}:
        async for lines in _threads(documents, scope):
            yield of_types(lines, types)
    if wanted & {"message", "turn"}:
        async for turns in documents.conversations.every(scope):
            yield of_types(chain.from_iterable(map(turn_lines, turns)), types)
    if "fact" in wanted:
        async for facts in documents.facts.every(scope.user_id):
            yield [fact_line(fact) for fact in facts if scope.thread_id in (None, fact.home)]


async def _threads(documents: Documents, scope: Scope) -> AsyncIterator[Sequence[Line]]:
    """The threads that have a record, then those that have nothing but attached documents."""
    if scope.thread_id is not None:
        record = await documents.threads.record(scope)
        attached = await documents.library.attached(scope)
        if record is not None or attached:
            yield list(thread_lines(record, (scope.user_id, scope.thread_id), attached))
        return
    waiting: dict[str, Sequence[Attached]] = dict(await documents.library.attachments(scope.user_id))
    async for records in documents.threads.every(scope.user_id):
        lines = [
            thread_lines(record, (record.user_id, record.thread_id), waiting.pop(record.thread_id, ()))
            for record in records
        ]
        yield list(chain.from_iterable(lines))
    others = [thread_lines(None, (scope.user_id, thread_id), waiting[thread_id]) for thread_id in sorted(waiting)]
    yield list(chain.from_iterable(others))
