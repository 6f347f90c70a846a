"""Decides what becomes of a request of OpenAI's clients, at both doors: in which thread it is kept, or why nowhere."""

from dataclasses import replace

from recollect.api.auth.whose import Whose
from recollect.api.openai.identity import is_chore
from recollect.api.openai.memory_fields import MemoryHeaders
from recollect.api.openai.messages import ClientMessages
from recollect.graph.client_chat import ClientChat, Unkept
from recollect.graph.derived_thread.finder import ThreadFinder
from recollect.graph.resources import Services
from recollect.graph.running_turn import TurnRequest
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope


@frozen
class Keeping:
    """The thread that keeps a request, or why nothing keeps it. `is_derived`: the history has found the thread."""

    thread_id: str | None
    unkept: Unkept | None = None
    is_derived: bool = False

    def applied_to(self, request: TurnRequest) -> TurnRequest:
        """Return the user's `request`, which names no thread, as a turn of the thread, or of none."""
        chat = replace(request.chat or ClientChat(), unkept=self.unkept, is_derived=self.is_derived)
        if self.unkept is None:
            return replace(request, scope=Scope(request.scope.user_id, self.thread_id), chat=chat)
        # There is no thread to search or to show, and a front end's own chore needs no memory.
        unkept = {**request.options, "scope": "user", "window": 0}
        options = {**unkept, "enabled": False} if self.unkept == "chore" else unkept
        return replace(request, turn_id=None, options=options, chat=chat)


async def keeping_of(
    services: Services,
    whose: Whose,
    messages: ClientMessages,
    headers: MemoryHeaders,
    *,
    thread_id: str | None,
    stores: bool = True,
) -> Keeping:
    """Return where the request is kept: in `thread_id`, or where none is named, in the one that its history finds.

    `stores` False: the client wants nothing kept.
    """
    if is_chore(messages, headers, services):
        return Keeping(None, "chore")
    if not stores:
        return Keeping(None, "store_false")
    if thread_id is not None:
        return Keeping(thread_id)
    if not services.derives_threads:
        return Keeping(None, "no_thread")
    finder = ThreadFinder(services.memory, whose.user_id, messages.history, messages.message, whose.agent_id)
    return Keeping(await finder.find(), is_derived=True)
