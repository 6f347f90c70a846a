"""The proposals of a model about facts, and what code makes of them: a closed union of small values."""

from dataclasses import asdict
from typing import Any, Literal

from recollect.memory.values.frozen import frozen

Decision = Literal["add", "update", "delete", "keep"]
FactScope = Literal["user", "thread", "global"]
ProposalSource = Literal["extraction", "tool"]


@frozen
class Proposal:
    """One decision as a model worded it: typed, but not verified yet.

    `shown` is the small number of a known fact that the model was shown, None where it names none. `evidence` should be
    a verbatim quote of the user's message; reconciliation checks it. `valid_from` and `valid_to` are dates as the model
    wrote them, if the user named any; `learning/validity.py` reads them. `untrusted`: a tool call proposed it in a turn
    whose context held texts that are not the user's own words.
    """

    decision: Decision
    key: str | None = None
    value: str | None = None
    statement: str | None = None
    evidence: str = ""
    shown: int | None = None
    scope: FactScope = "user"
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    source: ProposalSource = "extraction"
    valid_from: str | None = None
    valid_to: str | None = None
    untrusted: bool = False


@frozen
class Change:
    """One change that a turn made (or confirmed: "keep"). `before` and `after` are values; statements of notes.

    `status` is "proposed" where the change waits for a person, else None.
    """

    decision: Decision
    fact_id: str
    key: str | None
    before: str | None
    after: str | None
    evidence: str
    reason: str | None = None
    status: Literal["proposed"] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the change as the HTTP contract shows it: with `status` only if it waits for a person."""
        shown = asdict(self)
        if self.status is None:
            del shown["status"]
        return shown


@frozen
class RefusedProposal:
    """One proposal that code refused, and the reason."""

    decision: str
    fact_id: str | None
    key: str | None
    value: str | None
    evidence: str
    reason: str
