"""Reads the window: the last turns of a thread, verbatim, oldest first, within a token budget."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from recollect.memory.ports.conversations import Conversations
from recollect.memory.values.scope import Scope
from recollect.memory.values.text import cut
from recollect.memory.values.tokens import CHARACTERS_PER_TOKEN, fit_last
from recollect.memory.values.turn import Exchange, Message

LEAST_CUT_TOKENS = 50
"""With fewer tokens a turn that is too long is left out instead of cut: its beginning would say too little."""

PAGE, MOST_PAGES = 50, 10
"""How many turns of a thread are read at once, and how often, to find those of one agent."""

ReadWindow = Callable[[], Awaitable[list[Exchange]]]
"""Reads a turn's window."""


async def last_turns(
    conversations: Conversations, scope: Scope, *, limit: int, before: int | None = None, agent_id: str | None = None
) -> list[Exchange]:
    """Read the thread's last finished turns, at most `limit`, oldest first.

    With `before`, only turns whose messages have positions below it. With `agent_id`, only turns with the label of this
    agent, of the last 500: turns of others take no places.
    """
    if agent_id is None:
        return await conversations.recent(scope, limit=limit, before=before)
    own = list[Exchange]()
    for _ in range(MOST_PAGES):
        page = await conversations.recent(scope, limit=PAGE, before=before)
        own = [*(exchange for exchange in page if exchange.user.agent_id == agent_id), *own]
        if len(own) >= limit or len(page) < PAGE:
            break
        before = page[0].user.position
    return own[max(len(own) - limit, 0) :]


async def read_window(
    conversations: Conversations,
    scope: Scope,
    *,
    turns: int,
    tokens: int,
    before: int | None = None,
    agent_id: str | None = None,
) -> list[Exchange]:
    """Read the thread's last `turns` finished turns that fit into `tokens`, oldest first.

    The oldest turns are left out whole, because half an exchange would mislead. The newest one is cut, visibly, where
    it alone is too long. `before` is the position of the turn that is being answered, if it has one. `agent_id`: only
    turns with the label of this agent; see `last_turns`.
    """
    if turns == 0:
        return []
    return fit_window(await last_turns(conversations, scope, limit=turns, before=before, agent_id=agent_id), tokens)


def fit_window(exchanges: Sequence[Exchange], tokens: int) -> list[Exchange]:
    """Return the newest exchanges that fit into `tokens`, oldest first; cut the newest if it alone is too long."""
    kept = fit_last(["".join(message.content for message in exchange.spoken) for exchange in exchanges], tokens)
    if kept == 0 and exchanges and tokens >= LEAST_CUT_TOKENS:
        return [_cut(exchanges[-1], tokens * CHARACTERS_PER_TOKEN)]
    return list(exchanges[len(exchanges) - kept :])


def _cut(exchange: Exchange, characters: int) -> Exchange:
    """Cut the exchange to `characters`: a long reply is left at least half of them, and what the message leaves."""
    said, answered = exchange.user.content, exchange.assistant.content
    said = cut(said, characters - min(len(answered), characters // 2))
    answered = cut(answered, characters - len(said))
    return Exchange(replace(exchange.user, content=said, further=()), replace(exchange.assistant, content=answered))


def format_messages(messages: Iterable[Message]) -> str:
    """Format messages as plain text: one line each, "role: content" or "name: content"."""
    return "\n".join(f"{message.name or message.role}: {message.content}" for message in messages)
