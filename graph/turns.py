"""Runs turns: each in its own owned task, so that a client who goes away costs nothing of it."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any
from uuid import uuid4

from graph.context import LiveContext
from graph.resources import Services
from graph.running_turn import RunningTurn, TurnRequest
from graph.state import TurnInput
from graph.workflow import graph
from memory.errors import ModelUnavailable, RecollectError
from memory.memory import check_same_turn
from memory.turn import Message, Turn

logger = logging.getLogger(__name__)

TURN = "turn"
"""The name of the task that owns a turn until its reply."""


class Turns:
    """Starts turns and owns their tasks. A repeat joins the running turn, or is answered from the store at once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._memory = services.memory
        self._running: dict[tuple[str, str], RunningTurn] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, request: TurnRequest) -> RunningTurn:
        """Begin the turn, or join it where it is running already.

        Raises:
            TurnConflict: the same turn_id is running for another thread or message.
        """
        turn_id = request.turn_id or str(uuid4())
        key = request.scope.user_id, turn_id
        running = self._running.get(key)
        if running is not None and not running.has_failed:
            running.check_repeat(request)
            return running
        running = RunningTurn(request, turn_id)
        self._running[key] = running
        self._own(self._run(running), name=TURN)
        return running

    async def drain(self, seconds: float) -> None:
        """Wait for running turns, then abort what is left: accepted turns without a reply are repeatable.

        A graph past its reply only waits for its update, which the updater drains: it need not be waited for.
        """
        turns = {task for task in self._tasks if task.get_name() == TURN}
        late = set[asyncio.Task[None]]()
        if turns:
            logger.info("draining turns", extra={"action": "turns_draining", "turns": len(turns)})
            _, late = await asyncio.wait(turns, timeout=seconds)
        if late:
            logger.warning("turns aborted", extra={"action": "turns_aborted", "turns": len(late)})
        left = set(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _own(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, running: RunningTurn) -> None:
        try:
            await self._guard(running, self._answer(running))
        finally:
            key = running.request.scope.user_id, running.turn_id
            if self._running.get(key) is running:
                # A repeat of a turn that has just failed may have taken its place already.
                del self._running[key]

    async def _guard(self, running: RunningTurn, work: Coroutine[Any, Any, None]) -> None:
        """Do part of a turn's work; whatever it raises reaches the turn's caller as an error of ours."""
        try:
            await work
        except RecollectError as error:
            running.failed(error)
        except asyncio.CancelledError:
            running.failed(ModelUnavailable("The service is stopping; send the request again with the same turn_id."))
            raise
        except Exception:
            # The boundary of a turn: its caller gets a plain error, the log gets the rest.
            logger.exception("turn broke", extra={"action": "turn_broke", "turn_id": running.turn_id})
            running.failed(RecollectError())

    async def _answer(self, running: RunningTurn) -> None:
        """Answer a finished turn at once, else run it when the thread is free.

        It lines up before anything is read, so that turns run in the order in which they came.
        """
        looking = asyncio.create_task(self._finished(running), name="turn-look")
        holding = asyncio.create_task(self._hold(running, looking), name="turn-hold")
        try:
            stored = await looking
            if stored is None:
                await holding
            else:
                running.saved(stored)
        finally:
            for task in (looking, holding):
                task.cancel()
            await asyncio.gather(looking, holding, return_exceptions=True)

    async def _hold(self, running: RunningTurn, looking: "asyncio.Task[Turn | None]") -> None:
        """Hold the thread from the turn's acceptance to its reply; the update goes on behind it."""
        waits = self._memory.config.thread_wait_seconds
        async with self._memory.documents.queue.turn(running.request.scope, wait_seconds=waits):
            if await looking is not None:
                return
            # Another process may have finished it while this one waited for the thread.
            stored = await self._finished(running)
            if stored is not None:
                running.saved(stored)
                return
            message = await self._memory.accept(running.message(created_at=self._memory.clock()))
            running.accepted()
            self._own(self._guard(running, self._walk(running, message)), name="turn-graph")
            await running.end()

    async def _walk(self, running: RunningTurn, message: Message) -> None:
        """Run the graph for an accepted turn, past its reply to the end of its update."""
        given: TurnInput = {
            "user_id": message.user_id,
            "thread_id": message.thread_id,
            "turn_id": message.turn_id,
            "message": message.content,
            "metadata": dict(message.metadata),
            "memory": running.request.options,
        }
        # LangGraph types ainvoke only in part.
        await graph.ainvoke(  # pyright: ignore[reportUnknownMemberType]
            given, context=LiveContext(self._services, running, message)
        )

    async def _finished(self, running: RunningTurn) -> Turn | None:
        """The turn as it is stored if it has its reply already. Only a named turn can have one.

        Raises:
            TurnConflict: the turn_id belongs to another thread or message.
        """
        request = running.request
        if request.turn_id is None:
            return None
        stored = await self._memory.turn(user_id=request.scope.user_id, turn_id=running.turn_id)
        if stored is None:
            return None
        check_same_turn(stored.message, thread_id=request.scope.thread, content=request.message)
        return stored if stored.reply is not None else None
