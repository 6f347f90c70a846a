"""Checks the form of an exported turn's update by the rules for facts that a person writes.

The importer may have written the update, and the updater may still execute its planned writes. A part that breaks the
rules is dropped and named, and its turn is imported. Whether a fact is true is not checked here: learning does that.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from recollect.memory.transfer.plain_values import Unfit, from_plain
from recollect.memory.values.decision import Change, Proposal, RefusedProposal
from recollect.memory.values.fact import fold, is_key
from recollect.memory.values.fact_limits import (
    MOST_STATEMENT_CHARACTERS,
    MOST_TAG_CHARACTERS,
    MOST_TAGS,
    MOST_VALUE_CHARACTERS,
)
from recollect.memory.values.json_values import json_problem
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.scope import is_uuid
from recollect.memory.values.turn import derived_id
from recollect.memory.values.update import Left

MOST_PARTS = 1_000
"""Most writes, changes, refused proposals and so on of a turn, each."""
MOST_NAMED = 20
MOST_EVIDENCE_CHARACTERS = 1_000_000
"""Length of the longest quote: it is a part of a message."""
MOST_REMARK_CHARACTERS = 2_000
_DEPTH = 4
_KEY = "key must be of the form [a-z][a-z0-9_]{0,63}"
_FIRST_MS, _LAST_MS = -2_208_988_800_000, 221_845_392_000_000
"""The years 1900 to 9000, in milliseconds since 1970: the limits of all imported times."""
_TIMES = ("at_ms", "valid_from_ms", "valid_to_ms")
_IDS = ("inserts", "ends", "confirms", "replaces")

Json = Mapping[str, Any]
Part = TypeVar("Part")


def sift_update(said: Json) -> tuple[Json, tuple[str, ...]]:
    """Return a turn's line without the parts of its `update` that break the rules, and a sentence for each of them."""
    update = said.get("update")
    if not isinstance(update, Mapping):
        return said, ()
    sifting = _Sifting.of(said, cast("Json", update))
    kept = sifting.update(cast("Json", update))
    named, more = sifting.dropped[:MOST_NAMED], len(sifting.dropped) - MOST_NAMED
    if more > 0:
        named.append(f"update: {more:,} more parts like these are dropped.")
    return {**said, "update": kept}, tuple(named)


def key_problem(key: str | None) -> str | None:
    """Return why `key` is no fact's key, or None."""
    return None if key is None or is_key(key) else _KEY


def length_problem(lengths: Mapping[str, tuple[str | None, int]]) -> str | None:
    """Return which text is too long, or None; `lengths` maps a field to its text and the most characters."""
    for name, (text, most) in lengths.items():
        if text is not None and len(text) > most:
            return f"{name} must have at most {most:,} characters"
    return None


def tags_problem(tags: Sequence[str]) -> str | None:
    """Return why these are no tags of a fact, or None."""
    if len(tags) > MOST_TAGS or not all(0 < len(tag) <= MOST_TAG_CHARACTERS for tag in tags):
        return f"tags must be at most {MOST_TAGS}, of 1 to {MOST_TAG_CHARACTERS} characters each"
    return None


@dataclass
class _Sifting:
    """Checks the parts of one update. `ids` maps names of the turn's facts that are no UUIDs to the ids they get here.

    `is_pending`: the facts step has yet to run, and would execute the writes.
    """

    ids: Mapping[str, str]
    is_pending: bool
    dropped: list[str] = field(default_factory=list[str])

    @classmethod
    def of(cls, said: Json, update: Json) -> "_Sifting":
        """Return a checker for the `update` of the turn's line `said`."""
        steps = update.get("steps")
        facts = cast("Json", steps).get("facts") if isinstance(steps, Mapping) else None
        is_pending = isinstance(facts, Mapping) and cast("Json", facts).get("status", "pending") == "pending"
        return cls(
            _ids_of(said, [*_every(update.get("writes")), *_every(_of(update, "earlier").get("writes"))]), is_pending
        )

    def update(self, update: Json) -> Json:
        """Return the update without the parts that are dropped."""
        kept = {**update}
        if kept.pop("preview", None) is not None:
            self._drop("update.preview", "nobody was shown it here")
        places = self._writes(kept, "update.writes", paired=update.get("changes"))
        kept |= self._parts(kept, "update.", "changes", Change, _change_problem, places=places)
        kept |= self._parts(kept, "update.", "refused", RefusedProposal, _refused_problem)
        kept |= self._parts(kept, "update.", "proposals", Proposal, _proposal_problem)
        if isinstance(kept.get("undo"), Mapping):
            undo = {**kept["undo"]}
            undo |= self._parts(undo, "update.undo.", "changes", Change, _change_problem)
            kept["undo"] = undo | self._parts(undo, "update.undo.", "left", Left, _left_problem)
        if isinstance(kept.get("earlier"), Mapping):
            earlier = {**kept["earlier"]}
            self._writes(earlier, "update.earlier.writes")
            if isinstance(earlier.get("fact_ids"), list):
                named = [self.ids.get(one, one) for one in earlier["fact_ids"] if isinstance(one, str)]
                earlier["fact_ids"] = [one for one in named if is_uuid(one)][:MOST_PARTS]
            kept["earlier"] = earlier
        return kept | self._names(kept)

    def _names(self, kept: Json) -> dict[str, None]:
        """Return None for each model's name that is too long or not printable."""
        named = {name: kept[name] for name in ("model", "wanted_model") if isinstance(kept.get(name), str)}
        return {name: None for name, text in named.items() if len(text) > 500 or not text.isprintable()}

    def _writes(self, holder: dict[str, Any], path: str, *, paired: object = None) -> frozenset[int] | None:
        """Drop bad writes of `holder`; return their places, if each write has its change in `paired`."""
        writes = holder.get("writes")
        if not isinstance(writes, list):
            return None
        kept, dropped = list[object](), set[int]()
        for place, said in enumerate(cast("list[object]", writes)):
            write, problem = self._write(said) if place < MOST_PARTS else (None, f"a turn has at most {MOST_PARTS:,}")
            if write is None:
                dropped.add(place)
                self._drop(f"{path}[{place}]", problem or "")
            else:
                kept.append(write)
        holder["writes"] = kept
        is_paired = isinstance(paired, list) and len(cast("list[object]", paired)) == len(cast("list[object]", writes))
        return frozenset(dropped) if is_paired else None

    def _write(self, said: object) -> tuple[Json | None, str | None]:
        """Return the write as it may be stored, or why it may not."""
        problem = json_problem(said, _DEPTH)
        if problem is not None:
            return None, problem
        try:
            write = from_plain(PlannedWrite, said)
        except Unfit as error:
            return None, str(error)
        given = {**cast("Json", said)}
        given |= {name: self.ids[given[name]] for name in _IDS if given.get(name) in self.ids}
        if write.inserts is None and "scope" in given:
            given["scope"] = "user"  # It says nothing where nothing is inserted.
        problem = _write_problem(from_plain(PlannedWrite, given), is_pending=self.is_pending)
        return (given, None) if problem is None else (None, problem)

    def _parts(
        self,
        holder: Json,
        path: str,
        name: str,
        kind: type[Part],
        problem_of: Callable[[Part], str | None],
        *,
        places: frozenset[int] | None = None,
    ) -> dict[str, Any]:
        """Return `holder`'s parts called `name` without bad ones; a wrong type stays, and the line is refused for it.

        `places` are those of dropped writes, whose changes are dropped without a sentence of their own.
        """
        parts = holder.get(name)
        if not isinstance(parts, list):
            return {}
        kept = list[object]()
        for place, said in enumerate(cast("list[object]", parts)):
            if places is not None and place in places:
                continue  # It is dropped with its write.
            part = self._renamed(said)
            try:
                problem = (
                    problem_of(from_plain(kind, part)) if place < MOST_PARTS else f"a turn has at most {MOST_PARTS:,}"
                )
            except Unfit:
                problem = None
            if problem is None:
                kept.append(part)
            else:
                self._drop(f"{path}{name}[{place}]", problem)
        return {name: kept}

    def _renamed(self, part: object) -> object:
        if not isinstance(part, Mapping):
            return part
        given = cast("Json", part)
        named = given.get("fact_id")
        return {**given, "fact_id": self.ids[named]} if isinstance(named, str) and named in self.ids else given

    def _drop(self, path: str, problem: str) -> None:
        self.dropped.append(f"{path}: {problem}; it is dropped, and its turn comes in.")


def _every(parts: object) -> Iterator[Json]:
    if isinstance(parts, list):
        yield from (cast("Json", part) for part in cast("list[object]", parts) if isinstance(part, Mapping))


def _of(update: Json, name: Literal["earlier"]) -> Json:
    inner = update.get(name)
    return cast("Json", inner) if isinstance(inner, Mapping) else {}


def _ids_of(said: Json, writes: Sequence[Json]) -> dict[str, str]:
    """Return ids for facts whose given ids are no UUIDs, derived as learning from the turn would derive them."""
    whose = said.get("user_id"), said.get("turn_id")
    ids: dict[str, str] = {}
    for write in writes:
        named = write.get("inserts")
        if not isinstance(named, str) or is_uuid(named):
            continue
        key, statement, scope = write.get("key"), write.get("statement"), write.get("scope", "user")
        if isinstance(statement, str) and len(statement) <= MOST_STATEMENT_CHARACTERS:
            part = key if isinstance(key, str) else fold(statement)
            name = f"fact:{part}" if scope == "user" else f"fact:{scope}:{part}"
            ids[named] = derived_id(str(whose[0]), str(whose[1]), name)
    return ids


def _write_problem(write: PlannedWrite, *, is_pending: bool) -> str | None:
    wrong = next((name for name in _IDS if (one := getattr(write, name)) is not None and not is_uuid(one)), None)
    if wrong is not None:
        return f"{wrong} must be a UUID"
    late = next((name for name in _TIMES if not _FIRST_MS <= (getattr(write, name) or 0) < _LAST_MS), None)
    if late is not None:
        return f"{late} must be a time in milliseconds since 1970"
    return _text_problem(write) or (None if write.inserts is None else _new_fact_problem(write, is_pending=is_pending))


def _text_problem(write: PlannedWrite) -> str | None:
    lengths: dict[str, tuple[str | None, int]] = {
        "value": (write.value, MOST_VALUE_CHARACTERS if write.key is not None else MOST_STATEMENT_CHARACTERS),
        "statement": (write.statement, MOST_STATEMENT_CHARACTERS),
        "evidence": (write.evidence, MOST_EVIDENCE_CHARACTERS),
        "source": (write.source, MOST_TAG_CHARACTERS),
    }
    return key_problem(write.key) or length_problem(lengths) or tags_problem(write.tags)


def _new_fact_problem(write: PlannedWrite, *, is_pending: bool) -> str | None:
    is_blank = not (write.key or write.value or write.statement)
    if not (write.value and write.statement) and (is_pending or not is_blank):
        return "value and statement must not be empty"  # They are where the fact was forgotten.
    if write.scope == "global":
        return "scope must be user or thread"
    if not 0 <= write.importance <= 1:
        return "importance must be between 0 and 1"
    if write.status not in {"active", "proposed"} or (write.proposes is not None) != (write.status == "proposed"):
        return "status must be active, or proposed with what it proposes"
    begins = write.at_ms if write.valid_from_ms is None else write.valid_from_ms
    if write.valid_to_ms is not None and write.valid_to_ms < begins:
        return "valid_to_ms must not be before valid_from_ms"
    return None


def _change_problem(change: Change) -> str | None:
    if not is_uuid(change.fact_id):
        return "fact_id must be a UUID"
    texts = {"before": change.before, "after": change.after, "reason": change.reason}
    lengths = {name: (text, MOST_REMARK_CHARACTERS) for name, text in texts.items()}
    return key_problem(change.key) or length_problem(
        {**lengths, "evidence": (change.evidence, MOST_EVIDENCE_CHARACTERS)}
    )


def _refused_problem(refused: RefusedProposal) -> str | None:
    if refused.fact_id is not None and not is_uuid(refused.fact_id):
        return "fact_id must be a UUID"
    # A refused proposal may have had any key.
    texts = {name: getattr(refused, name) for name in ("decision", "key", "value", "evidence", "reason")}
    return length_problem({name: (text, MOST_REMARK_CHARACTERS) for name, text in texts.items()})


def _proposal_problem(proposal: Proposal) -> str | None:
    # Learning decides whether the proposal is accepted; until then only its size is bounded, as the agent's tools do.
    names = ("key", "value", "statement", "valid_from", "valid_to")
    texts = {name: (getattr(proposal, name), MOST_REMARK_CHARACTERS) for name in names}
    tags = tags_problem(proposal.tags) if len(proposal.tags) > MOST_PARTS else None
    return tags or length_problem({**texts, "evidence": (proposal.evidence, MOST_EVIDENCE_CHARACTERS)})


def _left_problem(left: Left) -> str | None:
    if not is_uuid(left.fact_id):
        return "fact_id must be a UUID"
    return key_problem(left.key) or length_problem({"reason": (left.reason, MOST_REMARK_CHARACTERS)})
