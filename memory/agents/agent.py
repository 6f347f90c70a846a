"""Names the verbs of the memory of one thread, whether it lies in this process or is a service's."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.recall.turn_options import TurnOptions
from recollect.memory.values.decision import FactScope
from recollect.memory.values.fact import FactStatus
from recollect.memory.values.mem_config import Scoped

if TYPE_CHECKING:
    from langchain_core.documents import Document


class Agent(ABC):
    """The memory of one user's thread.

    Raises:
        InvalidRequest: from any call, where an argument is not valid.
        StoreUnavailable, ModelUnavailable: from any call, where a backend, or the service, is down.
    """

    @abstractmethod
    async def __aenter__(self) -> Self:
        """Open the memory now."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the memory."""
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """Close the memory once no other agent uses it, after its pending updates. A later call opens it again."""
        ...

    @abstractmethod
    async def chat(
        self,
        message: str,
        *,
        turn_id: str | None = None,
        model: str | None = None,
        instructions: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Answer a message as a turn of the thread, and learn from it; return the turn as the service shows it.

        It calls the chat model once, without tools, and waits for the update as `update_facts_and_embeddings` does. A
        repeated `turn_id` returns the stored turn. For this turn alone, `model` is another model of the provider,
        `instructions` are added to the agent's own, and `parameters` are the model's (`temperature`, `max_tokens`, …).

        Raises:
            InvalidRequest: the text or the `turn_id` cannot be stored, or what is chosen for the model is not valid.
            TurnConflict: the `turn_id` belongs to another thread or message.
            ModelUnavailable: there is no answer; the turn is repeatable with its `turn_id`.
        """
        ...

    @abstractmethod
    async def context(self, message: str, **memory: Unpack[TurnOptions]) -> dict[str, Any]:
        """Return what a turn with this message would be given, for an agent of your own; nothing is stored.

        `block` is the text for the system message ("" where nothing is known); `facts`, `notes`, `summary`, `window`
        and `hits` are its parts, `degraded` names those that could not be fetched. `memory` are the options of a turn.

        Raises:
            InvalidRequest: the message, or an option, is not valid.
        """
        ...

    @abstractmethod
    async def store_message(
        self,
        role: Literal["user", "assistant"],
        content: str,
        *,
        turn_id: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Store one message of the thread, and return it as it was stored.

        A message of role "user" begins a turn (`turn_id` names it). One of role "assistant" answers the thread's last
        message, which completes the turn: from then on search finds it, and it is learned from in the background.

        Raises:
            InvalidRequest: the text cannot be stored, or an assistant's message has nothing to answer.
            TurnConflict: the `turn_id` belongs to another thread or message.
        """
        ...

    @abstractmethod
    async def stats(self, *, scope: Literal["thread", "user"] = "user") -> dict[str, int]:
        """Count what the user, or this thread, has: `turns`, `messages`, `facts`, `points` and so on."""
        ...

    @abstractmethod
    async def clear(self) -> dict[str, int]:
        """Delete the thread: messages, summary and working memory; the user's facts stay. Return the counts by kind."""
        ...

    @abstractmethod
    async def fetch_short_term(self) -> list[dict[str, Any]]:
        """Return the messages of the thread's last turns, oldest first.

        They are those of at most `cfg.window` turns within `cfg.window_tokens` tokens.
        """
        ...

    @abstractmethod
    async def fetch_long_term(
        self,
        query: str,
        k: int = 5,
        *,
        scope: Scoped | None = None,
        beyond_window: bool = False,
        filter: Mapping[str, Any] | None = None,
    ) -> "list[Document]":
        """Return the `k` (0-50) messages that fit `query` best, best first.

        `scope` is "thread", "user" (all of the user's), "auto" (all, the thread's first) or None: `cfg.scope`.
        With `filter`, only those that fulfil it, such as `{"project": "apollo", "priority": {"gte": 2}}`.
        A document's metadata are the hit's fields: `score`, `similarity` in [-1, 1], `role`, `turn_id`, `created_at`, …
        With `beyond_window`, messages that `fetch_short_term` shows are left out.
        """
        ...

    @abstractmethod
    async def get_user_facts(self) -> dict[str, str]:
        """Return the user-fact dict: key to value of what is known."""
        ...

    @abstractmethod
    async def formatted_history(self) -> str:
        """Return the window as text, one "role: content" a message, oldest first."""
        ...

    @abstractmethod
    async def update_facts_and_embeddings(
        self, user_message: str, assistant_response: str, turn_id: str | None = None
    ) -> dict[str, Any]:
        """Store one exchange and learn from it; return the turn as `GET /api/turns/{turn_id}` shows it.

        It stores no message twice: a repeated `turn_id` is the same turn, and without one, a pair equal to the thread's
        newest is. It waits for the update up to `cfg.memory_wait_seconds`; what an outage interrupts is retried later.

        Raises:
            InvalidRequest: a text or the `turn_id` cannot be stored.
            TurnConflict: the `turn_id` belongs to another thread or message.
        """
        ...

    @abstractmethod
    async def exchange(
        self,
        user: str | Mapping[str, Any],
        assistant: str | Mapping[str, Any] | None,
        *,
        turn_id: str | None = None,
        messages: Sequence[Mapping[str, Any]] = (),
        learn: bool = True,
        wait_for_memory: bool = False,
    ) -> dict[str, Any]:
        """Store what your own agent and the user said as a turn, and return it as `GET /api/turns/{turn_id}` shows it.

        `user` and `assistant` (None: no reply) are texts, or mappings of `content`, `name`, `created_at`, `metadata`;
        `messages` further ones of the turn in their order, each with its `role`: only the user's are evidence for
        facts. `learn` False: it is stored and indexed, and teaches nothing. A repeated `turn_id` is the stored turn.

        Raises:
            InvalidRequest: names each field that cannot be stored.
            TurnConflict: the `turn_id` belongs to another thread or exchange.
        """
        ...

    @abstractmethod
    async def exchanges(self, exchanges: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Store 1 to 100 exchanges in their order, checked whole before; return their turns as `items`.

        Each is a mapping of what `exchange` takes: `user`, `assistant`, `turn_id`, `messages`, `learn`,
        `wait_for_memory`.

        Raises:
            InvalidRequest: names each field that cannot be stored (`1.user.content`); nothing is stored.
            TurnConflict: a `turn_id` belongs to another thread or exchange; those before it are stored.
        """
        ...

    async def update(self, user_message: str, assistant_response: str) -> dict[str, Any]:
        """Deprecated: call `update_facts_and_embeddings`."""
        warn_of_update()
        return await self.update_facts_and_embeddings(user_message, assistant_response)

    @abstractmethod
    async def list_facts(  # noqa: PLR0913 - a list's conditions are its parameters
        self,
        *,
        tag: str | None = None,
        scope: FactScope | None = None,
        as_of: datetime | None = None,
        status: FactStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
        filter: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the user's and this thread's facts that hold now, or at `as_of` (UTC).

        The answer has `items`, `facts` and `next_cursor`. `status` "proposed" lists facts that wait for approval.
        `facts` is the whole user-fact dict, on every page. With `filter`, the items are those that fulfil it, such as
        `{"project": "apollo"}`, and the answer says in `filter` whether they are `complete`.
        """
        ...

    @abstractmethod
    async def put_fact(self, key: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        """Write the fact under a key; no model may change it. `scope="thread"` means this thread.

        Raises:
            InvalidRequest: names each field that is missing or wrong.
        """
        ...

    @abstractmethod
    async def patch_fact(self, fact_id: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        """Change some fields of a fact; its history keeps the earlier version.

        Raises:
            InvalidRequest: names each field that is wrong.
            NotFound: there is no such fact of this user.
            FactConflict: it has ended, or another fact is stored under its key.
        """
        ...

    @abstractmethod
    async def forget_fact(self, fact_id: str) -> None:
        """Remove a fact's text everywhere but from the messages; a tombstone stays. Raise NotFound if there is none."""
        ...

    @abstractmethod
    async def fact_history(self, fact_id: str) -> list[dict[str, Any]]:
        """Return all versions of the fact, oldest first, each with what `ended` it. Raise NotFound if there is none."""
        ...

    @abstractmethod
    async def approve_fact(self, fact_id: str) -> dict[str, Any]:
        """Make a proposed fact active. Raise NotFound, and FactConflict where it is not proposed."""
        ...

    @abstractmethod
    async def reject_fact(self, fact_id: str) -> dict[str, Any]:
        """Reject a proposed fact. Raise NotFound, and FactConflict where it is not proposed."""
        ...

    @abstractmethod
    async def undo(self, turn_id: str, *, force: bool = False) -> dict[str, Any]:
        """Take back all that a turn taught; return what was `undone`, and with `force` what was `left` as it is.

        Raises:
            NotFound: there is no such turn of this user.
            UpdatePending: the turn is still being learned from.
            FactsChanged: facts have changed since, and without `force` nothing was done.
        """
        ...

    @abstractmethod
    async def learn(self, turn_id: str, *, model: str | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Learn from a turn again, by `model` if named; with `dry_run` only return what would change.

        The `preview_id` of that answer can be applied for 15 minutes (`apply_learning`).

        Raises:
            NotFound: there is no such turn of this user.
            UpdatePending: the turn is still being learned from.
        """
        ...

    @abstractmethod
    async def apply_learning(self, turn_id: str, *, preview_id: str) -> dict[str, Any]:
        """Do exactly what `learn(…, dry_run=True)` has shown, without asking a model again.

        Raises:
            NotFound: there is no such turn of this user, or no such preview of it.
            PreviewOutdated: the preview has expired, or would do something else now; nothing was done.
            UpdatePending: the turn is still being learned from.
        """
        ...

    @abstractmethod
    async def add_text(self, text: str, *, scope: Literal["thread", "user"] = "user") -> dict[str, Any]:
        """Learn from the user's own words at once, without a turn; return `model`, `changes` and `refused`.

        With `scope="thread"`, facts may also be learned for this thread alone.

        Raises:
            InvalidRequest: the text has not 1 to `max_message_characters` characters, or no store can hold it.
            UpdatePending: the user's turns are still being learned from.
            UnreadableAnswer: nothing was learned.
        """
        ...


def warn_of_update() -> None:
    """Tell the caller's caller that its `update` is deprecated."""
    warnings.warn("update() is deprecated; call update_facts_and_embeddings()", DeprecationWarning, stacklevel=3)
