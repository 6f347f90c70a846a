"""Explaining: shows why a turn answered as it did and what it taught, from its record and what is stored now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from recollect.memory.background.long_texts import off_loop
from recollect.memory.learning.proof.quote_place import quote_place
from recollect.memory.learning.turns.rebuilt_block import rebuilt_block, recorded_entries
from recollect.memory.learning.turns.stored_texts import StoredTexts, TextIds
from recollect.memory.ports.store import Store
from recollect.memory.threads.window import last_turns
from recollect.memory.values.errors import NotFound
from recollect.memory.values.frozen import frozen
from recollect.memory.values.left_out import LeftOut, read_record
from recollect.memory.values.text import cut
from recollect.memory.values.times import iso
from recollect.memory.values.turn import Exchange, Turn
from recollect.memory.values.update import Update

MOST_SHOWN_CHARACTERS = 2_000
"""How many characters of a message of the window, or of a left-out text, are shown."""
MOST_WINDOW = 50
Json = dict[str, Any]


@frozen
class Explaining:
    """Explains turns. `recall_tokens` is RECALL_TOKENS, by which long hits were cut."""

    store: Store
    recall_tokens: int

    async def explain(self, user_id: str, turn_id: str, *, agent_id: str | None = None) -> Json:
        """Return what a turn was given, what was left out, and what it taught; it writes nothing.

        `agent_id`: the window shows the messages with the label of this agent alone.

        `recorded` is false for a turn of an earlier version, which kept neither its block nor what was left out.

        Raises:
            NotFound: the user has no such turn.
        """
        turn = await self.store.conversations.turn(user_id=user_id, turn_id=turn_id)
        if turn is None:
            raise NotFound("There is no such turn of this user.")
        result = turn.result or {}
        record = turn.record
        left_out = read_record(record.get("left_out") or {})
        texts = await StoredTexts.read(self.store, user_id, _ids_of(turn, left_out))
        contents = [turn.message.content, *(hit["content"] for hit in _hits(turn))]
        return {
            "recorded": bool(record),
            "message": turn.message.as_json(),
            "window": await self._window(turn, agent_id),
            "hits": [_hit(hit, result.get("trace") or (), texts) for hit in _hits(turn)],
            "left_out": _left_out(record, left_out, texts),
            "block": await off_loop(lambda: rebuilt_block(turn, texts, recall_tokens=self.recall_tokens), contents),
            **await off_loop(lambda: _taught(turn), contents),
        }

    async def left_out(self, user_id: str, candidates: Sequence[LeftOut]) -> list[Json]:
        """Return the candidates that a search of the user left out, each with its text as it is stored now."""
        texts = await StoredTexts.read(
            self.store, user_id, _text_ids((one.kind, one.id, one.source) for one in candidates)
        )
        return [_with_text(one, texts) for one in candidates]

    async def _window(self, turn: Turn, agent_id: str | None) -> Json:
        """Return how many turns the window showed, those of them that are stored, and how many are not."""
        result = turn.result or {}
        shown = min(int(result.get("memory", {}).get("window") or 0), MOST_WINDOW)
        begin = turn.record.get("window_from") or 0
        before = turn.message.position
        conversations, scope = self.store.conversations, turn.message.scope
        found = await last_turns(conversations, scope, limit=shown, before=before, agent_id=agent_id) if shown else []
        kept = [exchange for exchange in found if exchange.user.position >= begin]
        return {
            "turns": shown,
            "gone": shown - len(kept),
            "messages": [message for exchange in kept for message in _shown(exchange)],
        }


def _ids_of(turn: Turn, left_out: Sequence[LeftOut]) -> TextIds:
    """Return the ids of all texts that the turn's record names."""
    facts = [("fact", one.id, None) for one in recorded_entries(turn) or () if one.kind in {"fact", "note"} and one.id]
    hits = [(hit["kind"], hit["id"], hit.get("turn_id") or hit.get("thread_id")) for hit in _hits(turn)]
    return _text_ids([*facts, *hits, *((one.kind, one.id, one.source) for one in left_out)])


def _text_ids(named: Iterable[tuple[str | None, str, str | None]]) -> TextIds:
    """Return the ids of texts that are named by kind, id and source."""
    facts, turns, threads, passages = set[str](), set[str](), set[str](), set[str]()
    for kind, text_id, source in named:
        if kind == "fact":
            facts.add(text_id)
        elif kind == "document":
            passages.add(text_id)
        elif source is not None:
            (turns if kind == "episode" else threads).add(source)
    return TextIds(facts, turns, threads, passages)


def _hits(turn: Turn) -> Sequence[Json]:
    return (turn.result or {}).get("memory", {}).get("hits", ())


def _hit(hit: Json, trace: Sequence[Mapping[str, Any]], texts: StoredTexts) -> Json:
    """Return the hit with the parts of its score by name, and what became of its text."""
    traced = next((one for one in trace if one.get("id") == hit["id"]), None)
    state = "shown" if hit["content"] else texts.text(hit["kind"], hit["id"]).state
    return {
        **hit,
        "parts": traced.get("scores") if traced is not None else None,
        "state": "deleted" if not hit["content"] and state == "shown" else state,
    }


def _left_out(record: Mapping[str, Any], left_out: Sequence[LeftOut], texts: StoredTexts) -> Json | None:
    """Return how many candidates were left out, and those that are recorded; None where nothing was searched."""
    kept = record.get("left_out")
    if not kept:
        return None
    return {"count": kept.get("count"), "items": [_with_text(one, texts) for one in left_out]}


def _with_text(one: LeftOut, texts: StoredTexts) -> Json:
    found = texts.text(one.kind, one.id)
    return {
        **one.as_json(),
        "content": None if found.text is None else cut(found.text, MOST_SHOWN_CHARACTERS),
        "role": None if found.said is None else found.said.role,
        "created_at": None if found.said is None else iso(found.said.created_at),
        "state": found.state,
    }


def _taught(turn: Turn) -> Json:
    """Return what the turn taught and what was refused, each with the place of its quote in the message."""
    update, message = turn.update or Update(steps={}), turn.message.content
    return {
        "taught": [{**change.as_json(), "quote": _place(change.evidence, message)} for change in update.changes],
        "refused": [{**asdict(refused), "quote": _place(refused.evidence, message)} for refused in update.refused],
    }


def _place(quote: str, message: str) -> Json | None:
    place = quote_place(quote, message)
    return None if place is None else {"start": place[0], "end": place[1]}


def _shown(exchange: Exchange) -> list[Json]:
    return [
        {**message.as_json(), "content": cut(message.content, MOST_SHOWN_CHARACTERS)} for message in exchange.messages
    ]
