"""Preview: what learning from a turn again would change, as a person was shown it, until they apply it."""

from datetime import datetime, timedelta
from typing import Literal

from recollect.memory.values.decision import Change, Proposal, RefusedProposal
from recollect.memory.values.frozen import frozen
from recollect.memory.values.planned_write import PlannedWrite

LASTS = timedelta(minutes=15)
"""A preview may be applied for so long."""


@frozen
class Preview:
    """Holds the plan that was shown at `at` (UTC), with all that is needed to make it again without asking a model.

    `proposals` are the model's, `named` the ids of the known facts that they name by the numbers 1, 2, 3, …; `changes`,
    one for each of `writes`, and `refused` were shown. Only a "shown" preview can be applied; one that was applied, or
    became void because the turn or what it showed was changed, keeps its id alone.
    """

    id: str
    at: datetime
    state: Literal["shown", "applied", "void"] = "shown"
    model: str | None = None
    proposals: tuple[Proposal, ...] = ()
    named: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    writes: tuple[PlannedWrite, ...] = ()
    refused: tuple[RefusedProposal, ...] = ()

    @property
    def expires_at(self) -> datetime:
        """The time (UTC) until which it may be applied."""
        return self.at + LASTS

    def is_open(self, now: datetime) -> bool:
        """Tell whether it may be applied at `now`."""
        return self.state == "shown" and now < self.expires_at

    def ended(self, state: Literal["applied", "void"]) -> "Preview":
        """Return the preview without its contents."""
        return Preview(self.id, self.at, state)
