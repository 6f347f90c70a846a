"""Opens the services of the graph's nodes once: in the service's lifespan, or in the first node that needs them.

A composition root: with `api/`, the only part of the graph that reads the settings.
"""

import asyncio
import importlib
import inspect
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from recollect.graph.studio import foreign_holders, is_running, mark_folder
from recollect.memory.memory import Memory
from recollect.memory.opening.opening import open_memory
from recollect.memory.ports.observing import UNOBSERVED, Observer
from recollect.memory.values.errors import ConfigurationError
from recollect.memory.values.frozen import frozen
from recollect.memory.values.given import load_named
from recollect.settings import Settings, current_settings, is_traced_by_langsmith

logger = logging.getLogger(__name__)


@frozen
class Services:
    """The open memory and the agent's configuration.

    `agent` is None for the built-in agent node, else an async function, an async generator or a compiled graph;
    `agent_name` is the reply's `model` where the agent names none. `forwards_keys`: a chat client's bearer token is the
    chat model's key. `default_user` is the user of chat clients that name none; `trusts_frontends`: headers of chat
    front ends are read. `derives_threads`: the thread of a chat client that names none is found by its history.
    `allows_choice`: callers of the service's own routes may choose the model. `is_traced`: LangSmith traces this
    process.
    """

    memory: Memory
    agent: Any | None
    agent_name: str
    instructions: str
    offers_tools: bool
    forwards_keys: bool = False
    default_user: str | None = None
    trusts_frontends: bool = False
    derives_threads: bool = False
    allows_choice: bool = False
    is_traced: bool = False


DEFAULT_INSTRUCTIONS = (
    "You are a helpful assistant with a long-term memory. Answer in the user's language. Use what you remember where "
    "it helps, and say so when you do not know something about the user instead of guessing."
)


@asynccontextmanager
async def open_services(
    settings: Settings, *, url: str | None = None, token: str | None = None, observer: Observer = UNOBSERVED
) -> AsyncGenerator[Services]:
    """Open the memory and load the agent that the settings name; `observer` receives the memory's events.

    `url` is the service's address and `token` its administrator's, for the lock file of DATA_DIR.

    Raises:
        ConfigurationError: a setting is wrong; nothing stays open.
    """
    agent = await asyncio.to_thread(load_agent, settings.agent) if settings.agent else None
    instructions = await asyncio.to_thread(_instructions, settings)
    foreign = foreign_holders(settings.data_dir, token)
    async with open_memory(settings.memory(), url=url, token=token, observer=observer, foreign=foreign) as memory:
        if is_running():
            await asyncio.to_thread(mark_folder, settings.data_dir)
        if memory.chat.name == "offline":
            logger.warning(
                "no model is configured: the built-in offline model answers by plain rules; set OPENAI_API_KEY, or "
                "OPENAI_BASE_URL and CHAT_MODEL, for a real one",
                extra={"action": "offline_model"},
            )
        yield Services(
            memory,
            agent,
            settings.agent or "",
            instructions,
            settings.agent_tools,
            settings.forward_api_key,
            settings.default_user,
            settings.trust_frontend_headers,
            settings.derives_threads,
            settings.allow_model_choice,
            is_traced_by_langsmith(),
        )


def _instructions(settings: Settings) -> str:
    if settings.system_prompt_file is None:
        return DEFAULT_INSTRUCTIONS
    try:
        return settings.system_prompt_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            f"SYSTEM_PROMPT_FILE cannot be read ({type(error).__name__}); name a UTF-8 text file."
        ) from error


def load_agent(path: str) -> Any:
    """Load the agent node at `package.module:attribute`: an async function or generator, or a compiled graph.

    It reads from disk, so an event loop calls it in a thread.

    Raises:
        ConfigurationError: there is no such module or attribute, or it cannot be called as a node.
    """
    importlib.import_module("recollect.graph.own_agent.calling")  # which calls it, and needs LangGraph
    agent = load_named("AGENT", path)
    if not (hasattr(agent, "ainvoke") or inspect.iscoroutinefunction(agent) or inspect.isasyncgenfunction(agent)):
        raise ConfigurationError(
            "AGENT must name an async function (state) -> dict, an async generator (state), or a compiled graph."
        )
    return agent


class SharedServices:
    """One lazily opened set of services for the whole process, behind a lock.

    The FastAPI lifespan opens and closes it; under `langgraph dev` that lifespan runs on the nodes' own loop. A node
    that runs before any lifespan did opens it itself.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._closer = AsyncExitStack()
        self._services: Services | None = None

    async def get(self) -> Services:
        """Return the services, opened from the environment's settings if they are not open yet."""
        return await self.open(None)

    async def open(
        self,
        settings: Settings | None,
        *,
        url: str | None = None,
        token: str | None = None,
        observer: Observer = UNOBSERVED,
    ) -> Services:
        """Open the services with `settings` (None: the environment's) unless they are open, and return them."""
        # Several nodes may ask at once: the lock lets one of them open, and the others wait for it.
        async with self._lock:
            if self._services is None:
                chosen = settings or await asyncio.to_thread(current_settings)
                opening = open_services(chosen, url=url, token=token, observer=observer)
                self._services = await self._closer.enter_async_context(opening)
            return self._services

    async def close(self) -> None:
        """Close the services."""
        async with self._lock:
            self._services = None
            await self._closer.aclose()


shared = SharedServices()
