"""Shows what is remembered as items that a filter looks at."""

from recollect.memory.values.document import Document
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.filter import Item
from recollect.memory.values.thread_record import ThreadRecord
from recollect.memory.values.times import from_ms
from recollect.memory.values.turn import Message


def message_item(message: Message) -> Item:
    """Return a message as an item of kind `episode`."""
    return Item(
        "episode",
        message.created_at,
        role=message.role,
        name=message.name,
        agent_id=message.agent_id,
        thread_id=message.thread_id,
        metadata=message.metadata,
    )


def fact_item(fact: Fact) -> Item:
    """Return a fact as an item."""
    return Item(
        "fact",
        fact.created_at,
        source=fact.source,
        agent_id=fact.agent_id,
        thread_id=fact.thread_id,
        metadata=fact.metadata,
    )


def summary_item(record: ThreadRecord) -> Item:
    """Return a thread's summary as an item; its time is that at which it was written."""
    return Item("summary", record.summarised_at or record.archived_at or from_ms(0), thread_id=record.thread_id)


def document_item(document: Document) -> Item:
    """Return a document as an item, which stands for its passages too."""
    return Item(
        "document",
        document.created_at,
        source=document.source,
        agent_id=document.agent_id,
        metadata=document.metadata,
    )
