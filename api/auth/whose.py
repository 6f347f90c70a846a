"""Says whose memory a call is about, and as which agent the caller sees it."""

from typing import NamedTuple

from recollect.memory.values.filtering.filter import Filter, of_agent


class Whose(NamedTuple):
    """Whose memory a call is about; with an `agent_id` it writes that agent's label and sees what has it."""

    user_id: str
    agent_id: str | None = None

    def narrowed(self, asked: Filter | None = None) -> Filter | None:
        """Return `asked`, within the agent's label."""
        return asked if self.agent_id is None else of_agent(self.agent_id, asked)
