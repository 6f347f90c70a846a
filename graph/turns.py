"""Runs turns: each in its own owned task, so that a client who goes away costs nothing of it."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any
from uuid import uuid4

from graph.client_chat import ClientChat, Placed
from graph.context import LiveContext
from graph.history import Known, align
from graph.open_rounds import OpenRounds
from graph.past import read_past
from graph.resources import Services
from graph.running_turn import RunningTurn, TurnRequest
from graph.state import TurnInput
from graph.workflow import graph
from memory.errors import ModelUnavailable, RecollectError, UserErased
from memory.fences import Fence
from memory.memory import check_same_turn
from memory.regenerating import is_without_memory
from memory.scope import Scope
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
        self._rounds = OpenRounds()
        services.memory.fences.listeners.append(self.end_erased)

    def start(self, request: TurnRequest) -> RunningTurn:
        """Begin the turn, or join it where it is running already.

        Raises:
            TurnConflict: the same turn_id is running for another thread or message.
        """
        turn_id = request.turn_id or str(uuid4())
        key = request.scope.user_id, turn_id
        running = self._running.get(key)
        # What has just been answered is not answered anew by joining it.
        if running is not None and not (running.is_over if request.regenerate else running.has_failed):
            running.check_repeat(request)
            return running
        running = RunningTurn(request, turn_id)
        self._running[key] = running
        self._own(self._run(running), name=TURN)
        return running

    def end_erased(self, scope: Scope) -> None:
        """The scope is being erased: its accepted turns end now. What their graphs write later, the fences refuse."""
        for running in list(self._running.values()):
            if running.is_accepted and running.is_of(scope):
                running.failed(UserErased())
        self._rounds.forget(scope)

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
        observer, key = self._memory.observer, (running.request.scope.user_id, running.turn_id)
        try:
            with observer.turn(running.request.scope.user_id, running.turn_id):
                try:
                    await self._guard(running, self._answer(running))
                finally:
                    observer.turn_ended(running.failure)
        finally:
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

        It lines up before anything is read, so that turns run in the order in which they came. What has no thread has
        nothing to wait for.
        """
        if running.request.scope.thread_id is None:
            fence = await self._memory.fences.open(running.request.scope)
            message = running.message(created_at=self._memory.clock())
            return await self._begin(running, message, None, fence=fence)
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
            fence = await self._memory.fences.open(running.request.scope)
            known = await self._place(running)
            replaced = await self._replaced(running)
            if replaced is not None:
                message = replaced.message
            else:
                message = running.message(created_at=self._memory.clock())
                if running.request.chat is None or not running.request.chat.stores_late:
                    message = await self._memory.accept(message, fence=fence)
            await self._begin(running, message, replaced, known, fence)

    async def _begin(
        self,
        running: RunningTurn,
        message: Message,
        replaced: Turn | None,
        known: Known | None = None,
        fence: Fence | None = None,
    ) -> None:
        """Begin the graph's run, and wait until there is a reply."""
        running.accepted()
        walk = self._walk(running, message, replaced, known, fence)
        self._own(self._guard(running, walk), name="turn-graph")
        await running.end()

    async def _place(self, running: RunningTurn) -> Known | None:
        """What of a chat client's history is stored; the turn becomes the stored one that it asks for again."""
        request = running.request
        if request.chat is None:
            return None
        past = await read_past(self._memory.documents.conversations, request.scope, request.chat.history)
        if request.turn_id is None and (turn_id := past.unfinished(request.message)) is not None:
            running.means(turn_id, regenerate=False)
        elif past.is_asked_again(request.message):
            running.means(past.turns[-1].user.turn_id, regenerate=True)
            return past.known(but_last=True)
        return past.known()

    async def _replaced(self, running: RunningTurn) -> Turn | None:
        """The finished turn that is to be answered anew, if that is asked for.

        Raises:
            NotFound, TurnConflict, NotLastTurn: see `Memory.last_turn`.
        """
        if not running.request.regenerate:
            return None
        last = await self._memory.last_turn(running.request.scope, running.turn_id)
        return last if last.reply is not None else None

    async def _walk(
        self,
        running: RunningTurn,
        message: Message,
        replaced: Turn | None,
        known: Known | None,
        fence: Fence | None,
    ) -> None:
        """Run the graph for an accepted turn, past its reply to the end of its update."""
        options = running.request.options
        if replaced is not None and is_without_memory(replaced):
            options = {**options, "enabled": False}
        given: TurnInput = {
            "user_id": message.user_id,
            "thread_id": message.thread_id,
            "turn_id": message.turn_id,
            "message": message.content,
            "metadata": dict(message.metadata),
            "memory": options,
        }
        # LangGraph types ainvoke only in part.
        await graph.ainvoke(  # pyright: ignore[reportUnknownMemberType]
            given,
            context=LiveContext(
                self._services,
                running,
                message,
                regenerates=replaced is not None,
                placed=_placed(running.request.chat, known),
                rounds=self._rounds,
                fence=fence,
            ),
        )

    async def _finished(self, running: RunningTurn) -> Turn | None:
        """The turn as it is stored if it has its reply already, and is to keep it. Only a named turn can have one.

        Raises:
            TurnConflict: the turn_id belongs to another thread or message.
        """
        request = running.request
        if request.turn_id is None or request.regenerate:
            return None
        stored = await self._memory.turn(user_id=request.scope.user_id, turn_id=running.turn_id)
        if stored is None:
            return None
        check_same_turn(stored.message, thread_id=request.scope.thread, content=request.message)
        return stored if stored.reply is not None else None


def _placed(chat: ClientChat | None, known: Known | None) -> Placed | None:
    return None if chat is None else Placed(chat, known or align(chat.history, ()))
