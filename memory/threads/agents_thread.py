"""Reads a thread as the key of one agent sees it: the messages with the label of that agent alone.

Title, summary and archive belong to all who have spoken in the thread, so such a key gets them where nobody else has.
"""

from dataclasses import replace

from recollect.memory.ports.conversations import Conversations
from recollect.memory.ports.store import Store
from recollect.memory.values.errors import Forbidden, NotFound
from recollect.memory.values.scope import Scope
from recollect.memory.values.thread_record import ThreadOverview, ThreadRecord

SHARED = (
    "Turns in this thread are not of the agent that the key is bound to, and this changes the whole thread: use a key "
    "without an agent."
)


async def is_shared(conversations: Conversations, scope: Scope, agent_id: str) -> bool:
    """Tell whether the thread has a message without the label of the agent."""
    own = await conversations.overview(scope, agent_id=agent_id)
    whole = await conversations.overview(scope)
    return whole is not None and (own is None or own.messages != whole.messages)


async def agents_overview(store: Store, scope: Scope, agent_id: str) -> ThreadOverview:
    """Return the overview of the thread as if it had only the agent's messages.

    Raises:
        NotFound: no message of the thread has the agent's label.
    """
    own = await store.conversations.overview(scope, agent_id=agent_id)
    if own is None:
        raise NotFound("There is no such thread; nobody has written to it.")
    return replace(own, record=await agents_record(store, scope, agent_id))


async def agents_record(store: Store, scope: Scope, agent_id: str) -> ThreadRecord | None:
    """Return the thread's record; without title and summary where others than the agent have spoken in the thread."""
    record = await store.threads.record(scope)
    if record is None or not await is_shared(store.conversations, scope, agent_id):
        return record
    return replace(record, title=None, summary=None, summary_by=None)


async def check_agents_own(store: Store, scope: Scope, agent_id: str) -> None:
    """Check that nobody but the agent has spoken in the thread.

    Raises:
        NotFound: no message of the thread has the agent's label.
        Forbidden: others have spoken in it too.
    """
    await agents_overview(store, scope, agent_id)
    if await is_shared(store.conversations, scope, agent_id):
        raise Forbidden(SHARED)
