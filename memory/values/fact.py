"""A fact: one atomic, self-contained statement about a user."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Any, Literal

from recollect.memory.language.folding import folded
from recollect.memory.values.decision import Decision, FactScope
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import GLOBAL_USER
from recollect.memory.values.times import iso
from recollect.memory.values.version import version_of

FactSource = Literal["turn", "manual", "tool", "import", "text"]
FactStatus = Literal["active", "proposed", "rejected", "undone", "forgotten"]
EndedBy = Literal["turn", "person", "review", "undo"]
KEY_PATTERN = r"[a-z][a-z0-9_]{0,63}"
_KEY = re.compile(KEY_PATTERN)
_HYPHENS = dict.fromkeys([0x2010, 0x2011, 0x2013, 0x2212], "-")
_KEPT_CATEGORIES = frozenset({"Mn", "Mc", "Sc", "So", "Sm"})
# Matches the ASCII characters that `_is_kept` rejects, in a tenth of its time.
_ASCII_LEFT_OUT = re.compile(
    r"[^a-z0-9#+%$<=>|~.,-]+"
    r"|,(?!(?<=\d,)\d)|\.(?!\d)|(?<=[a-z])\."
    r"|(?<=[a-z0-9])-(?=[a-z0-9])|(?<![a-z0-9])-(?!\d)"
)


@frozen
class Ended:
    """The end of a version of a fact, and its time (UTC): by the turn that superseded or deleted it, or by a person.

    `was_valid_to` is the fact's `valid_to` before that; an undo restores it.
    """

    by: EndedBy
    at: datetime
    turn_id: str | None = None
    reason: str | None = None
    was_valid_to: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as a history shows it."""
        return {"by": self.by, "at": iso(self.at), "turn_id": self.turn_id, "reason": self.reason}


@frozen
class Fact:
    """One fact under one id; a fact that a new one supersedes stays under its own id, with `ended`.

    `key` is snake_case, or None for a note; `importance` is in [0, 1]; times are UTC. It holds from `valid_from`
    until just before `valid_to` (None: without end), in this version or an earlier one. `replaces` is the id of the
    fact that this one superseded. `turn_id` names the turn that taught it (source "turn" or "tool"; a "text" is no
    turn), `thread_id` the thread of that turn; for `scope` "thread" it is also the thread with which the fact is
    deleted. A global fact's user is `GLOBAL_USER`.

    `status` "active" is what is known; "proposed" waits for a person (`proposes` is the decision that approval carries
    out), who made it "rejected"; "undone" was taken back with its turn; "forgotten" is a tombstone without text.
    `ended` says what superseded or deleted an active fact (its validity may continue until `valid_to`), or what gave it
    its `status`. `revision` rises with every write; `indexed` says that the index holds what this revision calls for.
    `history` are earlier versions under this id, as JSON, oldest first. `metadata` is plain JSON of a person's or a
    program's; `agent_id` labels it with the agent that it was learned or written for.
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
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    agent_id: str | None = None

    @property
    def text(self) -> str:
        """The text that a change shows as before or after: the value, or the statement of a note."""
        return self.statement if self.key is None else self.value

    @property
    def home(self) -> str | None:
        """The id of the thread with which it is deleted; None for a fact of all threads."""
        return self.thread_id if self.scope == "thread" else None

    @property
    def is_guarded(self) -> bool:
        """Tell whether a person wrote or pinned it: no model may change it."""
        return self.pinned or self.source == "manual"

    @property
    def is_open(self) -> bool:
        """Tell whether it is known, neither superseded nor deleted: it has a point in the index."""
        return self.status == "active" and self.ended is None

    def is_living(self, at: datetime) -> bool:
        """Tell whether it is open and its validity has not run out at `at`: a new fact under its key supersedes it."""
        return self.is_open and (self.valid_to is None or self.valid_to > at)

    def holds(self, at: datetime) -> bool:
        """Tell whether it is valid at `at`, which may lie in the past."""
        return self.status == "active" and self.valid_from <= at and (self.valid_to is None or at < self.valid_to)

    @property
    def shown_status(self) -> str:
        """The status as people see it: "ended" for an active fact that has `ended`, else `status`."""
        return "ended" if self.status == "active" and self.ended is not None else self.status

    def as_json(self) -> dict[str, Any]:
        """Return the fact as the HTTP contract shows it."""
        shown = {name: getattr(self, name) for name in _SHOWN}
        for name in ("created_at", "updated_at", "confirmed_at", "valid_from", "valid_to"):
            shown[name] = iso(shown[name]) if shown[name] is not None else None
        shown["valid_from"] = self._version_from() or shown["valid_from"]
        shown |= {"tags": list(self.tags), "status": self.shown_status, "metadata": dict(self.metadata)}
        return shown if self.agent_id is None else {**shown, "agent_id": self.agent_id}

    def _version_from(self) -> str | None:
        """Return since when its present text holds, where a change in place has ended another text; else None.

        `valid_from` itself says since when any version of it held, which `as_of` needs.
        """
        if not self.history:
            return None
        last = self.history[-1]
        is_other = (last["value"], last["statement"]) != (self.value, self.statement)
        until: str | None = last["valid_to"]
        if not is_other or until is None or until > last["ended"]["at"]:
            return None
        return max(until, iso(self.valid_from))

    @property
    def version(self) -> str:
        """The version of what a person sees and edits; a confirmation alone does not change it."""
        told = (self.key, self.value, self.statement, self.scope, self.thread_id, self.tags, self.importance)
        more = () if not self.metadata and self.agent_id is None else (dict(self.metadata), self.agent_id)
        return version_of(*told, self.pinned, self.valid_from, self.valid_to, self.shown_status, *more)

    def as_version(self) -> dict[str, Any]:
        """Return the fact as one version of a history: its shown fields, and what ended it."""
        return {**self.as_json(), "ended": None if self.ended is None else self.ended.as_json()}

    def revised(self, *, at: datetime, **changes: Any) -> "Fact":
        """Return the next revision with `changes`, which the index does not hold yet. The caller extends `history`."""
        return replace(self, **{"updated_at": at, "revision": self.revision + 1, "indexed": False, **changes})


_SHOWN = (
    *("id", "key", "value", "statement", "scope", "thread_id", "turn_id", "source", "importance", "pinned"),
    *("evidence", "created_at", "updated_at", "confirmed_at", "valid_from", "valid_to", "replaces", "proposes"),
)


def is_key(text: str) -> bool:
    """Tell whether `text` may be a fact's key."""
    return _KEY.fullmatch(text) is not None


def fold(text: str) -> str:
    """Return `text` for comparing: NFKC, case-folded, white space and punctuation collapsed to one space.

    Signs, decimal points, # and + stay, because 1.5 is not 15, -3 is not 3, C is not C# and O- is not O.
    """
    if text.isascii():
        return " ".join(_ASCII_LEFT_OUT.sub(" ", text.lower()).split())
    plain = folded(text).translate(_HYPHENS)
    kept = "".join(char if _is_kept(plain, place, char) else " " for place, char in enumerate(plain))
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
    """Return the user-fact dict: key to value of the keyed ones among `facts`, which hold now; see `chosen_facts`."""
    return {fact.key or "": fact.value for fact in chosen_facts(facts)}


def chosen_facts(facts: Iterable[Fact]) -> list[Fact]:
    """Return the keyed ones among `facts`, which hold now: one for each key.

    Two facts may hold under one key after a crash between two writes. Then the thread's goes before the user's, the
    user's before a global one, a guarded one before others, then the newest. They are ordered by importance, then by
    latest confirmation: the order is stable while the facts stay the same, which prompt caches depend on.
    """
    chosen: dict[str, Fact] = {}
    for fact in facts:
        if fact.key is None:
            continue
        rival = chosen.get(fact.key)
        if rival is None or _rank(fact) > _rank(rival):
            chosen[fact.key] = fact
    return by_weight(chosen.values())


def by_weight(facts: Iterable[Fact]) -> list[Fact]:
    """Return `facts`, most important first, then most recently confirmed, then newest; ties by key and id."""
    ordered = sorted(facts, key=lambda fact: (fact.key or "", fact.id))
    return sorted(ordered, key=lambda fact: (fact.importance, fact.confirmed_at, fact.created_at), reverse=True)


def own_first(facts: Iterable[Fact]) -> list[Fact]:
    """Return `facts` with those of a thread before the user's, else in their order."""
    return sorted(facts, key=lambda fact: fact.home is None)


def preferred(facts: Iterable[Fact]) -> Fact | None:
    """Return the one of `facts`, which share a key, that `fact_dict` shows; None if there are none."""
    return max(facts, key=_rank, default=None)


def _rank(fact: Fact) -> tuple[int, bool, datetime, str]:
    nearness = {"thread": 2, "user": 1, "global": 0}[fact.scope] if fact.user_id != GLOBAL_USER else 0
    return (nearness, fact.is_guarded, fact.created_at, fact.id)
