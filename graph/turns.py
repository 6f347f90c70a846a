"""Runs turns: each in its own owned task, so that a client who leaves does not end it."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any
from uuid import uuid4

from recollect.graph.client_chat import ClientChat, Placed
from recollect.graph.context import LiveContext
from recollect.graph.derived_thread.finder import ThreadFinder
from recollect.graph.history import KnownMessage, align
from recollect.graph.open_rounds import OpenRounds
from recollect.graph.past import Past, continued, read_past, read_until
from recollect.graph.resources import Services
from recollect.graph.running_turn import RunningTurn, RunStart, TurnRequest
from recollect.graph.state import TurnInput
from recollect.graph.walk import Begun, Runs
from recollect.memory.erasure.fences import Fence
from recollect.memory.learning.turns.regenerating import is_without_memory
from recollect.memory.memory import check_same_turn
from recollect.memory.recall.recall_options import RecallOptions
from recollect.memory.recall.turn_options import read_options
from recollect.memory.values.errors import ModelUnavailable, RecollectError, UserErased
from recollect.memory.values.scope import Scope
from recollect.memory.values.turn import Turn

logger = logging.getLogger(__name__)

TURN = "turn"
"""The name of the task that owns a turn until its reply."""


class TurnRunner:
    """Starts turns and owns their tasks. A repeat joins the running turn, or is answered from the store at once."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._memory = services.memory
        self._running: dict[tuple[str, str], RunningTurn] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._rounds = OpenRounds()
        self.graph = Runs(services)
        services.memory.on_erasing(self.end_erased)

    def start(self, request: TurnRequest) -> RunningTurn:
        """Begin the turn, or join it where it is running already.

        Raises:
            InvalidRequest: the message is longer than MAX_MESSAGE_CHARACTERS, or an option is not valid.
            TurnConflict: the same turn_id is running for another thread or message.
        """
        if not request.regenerate:  # what is stored was taken under another bound
            self._memory.check_message(request.message)
        options = read_options(request.options, self._memory.config)  # refused before anything is stored
        turn_id = request.turn_id or str(uuid4())
        key = request.scope.user_id, turn_id
        running = self._running.get(key)
        # A request to regenerate must not join the run that has just given the answer to be replaced.
        if running is not None and not (running.is_over if request.regenerate else running.has_failed):
            running.check_repeat(request)
            return running
        running = RunningTurn(request, turn_id, self._memory.passage(request.scope.user_id))
        self._running[key] = running
        self._own(self._run(running, options), name=TURN)
        return running

    def end_erased(self, scope: Scope) -> None:
        """End the accepted turns of the scope, which is being erased. The fences refuse their graphs' later writes."""
        for running in list(self._running.values()):
            if running.is_accepted and running.is_of(scope):
                running.failed(UserErased())
        self._rounds.forget(scope)

    async def drain(self, seconds: float) -> None:
        """Wait `seconds` for running turns, then abort the rest: accepted turns without a reply can be repeated.

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

    async def _run(self, running: RunningTurn, options: RecallOptions) -> None:
        observer, key = self._memory.observer, (running.request.scope.user_id, running.turn_id)
        try:
            with observer.turn(running.request.scope.user_id, running.turn_id):
                if running.request.turn_id is None and running.request.chat is None:  # it is stored nowhere yet
                    self._memory.recall.foresee(running.request.scope, running.request.message, options)
                try:
                    await self._guard(running, self._answer(running))
                finally:
                    observer.turn_ended(running.failure)
        finally:
            if self._running.get(key) is running:
                # A repeat of a turn that has just failed may have replaced it in the table already.
                del self._running[key]

    async def _guard(self, running: RunningTurn, work: Coroutine[Any, Any, None]) -> None:
        """Run part of a turn's work, and turn whatever it raises into the turn's error."""
        try:
            await work
        except RecollectError as error:
            running.failed(error)
        except asyncio.CancelledError:
            running.failed(ModelUnavailable("The service is stopping; send the request again with the same turn_id."))
            raise
        except Exception:
            # The boundary of a turn: its caller gets a plain error, the log gets the details.
            logger.exception("turn broke", extra={"action": "turn_broke", "turn_id": running.turn_id})
            running.failed(RecollectError())

    async def _answer(self, running: RunningTurn) -> None:
        """Answer a finished turn at once, else run it when the thread is free.

        The turn joins the thread's queue before anything is read, so that turns run in the order in which they came. A
        turn without a thread waits for nothing.
        """
        if running.request.scope.thread_id is None:
            with running.passage.working():
                fence = await self._memory.observe(running.request.scope)
                message = running.message(created_at=self._memory.now())
                return await self._begin(running, RunStart(message, fence))
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
        """Hold the thread from the turn's acceptance to its reply; the update goes on after it."""
        turn_id = running.turn_id
        new_turn = turn_id if running.request.turn_id is None else None
        async with self._memory.held(running.request.scope, new_turn=new_turn) as hold:
            with running.passage.working():
                has_run = await self._run_held(running, looking)
            # The turn may have become another one, which a chat client's history names.
            hold.is_answered = has_run and running.is_answered and running.turn_id == turn_id

    async def _run_held(self, running: RunningTurn, looking: "asyncio.Task[Turn | None]") -> bool:
        """Run the turn of a held thread, from its acceptance to its reply; return False if it is finished already."""
        if await looking is not None:
            return False
        # Another process may have finished it while this one waited for the thread.
        stored = await self._finished(running)
        if stored is not None:
            running.saved(stored)
            return False
        # The fence is observed before the history is read: an erasure from here on refuses the turn's writes.
        fence = await self._memory.observe(running.request.scope)
        await self._supersede_left(running, fence)
        known = await self._place(running)
        replaced = await self._replaced(running)
        if replaced is not None:
            start = RunStart(replaced.message, fence, replaced=replaced, known=known)
        else:
            start = RunStart(running.message(created_at=self._memory.now()), fence, known=known)
            if running.request.chat is None or not running.request.chat.stores_late:
                start = await self._accept(running, start)
        await self._begin(running, start)
        return True

    async def _accept(self, running: RunningTurn, start: RunStart) -> RunStart:
        """Store the message of `start`, and return the start with it as it was stored.

        What a new turn is to recall is fetched meanwhile. A turn that may be stored already has its old place, behind
        which nothing is recalled.
        """
        begun = Begun()
        if running.request.turn_id is None and running.request.chat is None:
            given, context = self._run_of(running, start)
            begun = self.graph.begin(given, replace(context, accepted=None))
        try:
            message = await self._memory.accept(start.message, fence=start.fence, agent_id=running.request.bound_agent)
        except BaseException:
            begun.cancel()
            raise
        return replace(start, message=message, begun=begun)

    async def _begin(self, running: RunningTurn, start: RunStart) -> None:
        """Start the graph's run, and wait until it has a reply."""
        running.accepted()
        # Run the graph for an accepted turn, past its reply to the end of its update.
        walk = self.graph.run(*self._run_of(running, start), start.begun)
        # The graph has a task of its own: the thread is released at the reply, while the graph goes on to its update.
        self._own(self._guard(running, walk), name="turn-graph")
        await running.end()

    async def _supersede_left(self, running: RunningTurn, fence: Fence) -> None:
        """Supersede the turns that a client has left by an edited message, where its thread was found by its history.

        Raises:
            UpdatePending: one of them is still being learned from.
        """
        scope, chat = running.request.scope, running.request.chat
        if chat is None or not chat.is_derived:
            return
        request = running.request
        finder = ThreadFinder(self._memory, scope.user_id, chat.history, request.message, request.bound_agent)
        left = await finder.left(scope.thread)
        if left:
            await self._memory.supersede(scope, left, fence=fence)

    async def _place(self, running: RunningTurn) -> KnownMessage | None:
        """Match a chat client's history to the stored messages; make `running` the stored turn it asks for again."""
        request = running.request
        if request.chat is None:
            return None
        past = await read_past(self._memory, request.scope, request.chat.history, agent_id=request.bound_agent)
        if request.turn_id is None and (turn_id := past.unfinished(request.message)) is not None:
            running.means(turn_id, regenerate=False)
        elif request.chat.appends:
            return await self._continued(running, request.chat, past)
        elif past.is_asked_again(request.message):
            running.means(past.turns[-1].user.turn_id, regenerate=True)
            return past.known(but_last=True)
        return past.known()

    async def _continued(self, running: RunningTurn, chat: ClientChat, past: Past) -> KnownMessage:
        """Give the turn the history of the turn that it follows, where other turns have followed that one already.

        Raises:
            NotFound: the turn that it follows is gone.
        """
        if chat.follows is None or (past.turns and past.turns[-1].user.turn_id == chat.follows):
            return past.known()
        window = running.request.options.get("window", self._memory.config.window)
        agent_id = running.request.bound_agent
        exchanges = await read_until(self._memory, running.request.scope, chat.follows, window, agent_id=agent_id)
        branch = continued(chat.history, exchanges)
        running.brings(replace(chat, history=branch.history))
        return branch.known

    async def _replaced(self, running: RunningTurn) -> Turn | None:
        """Return the finished turn that is to be regenerated, if the request asks for that.

        Raises:
            NotFound, TurnConflict, NotLastTurn: see `Memory.last_turn`.
        """
        if not running.request.regenerate:
            return None
        last = await self._memory.last_turn(running.request.scope, running.turn_id)
        return last if last.reply is not None else None

    def _run_of(self, running: RunningTurn, start: RunStart) -> tuple[TurnInput, LiveContext]:
        """Return the graph's input and context for a turn."""
        options, message, replaced = running.request.options, start.message, start.replaced
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
        context = LiveContext(
            self._services,
            running,
            message,
            passage=running.passage,
            regenerates=replaced is not None,
            placed=_placed(running.request.chat, start.known),
            choice=running.request.choice,
            rounds=self._rounds,
            fence=start.fence,
            reads=start.reads,
        )
        return given, context

    async def _finished(self, running: RunningTurn) -> Turn | None:
        """Return the stored turn if it has its reply already and keeps it. Only a turn with a given id can have one.

        Raises:
            TurnConflict: the turn_id belongs to another thread or message.
        """
        request = running.request
        if request.turn_id is None or request.regenerate:
            return None
        stored = await self._memory.find_turn(user_id=request.scope.user_id, turn_id=running.turn_id)
        if stored is None:
            return None
        check_same_turn(
            stored.message, thread_id=request.scope.thread, content=request.message, agent_id=request.bound_agent
        )
        return stored if stored.reply is not None else None


def _placed(chat: ClientChat | None, known: KnownMessage | None) -> Placed | None:
    return None if chat is None else Placed(chat, known or align(chat.history, ()))
