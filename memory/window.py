"""The window: the last turns of a thread, given to the model verbatim, oldest first, within a token budget."""

from collections.abc import Iterable, Sequence

from memory.documents import Conversations
from memory.scope import Scope
from memory.tokens import fit_last
from memory.turn import Exchange, Message


async def read_window(
    conversations: Conversations, scope: Scope, *, turns: int, tokens: int, before: int | None = None
) -> list[Exchange]:
    """The thread's last `turns` finished turns that fit into `tokens`, oldest first.

    Turns go out whole, oldest first: half an exchange would mislead more than it helps. `before` is the position of the
    turn that is being answered, where it has one.
    """
    if turns == 0:
        return []
    return fit_window(await conversations.recent(scope, limit=turns, before=before), tokens)


def fit_window(exchanges: Sequence[Exchange], tokens: int) -> list[Exchange]:
    """The newest exchanges that fit into `tokens`, oldest first."""
    kept = fit_last([exchange.user.content + exchange.assistant.content for exchange in exchanges], tokens)
    return list(exchanges[len(exchanges) - kept :])


def format_messages(messages: Iterable[Message]) -> str:
    """Messages as plain text: one paragraph each, "role: content" or "name: content"."""
    return "\n".join(f"{message.name or message.role}: {message.content}" for message in messages)
