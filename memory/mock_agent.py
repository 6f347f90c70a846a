"""A memory agent that logs its calls and stores nothing: for trying code without a memory."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from typing_extensions import override

from recollect.memory.agents.agent import Agent
from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.recall.turn_options import TurnOptions
from recollect.memory.values.decision import FactScope
from recollect.memory.values.fact import FactStatus
from recollect.memory.values.mem_config import Scoped

if TYPE_CHECKING:
    from langchain_core.documents import Document

logger = logging.getLogger(__name__)


class MockMemoryAgent(Agent):
    """The methods of a `MemoryAgent`. Each logs its name alone, and answers as an empty memory would."""

    @override
    async def __aenter__(self) -> Self:
        """Open nothing."""
        return self

    @override
    async def aclose(self) -> None:
        """Close nothing."""

    @override
    async def chat(
        self,
        message: str,
        *,
        turn_id: str | None = None,
        model: str | None = None,
        instructions: str | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return no turn."""
        self._log("chat")
        return {}

    @override
    async def context(self, message: str, **memory: Unpack[TurnOptions]) -> dict[str, Any]:
        """Return an empty context."""
        self._log("context")
        return {
            **{"block": "", "facts": {}, "notes": [], "summary": None, "window": [], "hits": [], "degraded": []},
            **{"tokens": {"block": 0, "window": 0}, "timings_ms": {"recall": 0.0, "total": 0.0}},
        }

    @override
    async def store_message(
        self,
        role: Literal["user", "assistant"],
        content: str,
        *,
        turn_id: str | None = None,
        name: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Store nothing."""
        self._log("store_message")
        return {}

    @override
    async def stats(self, *, scope: Literal["thread", "user"] = "user") -> dict[str, int]:
        """Return no counts."""
        self._log("stats")
        return {}

    @override
    async def clear(self) -> dict[str, int]:
        """Delete nothing."""
        self._log("clear")
        return {}

    @override
    async def fetch_short_term(self) -> list[dict[str, Any]]:
        """Return no messages."""
        self._log("fetch_short_term")
        return []

    @override
    async def fetch_long_term(
        self,
        query: str,
        k: int = 5,
        *,
        scope: Scoped | None = None,
        beyond_window: bool = False,
        filter: Mapping[str, Any] | None = None,
    ) -> "list[Document]":
        """Return no documents."""
        self._log("fetch_long_term")
        return []

    @override
    async def get_user_facts(self) -> dict[str, str]:
        """Return no facts."""
        self._log("get_user_facts")
        return {}

    @override
    async def formatted_history(self) -> str:
        """Return an empty text."""
        self._log("formatted_history")
        return ""

    @override
    async def update_facts_and_embeddings(
        self, user_message: str, assistant_response: str, turn_id: str | None = None
    ) -> dict[str, Any]:
        """Store and learn nothing."""
        self._log("update_facts_and_embeddings")
        return {}

    @override
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
        """Store nothing."""
        self._log("exchange")
        return {}

    @override
    async def exchanges(self, exchanges: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Store nothing."""
        self._log("exchanges")
        return {"items": []}

    @override
    async def list_facts(
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
        """Return an empty page."""
        self._log("list_facts")
        return {"items": [], "facts": {}, "next_cursor": None}

    @override
    async def put_fact(self, key: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        """Store nothing."""
        self._log("put_fact")
        return {}

    @override
    async def patch_fact(self, fact_id: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        """Change nothing."""
        self._log("patch_fact")
        return {}

    @override
    async def forget_fact(self, fact_id: str) -> None:
        """Forget nothing."""
        self._log("forget_fact")

    @override
    async def fact_history(self, fact_id: str) -> list[dict[str, Any]]:
        """Return no versions."""
        self._log("fact_history")
        return []

    @override
    async def approve_fact(self, fact_id: str) -> dict[str, Any]:
        """Approve nothing."""
        self._log("approve_fact")
        return {}

    @override
    async def reject_fact(self, fact_id: str) -> dict[str, Any]:
        """Reject nothing."""
        self._log("reject_fact")
        return {}

    @override
    async def undo(self, turn_id: str, *, force: bool = False) -> dict[str, Any]:
        """Undo nothing."""
        self._log("undo")
        return {"turn_id": turn_id, "undone": [], "left": []}

    @override
    async def learn(self, turn_id: str, *, model: str | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Learn nothing."""
        self._log("learn")
        return {}

    @override
    async def apply_learning(self, turn_id: str, *, preview_id: str) -> dict[str, Any]:
        """Learn nothing."""
        self._log("apply_learning")
        return {}

    @override
    async def add_text(self, text: str, *, scope: Literal["thread", "user"] = "user") -> dict[str, Any]:
        """Learn nothing."""
        self._log("add_text")
        return {}

    def _log(self, call: str) -> None:
        logger.info("mock memory call", extra={"action": "mock_memory", "call": call})
