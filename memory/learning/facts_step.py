"""Facts step: asks the extractor what a turn teaches, plans its proposals, and does the planned writes."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from functools import partial
from importlib import import_module

from typing_extensions import override

from recollect.memory.background.long_texts import off_loop
from recollect.memory.erasure.fences import Fence, Fences
from recollect.memory.facts.fact_writes import FactWrites
from recollect.memory.index.index_outbox import IndexOutbox
from recollect.memory.language.trivial import is_trivial
from recollect.memory.learning.attribution import attribute
from recollect.memory.learning.batching import Batching
from recollect.memory.learning.extraction.prompt import extraction_messages
from recollect.memory.learning.extraction.schema import WantedKeys
from recollect.memory.learning.known_facts import Nomination
from recollect.memory.learning.known_passages import KnownPassages
from recollect.memory.learning.plan_proof import PROOF
from recollect.memory.learning.previewing import again, named_facts, previewed, without_own_keeps
from recollect.memory.learning.proof.evidence import folded_quote
from recollect.memory.learning.proof.short import is_one_word
from recollect.memory.learning.reconciliation import Plan, PlanRequest, Relearning, Review, plan
from recollect.memory.learning.relearning import relearning_of, said_later
from recollect.memory.learning.undoing import undo_turn
from recollect.memory.learning.unseen_values import without_unseen
from recollect.memory.ports.chat_model import ChatMessage
from recollect.memory.ports.extractor import Extraction, ExtractionRequest, Extractor, Said
from recollect.memory.ports.store import Store
from recollect.memory.updates.retention import Retention
from recollect.memory.updates.step_work import Deferred, Save, StepWork
from recollect.memory.values.decision import Proposal, RefusedProposal
from recollect.memory.values.errors import UserErased
from recollect.memory.values.fact import Fact
from recollect.memory.values.fact_limits import MOST_FACTS
from recollect.memory.values.frozen import frozen
from recollect.memory.values.planned_write import PlannedWrite
from recollect.memory.values.preview import Preview
from recollect.memory.values.scope import Scope
from recollect.memory.values.text import cut
from recollect.memory.values.times import Clock
from recollect.memory.values.tokens import CHARACTERS_PER_TOKEN
from recollect.memory.values.turn import Message, Turn
from recollect.memory.values.update import Undo, Update

logger = logging.getLogger(__name__)

MOST_PROPOSED = 500
"""A plan reads at most this many facts that wait for a person, newest first."""


_MOST_SHORT_CHARACTERS = 200


_Keep = Callable[[Update, Plan], Awaitable[Update]]
"""Records a plan with the update, does its writes, and returns the update."""


@frozen
class _BatchAnswer:
    """Holds the model's answer for one turn of a batch, until that turn's own step plans it."""

    proposals: Sequence[Proposal]
    refused: Sequence[RefusedProposal]
    model: str
    shown: Sequence[Fact]


@frozen
class FactsStep(StepWork):
    """Learns facts from the user's messages, and takes them back.

    What a plan decides is recorded with the turn before the first write: a replay after a kill does the recorded
    writes, each of them idempotent, and asks no model again. Several turns of a thread may be learned from in one call
    (`batching`): its answer waits in memory for the steps of the later ones, which ask again after a kill.
    """

    store: Store
    extractor: Extractor
    nomination: Nomination
    passages: KnownPassages
    points: IndexOutbox
    batching: Batching
    review: Review
    schema: WantedKeys | None
    retention: Retention
    fences: Fences
    clock: Clock
    rules: str | None = None
    _answers: dict[tuple[str, str], _BatchAnswer] = field(default_factory=dict[tuple[str, str], _BatchAnswer])

    @override
    async def run(self, turn: Turn, update: Update, save: Save) -> Update:
        """Learn from `turn`, or undo it; see `StepWork.run`. Plan the agent's own proposals before asking the model."""
        message = turn.message
        fence = await self._fence(turn, update)
        ended: Update | None = None
        written: list[Fact] = []
        try:
            ended = await self._run(turn, update, save, fence, written)
            return ended
        finally:
            if ended is None or ended.undo or ended.earlier:
                self._notify(message.user_id, update, None)
            elif ended.writes:
                self._notify(message.user_id, update, written)

    async def _run(self, turn: Turn, update: Update, save: Save, fence: Fence, written: list[Fact]) -> Update:
        message = turn.message
        # Taken back first, so that the new answer is not compared with facts of the previous one.
        if update.earlier is not None and not update.earlier.done:
            update = await self._take_earlier_back(turn, update, save)
        if update.undo is not None and not update.undo.done:
            return await undo_turn(self.store.facts, turn, update, now=self.clock())
        # Writes that were recorded before a kill, or by a person who applied a preview.
        written += await self._write(message, update.writes, fence)
        keep = partial(self._keep, message=message, save=save, fence=fence, written=written)
        if update.proposals:
            update = await self._take_proposals(turn, update, keep)
        if not update.planned:
            update = await self._learn(turn, update, keep)
        return update

    def _notify(self, user_id: str, update: Update, written: Sequence[Fact] | None) -> None:
        """Have new facts indexed: by the turn's index step where that is still to come, else in the background.

        `written` are the facts that this step has written; None: nobody knows which.
        """
        index = update.steps.get("index")
        if index is not None and index.is_due(self.clock()):
            self.points.notify_later(user_id, written)
        else:
            self.points.notify(user_id)

    @override
    async def deferred(self, turns: Sequence[tuple[Turn, Update]]) -> Deferred:
        """Return the turns that wait for others of their thread; see `StepWork.deferred`."""
        unasked = [
            (turn, update)
            for turn, update in turns
            if (turn.message.user_id, turn.message.turn_id) not in self._answers
        ]
        return await self.batching.deferred(unasked, now=self.clock())

    @override
    async def take_back(self, turn: Turn) -> None:
        """Drop the answer for a `turn` that vanished while it was learned from, and the facts of its deleted thread."""
        self._answers.pop((turn.message.user_id, turn.message.turn_id), None)
        if await self.store.conversations.last_position(turn.message.scope) == 0:
            await self.store.facts.delete(turn.message.scope)

    def forget(self, scope: Scope) -> None:
        """Drop the user's waiting answers, because `scope` is being erased. Steps that still need one ask again."""
        for key in [key for key in self._answers if key[0] == scope.user_id]:
            del self._answers[key]

    async def preview(self, turn: Turn, *, model: str | None = None) -> Preview:
        """Ask a model about `turn` again; return what learning from its answer would change now. Store nothing."""
        update = again(turn.update or Update(steps={}), model=model)
        known = await self._known(turn.message)
        extraction, shown = await self._ask([turn], update, known)
        made = await self._plan(turn, extraction.proposals, shown, known, await self._relearning(turn, update))
        return previewed(extraction, shown, without_own_keeps(update, made), at=self.clock())

    async def plan_again(self, turn: Turn, preview: Preview) -> Plan:
        """Return the plan that the proposals of a preview of `turn` make now. Ask nobody, store nothing.

        Raises:
            PreviewOutdated: a fact that they name no longer holds.
        """
        update = again(turn.update or Update(steps={}))
        known = await self._known(turn.message)
        named = named_facts(preview, known.living)
        made = await self._plan(turn, preview.proposals, named, known, await self._relearning(turn, update))
        return without_own_keeps(update, made)

    async def prompt(self, turn: Turn) -> list[ChatMessage]:
        """Return the messages that would ask a model about `turn` now. Ask nobody."""
        known = await self._known(turn.message)
        request, _ = await self._request([_said(turn)], turn.message.scope, known)
        return extraction_messages(request, rules=self.rules, schema=self.schema)

    async def may_ask(self, model: str) -> bool:
        """Tell whether `model` can be asked to learn from turns; see `Extractor.may_ask`."""
        return await self.extractor.may_ask(model)

    async def plan_text(self, scope: Scope, text: str, lesson_id: str, agent_id: str | None = None) -> tuple[Plan, str]:
        """Return the plan of learning from a `text` that is no turn, and the name of the model. Store nothing.

        `lesson_id` takes the turn's place in the ids of new facts. If `scope` has no thread, a fact that the model
        proposes for the thread becomes one of the user. `agent_id` labels the new facts.
        """
        whose = (scope.user_id, scope.thread_id or "", lesson_id)
        message = Message(*whose, "user", text, self.clock(), agent_id=agent_id)
        known = await self._known(message, scope)
        extraction, shown = await self._extract([Said(text, "", message.created_at)], scope, known, None)
        proposals = extraction.proposals
        if scope.thread_id is None:
            proposals = [replace(one, scope="user") if one.scope == "thread" else one for one in proposals]
        made = await self._plan(Turn(message), proposals, shown, known)
        return replace(made, refused=(*extraction.refused, *made.refused)), extraction.model

    async def _fence(self, turn: Turn, update: Update) -> Fence:
        """Observe the fence, and make sure that nothing is written for a turn that was erased before that.

        Raises:
            UserErased: the turn was erased since it was read.
        """
        message = turn.message
        # Observed before the turn is looked for: an earlier erasure has removed it, a later one fails the writes.
        fence = await self.fences.observe(message.scope)
        # A plan that is yet to be made is recorded before its first write, which a turn that is gone refuses.
        if not (update.writes or update.undo or update.earlier):
            return fence
        if await self.store.conversations.turn(user_id=message.user_id, turn_id=message.turn_id) is None:
            raise UserErased
        return fence

    async def _write(self, message: Message, writes: Sequence[PlannedWrite], fence: Fence) -> list[Fact]:
        """Do the planned writes, then keep to the bounds. Remove the new facts if the user or thread is erased.

        Return what is stored of the facts that the plan writes.
        """
        if not writes:
            return []
        facts, inserted = self.store.facts, [write.inserts for write in writes if write.inserts is not None]
        async with fence.writing() as writing:
            writing.on_erased(lambda: facts.remove(user_id=message.user_id, fact_ids=inserted))
            written = await FactWrites(facts).do(
                message.scope, writes, turn_id=message.turn_id, agent_id=message.agent_id
            )
        self.retention.touch(message.user_id)
        if any(write.inserts and write.scope == "thread" for write in writes):
            await self.retention.trim_thread(message.scope)
        return written

    async def _take_earlier_back(self, turn: Turn, update: Update, save: Save) -> Update:
        """Undo the writes of the turn's previous answers, with force: leave what has changed since."""
        earlier = update.earlier
        assert earlier is not None
        wish = Undo(at=earlier.at, force=True)
        await undo_turn(self.store.facts, turn, replace(update, writes=earlier.writes, undo=wish), now=self.clock())
        update = replace(update, earlier=replace(earlier, writes=(), done=True))
        await save(update)
        return update

    async def _take_proposals(self, turn: Turn, update: Update, keep: "_Keep") -> Update:
        """Plan and write the proposals of the agent's own tools."""
        wanted, refused = list(update.proposals), list[RefusedProposal]()
        if self.schema is not None:
            wanted, refused = self.schema.sift(update.proposals, ())
        known = await self._known(turn.message)
        made = await self._plan(turn, wanted, (), known, await self._relearning(turn, update))
        taken = replace(update, proposals=(), refused=(*update.refused, *refused))
        return await keep(taken, made)

    async def _learn(self, turn: Turn, update: Update, keep: "_Keep") -> Update:
        message = turn.message
        if (not update.learned or update.anew) and is_trivial(message.evidence):
            return replace(update, planned=True)
        known = await self._known(message)
        answered = self._answers.pop((message.user_id, message.turn_id), None)
        if answered is None:
            answered = await self._ask_for_batch(turn, update, known)
        learned = replace(update, planned=True, model=answered.model, refused=(*update.refused, *answered.refused))
        shown = _as_living(answered.shown, known.living)
        made = await self._plan(turn, answered.proposals, shown, known, await self._relearning(turn, update))
        return await keep(learned, made)

    async def _ask_for_batch(self, turn: Turn, update: Update, known: "_Known") -> _BatchAnswer:
        """Ask the model about `turn` and its companions. Keep the companions' answers for their own steps."""
        turns = [turn, *await self.batching.companions(turn, update)]
        extraction, shown = await self._ask(turns, update, known)
        said = [each.message.evidence for each in turns]
        shares = await off_loop(partial(attribute, extraction.proposals, said), said)
        for other, share in zip(turns[1:], shares[1:], strict=True):
            key = (other.message.user_id, other.message.turn_id)
            self._answers[key] = _BatchAnswer(share, (), extraction.model, shown)
        return _BatchAnswer(shares[0], extraction.refused, extraction.model, shown)

    async def _ask(self, turns: Sequence[Turn], update: Update, known: "_Known") -> tuple[Extraction, Sequence[Fact]]:
        return await self._extract([_said(turn) for turn in turns], turns[0].message.scope, known, update.wanted_model)

    async def _extract(
        self, said: Sequence[Said], scope: Scope, known: "_Known", model: str | None
    ) -> tuple[Extraction, Sequence[Fact]]:
        request, shown = await self._request(said, scope, known)
        return await self.extractor.extract(request, model=model), shown

    async def _request(
        self, said: Sequence[Said], scope: Scope, known: "_Known"
    ) -> tuple[ExtractionRequest, Sequence[Fact]]:
        """Return the extractor's request, and the known facts that it shows in the order of their numbers."""
        shown = await self.nomination.choose(said, known.living, scope)
        passages = await self.passages.near(said, scope)
        said = _fitting(said, self.batching.config.message_tokens * CHARACTERS_PER_TOKEN)
        return ExtractionRequest(turns=said, known=shown, now=self.clock(), passages=passages), shown

    async def _keep(
        self, update: Update, made: Plan, *, message: Message, save: Save, fence: Fence, written: list[Fact]
    ) -> Update:
        """Record the plan in `update`, then do its writes. Leave out confirmations of facts that this turn taught.

        What these have written is added to `written`.
        """
        made = without_own_keeps(update, made)
        learned = replace(
            update,
            changes=(*update.changes, *made.changes),
            writes=(*update.writes, *made.writes),
            refused=(*update.refused, *made.refused),
        )
        logger.debug(
            "learned",
            extra={"action": "learned", "user_id": message.user_id, "turn_id": message.turn_id}
            | {"changes": len(made.changes), "refused": len(made.refused)}
            | {"facts": [change.fact_id for change in made.changes]},
        )
        if made.writes:
            # Saved before the first write: after a kill a replay does these writes again, and asks no model.
            await save(learned)
            written += await self._write(message, made.writes, fence)
        return learned

    async def _plan(
        self,
        turn: Turn,
        proposals: Sequence[Proposal],
        shown: Sequence[Fact],
        known: "_Known",
        relearning: Relearning | None = None,
    ) -> Plan:
        message = turn.message
        concerned = _concerned(proposals, shown, known)
        request = PlanRequest(
            proposals=proposals,
            known=shown,
            living=known.living,
            proposed=known.proposed,
            message=message.evidence,
            user_id=message.user_id,
            thread_id=message.thread_id,
            turn_id=message.turn_id,
            now=self.clock(),
            said_at=message.created_at,
            review=self.review,
            relearning=relearning,
            ended=known.ended,
            later=await said_later(self.store.conversations, message, concerned),
            asked=await self._asked(message, proposals),
            wanted=self.schema.keys.keys() if self.schema is not None else (),
        )
        compared = (fact.statement for fact in known.living)
        if proposals and PROOF not in sys.modules:
            await asyncio.to_thread(import_module, PROOF)
        made = await off_loop(partial(plan, request), [message.evidence, *(compared if proposals else ())])
        return without_unseen(made, (*known.living, *known.ended, *known.proposed), message.agent_id)

    async def _asked(self, message: Message, proposals: Sequence[Proposal]) -> str:
        """Return the assistant's reply before `message` if a short quote may answer it, else an empty text."""
        if self.review.unproven == "allow" or not message.position or not any(map(_is_short, proposals)):
            return ""
        before = await self.store.conversations.recent(message.scope, limit=1, before=message.position)
        return before[-1].assistant.content if before else ""

    async def _relearning(self, turn: Turn, update: Update) -> Relearning | None:
        if not update.learned:
            return None
        return await relearning_of(self.store.facts, self.store.conversations, turn, update)

    async def _known(self, message: Message, scope: Scope | None = None) -> "_Known":
        """Read the living and proposed facts, and the facts that have ended since `message` was said."""
        scope = scope or message.scope
        now, facts = self.clock(), self.store.facts
        since = min(message.created_at, now)
        waiting = MOST_PROPOSED if self.review.may_hold_back else 0
        found, proposed = await facts.known(scope, at=since, living=MOST_FACTS, proposed=waiting)
        living = [fact for fact in found if fact.is_living(now)]
        return _Known(living, [fact for fact in found if not fact.is_living(now)], proposed)


@frozen
class _Known:
    living: Sequence[Fact]
    ended: Sequence[Fact]
    proposed: Sequence[Fact]


def _concerned(proposals: Sequence[Proposal], shown: Sequence[Fact], known: _Known) -> list[Fact]:
    """Return the living and ended facts that the proposals name by number, or that have one of their keys."""
    numbers = {proposal.shown for proposal in proposals}
    named = {fact.id: fact.key for number, fact in enumerate(shown, start=1) if number in numbers}
    keys = {proposal.key for proposal in proposals} | set(named.values())
    every = (*known.living, *known.ended)
    return [fact for fact in every if fact.id in named or (fact.key is not None and fact.key in keys)]


def _is_short(proposal: Proposal) -> bool:
    return is_one_word(folded_quote(proposal.evidence[:_MOST_SHORT_CHARACTERS]))


def _said(turn: Turn) -> Said:
    """Return the turn's message and reply, and when the message was said."""
    reply = turn.reply.content if turn.reply is not None else ""
    return Said(turn.message.evidence, reply, turn.message.created_at)


def _fitting(turns: Sequence[Said], characters: int) -> Sequence[Said]:
    """Return `turns` with at most `characters` of messages together; cut each to an equal share if they exceed it."""
    if sum(len(turn.message) for turn in turns) <= characters:
        return turns
    return [replace(turn, message=cut(turn.message, characters // len(turns))) for turn in turns]


def _as_living(shown: Sequence[Fact], living: Sequence[Fact]) -> list[Fact]:
    """Return `shown`, with each fact that an earlier turn of the batch superseded replaced by its successor."""
    successors = {fact.replaces: fact for fact in living if fact.replaces is not None}
    return [successors.get(fact.id, fact) for fact in shown]
