"""A fact: one atomic, self-contained statement about a user (DESIGN: "Facts")."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from memory.decision import FactScope
from memory.times import iso

FactSource = Literal["turn", "manual", "tool", "import"]
KEY_PATTERN = r"[a-z][a-z0-9_]{0,63}"
_KEY = re.compile(KEY_PATTERN)
_HYPHENS = dict.fromkeys([0x2010, 0x2011, 0x2013, 0x2212], "-")
_KEPT_CATEGORIES = frozenset({"Mn", "Mc", "Sc", "So", "Sm"})


@dataclass(frozen=True, slots=True)
class Fact:
    """One version of what is known. It is living while `valid_to` is None.

    `key` is snake_case, or None for free text; `importance` is in [0, 1]; times are UTC. `replaces` is the id of the
    fact that this one superseded. `turn_id` names the turn that taught it (source "turn" or "tool"), `thread_id` the
    thread of that turn; for `scope` "thread" it is also where the fact lives and dies.
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

    @property
    def text(self) -> str:
        """What a change shows as before or after: the value, or the statement of a keyless fact."""
        return self.statement if self.key is None else self.value

    def as_json(self) -> dict[str, Any]:
        """The fact as the HTTP contract shows it."""
        shown = asdict(self)
        del shown["user_id"]
        for name in ("created_at", "updated_at", "confirmed_at", "valid_from", "valid_to"):
            shown[name] = iso(shown[name]) if shown[name] is not None else None
        return {**shown, "tags": list(self.tags)}

    @property
    def is_guarded(self) -> bool:
        """Whether a person wrote or pinned it: no model may change it."""
        return self.pinned or self.source == "manual"


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
    """The user-fact dict: key to value of the living keyed facts.

    Where two live under one key (a crash between two writes), a guarded one wins, then the newest; thread facts go
    before the user's. Keys are ordered by creation, those of one turn by name, so that the dict reads the same as long
    as the facts do.
    """
    chosen: dict[str, Fact] = {}
    for fact in facts:
        if fact.key is None or fact.valid_to is not None:
            continue
        rival = chosen.get(fact.key)
        if rival is None or _rank(fact) > _rank(rival):
            chosen[fact.key] = fact
    ordered = sorted(chosen.items(), key=lambda item: (item[1].created_at, item[0]))
    return {key: fact.value for key, fact in ordered}


def preferred(facts: Iterable[Fact]) -> Fact | None:
    """Of facts that rival each other under one key, the one that `fact_dict` shows; None of none."""
    return max(facts, key=_rank, default=None)


def _rank(fact: Fact) -> tuple[bool, bool, datetime, str]:
    return (fact.scope == "thread", fact.is_guarded, fact.created_at, fact.id)
