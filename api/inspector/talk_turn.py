"""One turn as the page "Talk" shows it: its words, what was recalled for it, and what it taught."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from recollect.api.inspector.rendering import share
from recollect.memory.memory import Memory
from recollect.memory.values.turn import Turn

Json = dict[str, Any]

FETCHES: Mapping[str, str] = {
    "load_window": "the thread's earlier turns",
    "search_memories": "the search of memories",
    "load_facts": "the known facts",
}
"""The fetches of a turn by node, as people read them."""
SKIPPED: Mapping[str, str] = {
    "disabled": "Not remembered: nothing was recalled for it, and nothing is learned from it.",
    "trivial": "Nothing can be learned from such a message.",
    "imported": "It was imported, and not learned from.",
}
"""Why a turn was not learned from, by the reason of its update."""
MOST_FACTS = 8
"""How many known facts stand beside a turn; the rest are counted, and the turn's own page has them."""
NOTHING_RECALLED: Json = {"window": 0, "facts": {}, "more_facts": 0, "summary": None, "hits": [], "degraded": []}
BLANK: Json = {
    "turn_id": "",
    "thread_id": "",
    "message": "",
    "at": None,
    "reply": None,
    "model": None,
    "recalled": NOTHING_RECALLED,
    "learning": None,
    "skipped": None,
}
"""The turn that an open page fills in when it sends its words."""


def turn_fields(memory: Memory, turn: Turn) -> Json:
    """Return what the page's template shows of the turn. `reply` and `learning` are None while it is unfinished."""
    message = turn.message
    shown = turn.explained_json(memory.deferred_steps(message.user_id, message.turn_id))
    update: Json = shown["memory"]["update"]
    return {
        "turn_id": message.turn_id,
        "thread_id": message.thread_id,
        "message": message.content,
        "at": message.created_at,
        "reply": shown["reply"],
        "model": shown["model"],
        "recalled": recalled_of(shown["memory"]),
        "learning": None if turn.reply is None else update,
        "skipped": SKIPPED.get(update["reason"] or "") if update["status"] == "skipped" else None,
    }


def share_of(turns: Sequence[Json]) -> int | None:
    """Return how many characters of each message and reply the page holds; None: all (see `share`)."""
    return share(turn[name] or "" for turn in turns for name in ("message", "reply"))


def recalled_of(memory: Json) -> Json:
    """Return what the template shows of a turn's recalled memory."""
    facts: Json = memory["facts"]
    return {
        "window": memory["window"],
        "facts": dict(islice(facts.items(), MOST_FACTS)),
        "more_facts": max(0, len(facts) - MOST_FACTS),
        "summary": memory["summary"],
        "hits": memory["hits"],
        "degraded": [FETCHES.get(name, name) for name in memory["degraded"]],
    }
