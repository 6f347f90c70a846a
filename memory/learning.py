"""The facts step of an update: extraction, reconciliation, and the writes that they decide on."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from memory.attribution import attribute
from memory.batching import Batching
from memory.decision import Proposal, Refused
from memory.documents import Documents
from memory.errors import UserErased
from memory.extraction_schema import WantedKeys
from memory.extractor import Extraction, ExtractionRequest, Extractor, Said
from memory.fact import Fact
from memory.fact_book import Keeper
from memory.fact_writes import FactWrites
from memory.fences import Fence, Fences
from memory.known_facts import Nomination
from memory.known_passages import KnownPassages
from memory.owed_points import OwedPoints
from memory.planned_write import PlannedWrite
from memory.recall import MOST_FACTS
from memory.reconciliation import Plan, PlanRequest, Relearning, Review, plan
from memory.relearning import relearning_of
from memory.scope import Scope
from memory.times import Clock
from memory.trivial import is_trivial
from memory.turn import Message, Turn
from memory.undoing import undo
from memory.update import Undo, Update
from memory.user_work import Resting, Save

MOST_PROPOSED = 500
"""How many facts that wait for a person a plan looks at, newest first."""


_Keep = Callable[[Update, Plan], Awaitable[Update]]
"""Records what was decided and does it; the update with it."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """What the model answered for one turn of a batch: it is planned when the turn's own step runs."""

    proposals: Sequence[Proposal]
    refused: Sequence[Refused]
    model: str
    shown: Sequence[Fact]


@dataclass(frozen=True)
class FactsStep:
    """Learns facts from the user's messages, and takes them back.

    What a plan decides is recorded with the turn before the first write: a replay after a kill does the recorded
    writes, each of them idempotent, and asks no model again. Several turns of a thread may be learned from in one call
    (`batching`): its answer waits in memory for the steps of the later ones, which ask again after a kill.
    """

    documents: Documents
    extractor: Extractor
    nomination: Nomination
    passages: KnownPassages
    points: OwedPoints
    batching: Batching
    review: Review
    schema: WantedKeys | None
    bounds: Keeper
    fences: Fences
    clock: Clock
    _answers: dict[tuple[str, str], _Answered] = field(default_factory=dict[tuple[str, str], _Answered])

    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Learn, or undo; see `StepWork.run`. The agent's own proposals come first: no extraction can hold them up."""
        message = turn.message
        fence = await self._fence(turn)
        try:
            if update.earlier is not None and not update.earlier.done:
                update = await self._take_earlier_back(turn, update, save)
            if update.undo is not None and not update.undo.done:
                return await undo(self.documents.facts, turn, update, now=self.clock())
            await self._write(message, update.writes, fence)
            keep = partial(self._keep, message=message, save=save, fence=fence)
            if update.proposals:
                update = await self._take_proposals(turn, update, keep)
            if not update.planned:
                update = await self._learn(turn, update, keep)
            return update
        finally:
            self.points.notify(message.user_id)

    async def resting(self, turns: Sequence[tuple[Turn, Update]]) -> Resting:
        """Which turns wait for others of their thread; see `StepWork.resting`."""
        unasked = [
            (turn, update)
            for turn, update in turns
            if (turn.message.user_id, turn.message.turn_id) not in self._answers
        ]
        return await self.batching.resting(unasked, now=self.clock())

    async def take_back(self, turn: Turn) -> None:
        """The turn vanished while it was learned from: its thread was deleted, and with it the thread's own facts."""
        self._answers.pop((turn.message.user_id, turn.message.turn_id), None)
        if await self.documents.conversations.last_position(turn.message.scope) == 0:
            await self.documents.facts.delete(turn.message.scope)

    def forget(self, scope: Scope) -> None:
        """The scope is being erased: drop what was answered for turns that wait; others' steps ask again."""
        for key in [key for key in self._answers if key[0] == scope.user_id]:
            del self._answers[key]

    async def rehearse(self, turn: Turn, *, model: str | None = None) -> tuple[Plan, str]:
        """What learning from the turn again would do, and which model says so; nothing is stored."""
        update = turn.update or Update(steps={})
        again = replace(update, learned=update.learned + 1, wanted_model=model, anew=False)
        known = await self._known(turn.message.scope)
        extraction, shown = await self._ask([turn], again, known)
        made = self._plan(turn, extraction.proposals, shown, known, await self._relearning(turn, again))
        return replace(made, refused=(*extraction.refused, *made.refused)), extraction.model

    async def plan_text(self, scope: Scope, text: str, lesson_id: str) -> tuple[Plan, str]:
        """What learning from a text that is no turn comes to, and which model says so; nothing is stored.

        `lesson_id` stands in for the turn in the ids of new facts. Without a thread nothing becomes working memory.
        """
        known = await self._known(scope)
        extraction, shown = await self._extract([Said(text, "")], scope, known, None)
        proposals = extraction.proposals
        if scope.thread_id is None:
            proposals = [replace(one, scope="user") if one.scope == "thread" else one for one in proposals]
        message = Message(scope.user_id, scope.thread_id or "", lesson_id, "user", text, self.clock())
        made = self._plan(Turn(message), proposals, shown, known)
        return replace(made, refused=(*extraction.refused, *made.refused)), extraction.model

    async def _fence(self, turn: Turn) -> Fence:
        """The fence as it was while the turn was still there.

        Raises:
            UserErased: it was erased since it was read.
        """
        message = turn.message
        fence = await self.fences.open(message.scope)
        if await self.documents.conversations.turn(user_id=message.user_id, turn_id=message.turn_id) is None:
            raise UserErased
        return fence

    async def _write(self, message: Message, writes: Sequence[PlannedWrite], fence: Fence) -> None:
        """Do what was planned. Where the user is erased meanwhile, no fact of it is left."""
        if not writes:
            return
        facts, inserted = self.documents.facts, [write.inserts for write in writes if write.inserts is not None]
        async with fence.writing() as writing:
            writing.take_back(lambda: facts.remove(user_id=message.user_id, fact_ids=inserted))
            await FactWrites(facts).do(message.scope, writes, turn_id=message.turn_id)

    async def _take_earlier_back(self, turn: Turn, update: Update, save: Save) -> Update:
        """Take back what earlier answers to the turn taught; what has changed since stays as it is."""
        earlier = update.earlier
        assert earlier is not None
        wish = Undo(at=earlier.at, force=True)
        await undo(self.documents.facts, turn, replace(update, writes=earlier.writes, undo=wish), now=self.clock())
        update = replace(update, earlier=replace(earlier, writes=(), done=True))
        await save(update)
        return update

    async def _take_proposals(self, turn: Turn, update: Update, keep: "_Keep") -> Update:
        """Plan and write what the agent's own tools proposed."""
        wanted, refused = list(update.proposals), list[Refused]()
        if self.schema is not None:
            wanted, refused = self.schema.sift(update.proposals, ())
        made = self._plan(turn, wanted, (), await self._known(turn.message.scope), await self._relearning(turn, update))
        taken = replace(update, proposals=(), refused=(*update.refused, *refused))
        return await keep(taken, made)

    async def _learn(self, turn: Turn, update: Update, keep: "_Keep") -> Update:
        message = turn.message
        if (not update.learned or update.anew) and is_trivial(message.content):
            return replace(update, planned=True)
        known = await self._known(message.scope)
        answered = self._answers.pop((message.user_id, message.turn_id), None)
        if answered is None:
            answered = await self._ask_for_batch(turn, update, known)
        learned = replace(update, planned=True, model=answered.model, refused=(*update.refused, *answered.refused))
        shown = _as_living(answered.shown, known.living)
        made = self._plan(turn, answered.proposals, shown, known, await self._relearning(turn, update))
        return await keep(learned, made)

    async def _ask_for_batch(self, turn: Turn, update: Update, known: "_Known") -> _Answered:
        """Ask the model about this turn and those that wait with it; the others' answers are kept for their steps."""
        turns = [turn, *await self.batching.companions(turn, update)]
        extraction, shown = await self._ask(turns, update, known)
        shares = attribute(extraction.proposals, [each.message.content for each in turns])
        for other, share in zip(turns[1:], shares[1:], strict=True):
            key = (other.message.user_id, other.message.turn_id)
            self._answers[key] = _Answered(share, (), extraction.model, shown)
        return _Answered(shares[0], extraction.refused, extraction.model, shown)

    async def _ask(self, turns: Sequence[Turn], update: Update, known: "_Known") -> tuple[Extraction, Sequence[Fact]]:
        said = [Said(turn.message.content, turn.reply.content if turn.reply is not None else "") for turn in turns]
        return await self._extract(said, turns[0].message.scope, known, update.wanted_model)

    async def _extract(
        self, said: Sequence[Said], scope: Scope, known: "_Known", model: str | None
    ) -> tuple[Extraction, Sequence[Fact]]:
        shown = await self.nomination.choose(said, known.living, scope)
        passages = await self.passages.near(said, scope)
        request = ExtractionRequest(turns=said, known=shown, now=self.clock(), passages=passages)
        return await self.extractor.extract(request, model=model), shown

    async def _keep(self, update: Update, made: Plan, *, message: Message, save: Save, fence: Fence) -> Update:
        """Record what a plan decided, then do it. A fact that this turn has just taught is not confirmed by it too."""
        taught = {change.fact_id for change in update.changes}
        fresh = [
            (change, write)
            for change, write in zip(made.changes, made.writes, strict=True)
            if not (change.decision == "keep" and change.fact_id in taught)
        ]
        learned = replace(
            update,
            changes=(*update.changes, *(change for change, _ in fresh)),
            writes=(*update.writes, *(write for _, write in fresh)),
            refused=(*update.refused, *made.refused),
        )
        if fresh:
            await save(learned)
            await self._write(message, [write for _, write in fresh], fence)
            self.bounds.touch(message.user_id)
            if any(write.inserts and write.scope == "thread" for _, write in fresh):
                await self.bounds.trim_thread(message.scope)
        return learned

    def _plan(
        self,
        turn: Turn,
        proposals: Sequence[Proposal],
        shown: Sequence[Fact],
        known: "_Known",
        relearning: Relearning | None = None,
    ) -> Plan:
        message = turn.message
        return plan(
            PlanRequest(
                proposals=proposals,
                known=shown,
                living=known.living,
                proposed=known.proposed,
                message=message.content,
                user_id=message.user_id,
                thread_id=message.thread_id,
                turn_id=message.turn_id,
                now=self.clock(),
                said_at=message.created_at,
                review=self.review,
                relearning=relearning,
            )
        )

    async def _relearning(self, turn: Turn, update: Update) -> Relearning | None:
        if not update.learned:
            return None
        return await relearning_of(self.documents.facts, self.documents.conversations, turn, update)

    async def _known(self, scope: Scope) -> "_Known":
        now, facts = self.clock(), self.documents.facts
        found = await facts.living(scope, at=now, limit=MOST_FACTS, with_global=True)
        proposed = await facts.proposed(scope, limit=MOST_PROPOSED) if self.review.mode != "off" else []
        return _Known([fact for fact in found if fact.is_living(now)], proposed)


@dataclass(frozen=True, slots=True)
class _Known:
    living: Sequence[Fact]
    proposed: Sequence[Fact]


def _as_living(shown: Sequence[Fact], living: Sequence[Fact]) -> list[Fact]:
    """What was shown, each fact that an earlier turn of the batch has superseded replaced by what superseded it."""
    successors = {fact.replaces: fact for fact in living if fact.replaces is not None}
    return [successors.get(fact.id, fact) for fact in shown]
