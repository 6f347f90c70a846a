"""A planned write: what one change writes to the store, recorded before it is done so that a replay does the same."""

from datetime import datetime

from recollect.memory.values.decision import Decision, FactScope
from recollect.memory.values.fact import Fact, FactStatus
from recollect.memory.values.frozen import frozen
from recollect.memory.values.times import from_ms


@frozen
class PlannedWrite:
    """The writes of one change, as plain JSON values (strings, numbers, a tuple of strings), times in epoch ms.

    A change has up to three writes, done in this order; each is idempotent, so that a replay after a kill may repeat
    them. They insert the new fact (`inserts` is its id, derived from the turn), end the living fact `ends`, and confirm
    the living fact `confirms` (`confirmed_ms` is its previous confirmation, which an undo restores); None leaves a
    write out. The fields from `key` on describe the new fact and mean nothing without one, except that the fact `ends`
    is valid until `valid_from_ms` (None: until `at_ms`). A new fact with `status` "proposed" ends nothing until a
    person approves it.
    """

    at_ms: int
    inserts: str | None = None
    ends: str | None = None
    confirms: str | None = None
    confirmed_ms: int | None = None
    key: str | None = None
    value: str = ""
    statement: str = ""
    evidence: str = ""
    scope: FactScope = "user"
    source: str = "turn"
    importance: float = 0.5
    tags: tuple[str, ...] = ()
    replaces: str | None = None
    status: FactStatus = "active"
    proposes: Decision | None = None
    valid_from_ms: int | None = None
    valid_to_ms: int | None = None

    @property
    def at(self) -> datetime:
        """The time of all its writes (UTC)."""
        return from_ms(self.at_ms)

    def new_fact(
        self, *, user_id: str, thread_id: str | None, turn_id: str | None, agent_id: str | None = None
    ) -> Fact | None:
        """Return the fact to insert, or None. A repeated call for one turn returns an equal fact.

        Without `turn_id`, the fact was learned from a text that is no turn. `agent_id` is the turn's label.
        """
        if self.inserts is None:
            return None
        return Fact(
            id=self.inserts,
            user_id=user_id,
            key=self.key,
            value=self.value,
            statement=self.statement,
            created_at=self.at,
            updated_at=self.at,
            confirmed_at=self.at,
            valid_from=self.at if self.valid_from_ms is None else from_ms(self.valid_from_ms),
            valid_to=None if self.valid_to_ms is None else from_ms(self.valid_to_ms),
            scope=self.scope,
            thread_id=thread_id,
            turn_id=turn_id,
            source="text" if turn_id is None else "tool" if self.source == "tool" else "turn",
            tags=self.tags,
            importance=self.importance,
            evidence=self.evidence,
            replaces=self.replaces,
            status=self.status,
            proposes=self.proposes,
            agent_id=agent_id,
        )
