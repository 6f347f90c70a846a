"""What a model may propose about facts, and what code makes of it: a closed union of small values."""

from dataclasses import dataclass
from typing import Literal

Decision = Literal["add", "update", "delete", "keep"]
FactScope = Literal["user", "thread", "global"]
ProposalSource = Literal["extraction", "tool"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """One decision as a model worded it, typed but not yet believed.

    `shown` is the small number of a known fact that the model was shown, None where it names none. `evidence` should be
    a verbatim quote of the user's message; reconciliation checks it. `valid_from` and `valid_to` are dates as the model
    wrote them, if the user said any; `memory/validity.py` reads them.
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


@dataclass(frozen=True, slots=True)
class Change:
    """One change that a turn made (or confirmed: "keep"). `before` and `after` are values; statements if keyless."""

    decision: Decision
    fact_id: str
    key: str | None
    before: str | None
    after: str | None
    evidence: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """One proposal that code refused, and why."""

    decision: str
    fact_id: str | None
    key: str | None
    value: str | None
    evidence: str
    reason: str
