"""Keeps the key of an agent to its own part, where a call is about a whole thread or a whole user."""

from recollect.api.auth.caller import Caller
from recollect.memory.memory import Memory
from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.values.errors import Forbidden
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Message

WHOLE_USER = (
    "This is about everything of a user, and the key is bound to an agent: use a key without an agent, or delete the "
    "agent's own threads, facts and documents."
)
COUNTS = "These figures count what all agents have written, and the key is bound to one: use a key without an agent."


def check_whole_user(caller: Caller, refusal: str = WHOLE_USER) -> None:
    """Raise Forbidden if the caller is bound to an agent, because the call is about all agents' part of a user.

    Raises:
        Forbidden: it is.
    """
    if caller.agent_id is not None:
        raise Forbidden(refusal)


async def check_whole_thread(caller: Caller, memory: Memory, scope: Scope) -> None:
    """Check that a caller that is bound to an agent may change the thread as a whole.

    Raises:
        NotFound: its agent has not spoken in the thread.
        Forbidden: others have spoken in it too.
    """
    if caller.agent_id is not None:
        await memory.threads.check_agents_own(scope, caller.agent_id)


def sees_record(agent_id: str | None, record: ClientRecord) -> bool:
    """Tell whether a caller, bound to the agent `agent_id` or to none, may see the client record."""
    return agent_id in (None, record.agent_id)


def sees_message(agent_id: str | None, message: Message) -> bool:
    """Tell whether a caller, bound to the agent `agent_id` or to none, may see the message."""
    return agent_id in (None, message.agent_id)
