"""Lets a user's updates wait while a turn of that user works, so that what was said before holds up no reply.

A turn works but for the time in which its chat model answers. Updates have that time, and the pauses between turns.
Where a model answers at once there is no such time, so turns do not hold updates up, and what was said is learned as
soon as it can be.
"""

import asyncio
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

LONGEST_SECONDS = 1.0
"""The longest, in seconds, that updates wait while a user's turns work without a break, whoever they wait for."""
LINGER_SECONDS = 0.02
"""How long a turn keeps the way after its reply: its bytes go out first, and a program asks on at once."""
LEAST_ANSWER_SECONDS = 0.05
"""The shortest answer of the model of this process's last turn with which its turns take the way."""
SENDING_SECONDS = 0.005
"""How long a turn keeps the way once it asks its model: a task of the client's own writes the request."""


class RightOfWay:
    """Knows which users have a turn at work in this process; of other processes it knows nothing."""

    def __init__(self) -> None:
        self._working = Counter[str]()
        self._urgent = Counter[str]()
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._waited_out = set[str]()
        self._answer_seconds = 0.0
        self._is_open = False

    @property
    def is_worth_it(self) -> bool:
        """Whether models here take so long to answer that updates have the time meanwhile."""
        return self._answer_seconds >= LEAST_ANSWER_SECONDS

    def answered(self, seconds: float) -> None:
        """Say how long the model of a turn took to answer."""
        self._answer_seconds = seconds

    def passage(self, user_id: str) -> "Passage":
        """Return the passage of a turn of this user; it takes the way when it works."""
        return Passage(self, user_id)

    @contextmanager
    def urgent(self, user_id: str) -> Generator[None]:
        """Let the user's updates go on inside the block, because somebody waits for one of them."""
        self._urgent[user_id] += 1
        self._clear(user_id)
        try:
            yield
        finally:
            _less(self._urgent, user_id)

    def open(self) -> None:
        """Let all updates go on from now on, because this process is about to stop."""
        self._is_open = True
        for user_id in list(self._waiting):
            self._clear(user_id)

    async def given(self, user_id: str) -> None:
        """Wait at most `LONGEST_SECONDS` until no turn of the user works, or somebody waits for their updates.

        Who has waited that long does not wait again before the user's turns have made a break.
        """
        if self._is_open or user_id in self._waited_out or not self._working[user_id] or self._urgent[user_id]:
            return
        cleared = asyncio.Event()
        waiting = self._waiting.setdefault(user_id, [])
        waiting.append(cleared)
        try:
            await asyncio.wait_for(cleared.wait(), LONGEST_SECONDS)
        except TimeoutError:
            if self._working[user_id]:
                self._waited_out.add(user_id)
        finally:
            waiting.remove(cleared)
            if not waiting:
                self._waiting.pop(user_id, None)

    def take(self, user_id: str) -> None:
        """Count one more turn of the user at work."""
        self._working[user_id] += 1

    def give_back(self, user_id: str) -> None:
        """Count one turn less, and let the user's updates go on if it was the last."""
        _less(self._working, user_id)
        if not self._working[user_id]:
            self._waited_out.discard(user_id)
            self._clear(user_id)

    def _clear(self, user_id: str) -> None:
        for event in self._waiting.get(user_id, ()):
            event.set()


class Passage:
    """One turn's part in the right of way: nothing until it works, and nothing again after it has left."""

    def __init__(self, way: RightOfWay, user_id: str) -> None:
        self._way = way
        self._user_id = user_id
        self._is_held = False
        self._is_over = False

    @contextmanager
    def working(self) -> Generator[None]:
        """Hold the way inside the block, and a moment longer."""
        self._take()
        try:
            yield
        finally:
            self._is_over = True
            asyncio.get_running_loop().call_later(LINGER_SECONDS if self._way.is_worth_it else 0, self._give_back)

    @contextmanager
    def resting(self) -> Generator[None]:
        """Give the way back inside the block, in which the turn's model answers."""
        loop = asyncio.get_running_loop()
        begun = loop.time()
        giving_back = loop.call_later(SENDING_SECONDS, self._give_back)
        try:
            yield
        finally:
            giving_back.cancel()
            self._way.answered(loop.time() - begun)
            if not self._is_over:
                self._take()

    def _take(self) -> None:
        if not self._is_held and self._way.is_worth_it:
            self._is_held = True
            self._way.take(self._user_id)

    def _give_back(self) -> None:
        if self._is_held:
            self._is_held = False
            self._way.give_back(self._user_id)


def _less(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
