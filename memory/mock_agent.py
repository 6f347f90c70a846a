"""A memory agent that logs its calls and stores nothing: for trying code without a memory."""

import logging
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, Unpack

from langchain_core.documents import Document

from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.recall.turn_options import TurnOptions
from recollect.memory.values.decision import FactScope
from recollect.memory.values.fact import FactStatus
from recollect.memory.values.mem_config import Scoped

logger = logging.getLogger(__name__)


class MockMemoryAgent:
    """The methods of a `MemoryAgent`. Each logs its name alone, and answers as an empty memory would."""

    async def __aenter__(self) -> Self:
        """Open nothing."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close nothing."""

    async def aclose(self) -> None:
        """Close nothing."""

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

    async def context(self, message: str, **memory: Unpack[TurnOptions]) -> dict[str, Any]:
        """Return an empty context."""
        self._log("context")
        return {
            **{"block": "", "facts": {}, "notes": [], "summary": None, "window": [], "hits": [], "degraded": []},
            **{"tokens": {"block": 0, "window": 0}, "timings_ms": {"recall": 0.0, "total": 0.0}},
        }

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

    async def stats(self, *, scope: Literal["thread", "user"] = "user") -> dict[str, int]:
        """Return no counts."""
        self._log("stats")
        return {}

    async def clear(self) -> dict[str, int]:
        """Delete nothing."""
        self._log("clear")
        return {}

    async def fetch_short_term(self) -> list[dict[str, Any]]:
        """Return no messages."""
        self._log("fetch_short_term")
        return []

    async def fetch_long_term(
        self,
        query: str,
        k: int = 5,
        *,
        scope: Scoped | None = None,
        beyond_window: bool = False,
        filter: Mapping[str, Any] | None = None,
    ) -> list[Document]:
        """Return no documents."""
        self._log("fetch_long_term")
        return []

    async def get_user_facts(self) -> dict[str, str]:
        """Return no facts."""
        self._log("get_user_facts")
        return {}

    async def formatted_history(self) -> str:
        """Return an empty text."""
        self._log("formatted_history")
        return ""

    async def update_facts_and_embeddings(
        self, user_message: str, assistant_response: str, turn_id: str | None = None
    ) -> dict[str, Any]:
        """Store and learn nothing."""
        self._log("update_facts_and_embeddings")
        return {}

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

    async def exchanges(self, exchanges: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Store nothing."""
        self._log("exchanges")
        return {"items": []}

    async def update(self, user_message: str, assistant_response: str) -> dict[str, Any]:
        """Deprecated: call `update_facts_and_embeddings`."""
        warnings.warn("update() is deprecated; call update_facts_and_embeddings()", DeprecationWarning, stacklevel=2)
        return await self.update_facts_and_embeddings(user_message, assistant_response)

    async def list_facts(
        self,
        *,
        tag: str | None = None,
        scope: FactScope | None = None,
        as_of: datetime | None = None,
        status: FactStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> dict[str, Any]:
        """Return an empty page."""
        self._log("list_facts")
        return {"items": [], "facts": {}, "next_cursor": None}

    async def put_fact(self, key: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        """Store nothing."""
        self._log("put_fact")
        return {}

    async def patch_fact(self, fact_id: str, **edit: Unpack[FactEdit]) -> dict[str, Any]:
        """Change nothing."""
        self._log("patch_fact")
        return {}

    async def forget_fact(self, fact_id: str) -> None:
        """Forget nothing."""
        self._log("forget_fact")

    async def fact_history(self, fact_id: str) -> list[dict[str, Any]]:
        """Return no versions."""
        self._log("fact_history")
        return []

    async def approve_fact(self, fact_id: str) -> dict[str, Any]:
        """Approve nothing."""
        self._log("approve_fact")
        return {}

    async def reject_fact(self, fact_id: str) -> dict[str, Any]:
        """Reject nothing."""
        self._log("reject_fact")
        return {}

    async def undo(self, turn_id: str, *, force: bool = False) -> dict[str, Any]:
        """Undo nothing."""
        self._log("undo")
        return {"turn_id": turn_id, "undone": [], "left": []}

    async def learn(self, turn_id: str, *, model: str | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Learn nothing."""
        self._log("learn")
        return {}

    async def apply_learning(self, turn_id: str, *, preview_id: str) -> dict[str, Any]:
        """Learn nothing."""
        self._log("apply_learning")
        return {}

    async def add_text(self, text: str, *, scope: Literal["thread", "user"] = "user") -> dict[str, Any]:
        """Learn nothing."""
        self._log("add_text")
        return {}

    def _log(self, call: str) -> None:
        logger.info("mock memory call", extra={"action": "mock_memory", "call": call})
