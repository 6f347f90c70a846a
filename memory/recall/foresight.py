"""Tells before anything is read whether a turn is going to search, by what the search before it has seen."""

from collections import OrderedDict
from dataclasses import field

from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope

_MOST_SCOPES = 10_000


@frozen
class Foresight:
    """Remembers how many turns the last searches found in their scopes, of the last 10,000 of them.

    It may be wrong, after an erasure for example: then a text is embedded that nobody searches for.
    """

    _turns: OrderedDict[Scope, int] = field(default_factory=OrderedDict[Scope, int])

    def saw(self, scope: Scope, turns: int) -> None:
        """Take in that a search found so many turns in `scope`, as far as it counted them."""
        self._turns[scope] = turns
        self._turns.move_to_end(scope)
        if len(self._turns) > _MOST_SCOPES:
            self._turns.popitem(last=False)

    def has_more_than(self, scope: Scope, turns: int) -> bool:
        """Tell whether more than so many turns were found in `scope`."""
        return self._turns.get(scope, 0) > turns
