"""Writes an item's metadata to its MongoDB document: as JSON text, with the terms that filters find it by."""

from recollect.memory.stores.json_text import to_json
from recollect.memory.stores.mongo.connection import Record
from recollect.memory.stores.stored_terms import terms_of
from recollect.memory.values.document import Document
from recollect.memory.values.fact import Fact
from recollect.memory.values.filtering.keys import FilterKeys
from recollect.memory.values.turn import Message


def metadata_fields(stored: Message | Fact | Document, keys: FilterKeys) -> Record:
    """Return the fields; each write of metadata writes all of them."""
    terms, made_by = terms_of(stored, keys)
    return {"metadata": to_json(stored.metadata), "terms": terms, "terms_by": made_by}
