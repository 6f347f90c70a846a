"""A period of time, as the index and the store filter by it."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Period:
    """The time from `begin` until just before `end`; for an instant, both are equal."""

    begin: datetime
    end: datetime

    def names(self, other: "Period") -> bool:
        """Tell whether `other` begins within it, or right at its end."""
        return self.begin <= other.begin <= self.end
