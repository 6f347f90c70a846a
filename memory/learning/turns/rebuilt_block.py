"""Rebuilds the memory block of an earlier turn from the turn's record and from what is stored now.

A turn keeps the order of its block and, beside its hits, no text: what was forgotten or deleted since is missing, and
is named as such.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast, get_args

from recollect.memory.facts.fact_history import in_force_at
from recollect.memory.learning.turns.stored_texts import StoredTexts, TextState
from recollect.memory.recall.memory_block import (
    BlockEntry,
    EntryKind,
    MemoryBlock,
    by_passages,
    cut_quote,
    fact_line,
    hit_line,
    note_line,
)
from recollect.memory.threads.recorded_hits import MOST_CHARACTERS
from recollect.memory.values.frozen import frozen
from recollect.memory.values.text import CUT
from recollect.memory.values.turn import Turn

MOST_ENTRIES = 5_000
"""How many entries of a record are read at most; an import may hold any number."""
_FIELDS = {"name": None, "role": None, "created_at": ""}
"""The fields of a hit that an import may lack."""
Json = dict[str, Any]


@frozen
class RecordedEntry:
    """One entry of a recorded block: see `BlockEntry`."""

    kind: EntryKind
    id: str | None
    tokens: int


@frozen
class RebuiltEntry:
    """One line of a rebuilt block, with what became of its text since."""

    entry: BlockEntry
    state: TextState

    def as_json(self) -> Json:
        """Return the line as the HTTP contract shows it."""
        shown = self.entry
        return {"kind": shown.kind, "id": shown.id, "line": shown.line, "tokens": shown.tokens, "state": self.state}


def recorded_entries(turn: Turn) -> list[RecordedEntry] | None:
    """Return the entries of the block that the turn recorded; None where it recorded none."""
    record: Mapping[str, Any] = turn.record.get("block") or {}
    rows: list[tuple[str, str | None, int]]
    try:
        rows = list(zip(record["kinds"], record["ids"], record["costs"], strict=True))[:MOST_ENTRIES]
    except (KeyError, TypeError, ValueError):
        return None
    return [RecordedEntry(cast("EntryKind", kind), text_id, tokens) for kind, text_id, tokens in rows if _is_kind(kind)]


def rebuilt_block(turn: Turn, texts: StoredTexts, *, recall_tokens: int) -> Json | None:
    """Return the block {"text", "tokens", "entries"} that the turn gave its model; None where it recorded none.

    `tokens` are those that were recorded. `recall_tokens` is the budget by which long hits were cut to passages.
    """
    recorded = recorded_entries(turn)
    if recorded is None or turn.result is None or turn.reply is None:
        return None
    lines = _Lines(turn.message.content, turn.reply.created_at, turn.result["memory"], texts, recall_tokens)
    rebuilt = [lines.rebuilt(entry) for entry in recorded]
    block = MemoryBlock([one.entry for one in rebuilt], turn.reply.created_at.date())
    return {
        "text": block.text,
        "tokens": turn.record["block"].get("tokens"),
        "entries": [one.as_json() for one in rebuilt],
    }


@frozen
class _Lines:
    """Makes the lines anew. `recalled` is the `memory` of the turn's result, `at` the time of its reply."""

    message: str
    at: datetime
    recalled: Mapping[str, Any]
    texts: StoredTexts
    recall_tokens: int

    def rebuilt(self, entry: RecordedEntry) -> RebuiltEntry:
        """Return the entry's line, or one that says what became of it."""
        if entry.kind in {"fact", "note"}:
            line, state = self._of_fact(entry)
        elif entry.kind == "summary":
            summary: str | None = self.recalled.get("summary")
            line, state = (cut_quote(summary, entry.tokens), "shown") if summary else (None, "deleted")
        else:
            line, state = self._of_hit(entry)
        return RebuiltEntry(BlockEntry(entry.kind, entry.id, line or f"- ({state} since)"), state)

    def _of_fact(self, entry: RecordedEntry) -> tuple[str | None, TextState]:
        found = self.texts.text("fact", entry.id or "")
        if found.state != "shown":
            return None, found.state
        fact = in_force_at(self.texts.facts[entry.id or ""], self.at)
        if entry.kind == "note" or fact.key is None:
            return note_line(fact.statement), "shown"
        return fact_line(fact.key, self.recalled.get("facts", {}).get(fact.key, fact.value)), "shown"

    def _of_hit(self, entry: RecordedEntry) -> tuple[str | None, TextState]:
        hits: list[Json] = self.recalled.get("hits", [])
        hit = next((one for one in hits if one["id"] == entry.id), None)
        if hit is None:
            return None, "deleted"
        found = self.texts.text(hit["kind"], hit["id"])
        if not hit["content"]:
            return None, "deleted" if found.state == "shown" else found.state
        content = hit["content"]
        if len(content) == MOST_CHARACTERS:
            # The record is cut there: the whole text is the store's, if that still has it.
            content = found.text if found.text and found.text.startswith(content) else content + CUT
        whole = {**_FIELDS, **hit, "content": content}
        (given,) = by_passages([whole], self.message, recall_tokens=self.recall_tokens)
        return hit_line(given, entry.tokens), "shown"


def _is_kind(kind: object) -> bool:
    return kind in get_args(EntryKind)
