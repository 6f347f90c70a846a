"""A fact: one atomic, self-contained statement about a user (DESIGN: "Facts")."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from memory.decision import Decision, FactScope
from memory.scope import GLOBAL_USER
from memory.times import iso

FactSource = Literal["turn", "manual", "tool", "import", "text"]
FactStatus = Literal["active", "proposed", "rejected", "undone", "forgotten"]
EndedBy = Literal["turn", "person", "review", "undo"]
KEY_PATTERN = r"[a-z][a-z0-9_]{0,63}"
_KEY = re.compile(KEY_PATTERN)
_HYPHENS = dict.fromkeys([0x2010, 0x2011, 0x2013, 0x2212], "-")
_KEPT_CATEGORIES = frozenset({"Mn", "Mc", "Sc", "So", "Sm"})


@dataclass(frozen=True, slots=True)
class Ended:
    """What ended a version of a fact, and when (UTC): the turn that superseded or deleted it, or a person's act.

    `was_valid_to` is the fact's `valid_to` from before, which an undo restores.
    """

    by: EndedBy
    at: datetime
    turn_id: str | None = None
    reason: str | None = None
    was_valid_to: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """As the history shows it."""
        return {"by": self.by, "at": iso(self.at), "turn_id": self.turn_id, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact under one id; what a new fact supersedes stays under its own id, with `ended`.

    `key` is snake_case, or None for free text; `importance` is in [0, 1]; times are UTC. It holds from `valid_from`
    until just before `valid_to` (None: without end), in this version or an earlier one. `replaces` is the id of the
    fact that this one superseded. `turn_id` names the turn that taught it (source "turn" or "tool"; a "text" is no
    turn), `thread_id` the thread of that turn; for `scope` "thread" it is also where the fact lives and dies. A global
    fact's user is `GLOBAL_USER`.

    `status` "active" is what is known; "proposed" waits for a person ("proposes" says what approval does), who made it
    "rejected"; "undone" was taken back with its turn; "forgotten" is a tombstone without text. `ended` says what
    superseded or deleted an active fact (its validity may run on until `valid_to`), or made it what `status` says.
    `revision` rises with every write; `indexed` says that the index holds what this revision calls for. `history` are
    earlier versions under this id, as JSON, oldest first.
    """

    id: str
    user_id: str
    key: str | None
    value: str
    statement: str
    created_at: datetime
    updated_at: datetime
    confirmed_at: datetime
    valid_from: datetime
    valid_to: datetime | None = None
    scope: FactScope = "user"
    thread_id: str | None = None
    turn_id: str | None = None
    source: FactSource = "turn"
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    pinned: bool = False
    evidence: str | None = None
    replaces: str | None = None
    status: FactStatus = "active"
    proposes: Decision | None = None
    ended: Ended | None = None
    revision: int = 1
    indexed: bool = False
    history: tuple[Mapping[str, Any], ...] = ()

    @property
    def text(self) -> str:
        """What a change shows as before or after: the value, or the statement of a keyless fact."""
        return self.statement if self.key is None else self.value

    @property
    def home(self) -> str | None:
        """The thread that it lives and dies with; None for what goes along everywhere."""
        return self.thread_id if self.scope == "thread" else None

    @property
    def is_guarded(self) -> bool:
        """Whether a person wrote or pinned it: no model may change it."""
        return self.pinned or self.source == "manual"

    @property
    def is_open(self) -> bool:
        """Whether it is known and nothing has superseded or deleted it: it has a point in the index."""
        return self.status == "active" and self.ended is None

    def is_living(self, at: datetime) -> bool:
        """Whether it is open and its validity has not run out: what a new fact under its key supersedes."""
        return self.is_open and (self.valid_to is None or self.valid_to > at)

    def holds(self, at: datetime) -> bool:
        """Whether it is, or was, valid at that time."""
        return self.status == "active" and self.valid_from <= at and (self.valid_to is None or at < self.valid_to)

    @property
    def shown_status(self) -> str:
        """The status as people see it: an active fact that something has ended is "ended"."""
        return "ended" if self.status == "active" and self.ended is not None else self.status

    def as_json(self) -> dict[str, Any]:
        """The fact as the HTTP contract shows it."""
        shown = {name: getattr(self, name) for name in _SHOWN}
        for name in ("created_at", "updated_at", "confirmed_at", "valid_from", "valid_to"):
            shown[name] = iso(shown[name]) if shown[name] is not None else None
        shown["valid_from"] = self._version_from() or shown["valid_from"]
        return {**shown, "tags": list(self.tags), "status": self.shown_status}

    def _version_from(self) -> str | None:
        """Since when its text as it is now holds, where a change in place has cut another text off.

        `valid_from` itself says since when any version of it held, which `as_of` looks for.
        """
        if not self.history:
            return None
        last = self.history[-1]
        is_other = (last["value"], last["statement"]) != (self.value, self.statement)
        until: str | None = last["valid_to"]
        if not is_other or until is None or until > last["ended"]["at"]:
            return None
        return max(until, iso(self.valid_from))

    def as_version(self) -> dict[str, Any]:
        """The fact as one version of a history: what is shown of it, and what ended it."""
        return {**self.as_json(), "ended": None if self.ended is None else self.ended.as_json()}

    def revised(self, *, at: datetime, **changes: Any) -> "Fact":
        """The next revision, which the index has yet to follow. `history` is the caller's to extend."""
        return replace(self, **{"updated_at": at, "revision": self.revision + 1, "indexed": False, **changes})


_SHOWN = (
    *("id", "key", "value", "statement", "scope", "thread_id", "turn_id", "source", "importance", "pinned"),
    *("evidence", "created_at", "updated_at", "confirmed_at", "valid_from", "valid_to", "replaces", "proposes"),
)


def is_key(text: str) -> bool:
    """Whether `text` may be a fact's key."""
    return _KEY.fullmatch(text) is not None


def fold(text: str) -> str:
    """`text` for comparing: NFKC, case-folded, white space and punctuation collapsed to one space.

    Signs, decimal points, # and + stay, because 1.5 is not 15, -3 is not 3, C is not C# and O- is not O.
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    folded = unicodedata.normalize("NFKC", plain).translate(_HYPHENS)
    kept = "".join(char if _is_kept(folded, place, char) else " " for place, char in enumerate(folded))
    return " ".join(kept.split())


def _is_kept(text: str, place: int, char: str) -> bool:
    if char.isalnum() or char in "#+%\u2030" or unicodedata.category(char) in _KEPT_CATEGORIES:
        return True
    before, following = text[max(place - 1, 0) : place], text[place + 1 : place + 2]
    if char in ".,":
        return following.isdigit() and (before.isdigit() or (char == "." and not before.isalnum()))
    if char == "-":
        return not following.isalnum() if before.isalnum() else following.isdigit()
    return False


def fact_dict(facts: Iterable[Fact]) -> dict[str, str]:
    """The user-fact dict: key to value of the keyed facts among those that hold now.

    Where two hold under one key (a crash between two writes), the thread's goes before the user's, the user's before a
    global one, a guarded one before others, then the newest. The most important come first, then the most recently
    confirmed: an order that does not move while the facts stay the same, which prompt caches depend on.
    """
    chosen: dict[str, Fact] = {}
    for fact in facts:
        if fact.key is None:
            continue
        rival = chosen.get(fact.key)
        if rival is None or _rank(fact) > _rank(rival):
            chosen[fact.key] = fact
    return {fact.key or "": fact.value for fact in by_weight(chosen.values())}


def by_weight(facts: Iterable[Fact]) -> list[Fact]:
    """Most important first, then most recently confirmed, then newest; ties by key and id."""
    ordered = sorted(facts, key=lambda fact: (fact.key or "", fact.id))
    return sorted(ordered, key=lambda fact: (fact.importance, fact.confirmed_at, fact.created_at), reverse=True)


def preferred(facts: Iterable[Fact]) -> Fact | None:
    """Of facts that rival each other under one key, the one that `fact_dict` shows; None of none."""
    return max(facts, key=_rank, default=None)


def _rank(fact: Fact) -> tuple[int, bool, datetime, str]:
    nearness = {"thread": 2, "user": 1, "global": 0}[fact.scope] if fact.user_id != GLOBAL_USER else 0
    return (nearness, fact.is_guarded, fact.created_at, fact.id)
