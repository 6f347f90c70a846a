"""A period of time, as the index and the store filter by it."""

from datetime import datetime

from recollect.memory.values.frozen import frozen


@frozen
class Period:
    """The time from `begin` until just before `end`; for an instant, both are equal."""

    begin: datetime
    end: datetime

    def names(self, other: "Period") -> bool:
        """Tell whether `other` begins within it, or right at its end."""
        return self.begin <= other.begin <= self.end
