"""The recalled hits that turns keep: bounded when they are stored, blanked once their source is deleted.

So are the tools that the turn's agent used, whose own searches found hits too. A turn's reply stays, and so do the
facts learned from it: they do not belong to the deleted thread or document.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, cast

from recollect.memory.ports.store import Store
from recollect.memory.values import tool_use
from recollect.memory.values.errors import StoreUnavailable
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.turn import Turn

MOST_CHARACTERS = 2_000
"""How many characters of each hit are kept with a turn."""
_TRIES = 20

RecordedHit = Mapping[str, Any]
IsGone = Callable[[RecordedHit], bool]


def bounded_result(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the turn's result with at most `MOST_CHARACTERS` of each hit, and with its uses of tools bounded."""
    if uses := tool_use.uses_of(result):
        result = {**result, "tools": [tool_use.bounded_use(use) for use in uses[: tool_use.MOST_USES]]}
    if all(len(hit["content"]) <= MOST_CHARACTERS for hit in _hits(result)):
        return result
    return _with_hits(result, [{**hit, "content": hit["content"][:MOST_CHARACTERS]} for hit in _hits(result)])


def result_without(result: Mapping[str, Any], is_gone: IsGone) -> Mapping[str, Any]:
    """Return the result without the text of hits for which `is_gone` holds; `result` itself if it has none to blank.

    Scores and ids stay. Uses of tools that found such a hit are blank too.
    """
    result = tool_use.uses_without(result, lambda use: any(is_gone(source) for source in use.get("found") or ()))
    hits = _hits(result)
    blanked = [_blank(hit) if is_gone(hit) else hit for hit in hits]
    return result if blanked == list(hits) else _with_hits(result, blanked)


def of_thread(thread_id: str) -> IsGone:
    """Make the test for a thread's hits: its messages, its summary and its own facts."""
    return lambda hit: hit.get("thread_id") == thread_id


def of_document(document_id: str) -> IsGone:
    """Make the test for a document's hits."""
    return lambda hit: _document_of(hit).get("id") == document_id


def of_turn(turn_id: str) -> IsGone:
    """Make the test for a turn's hits: its two messages."""
    return lambda hit: hit.get("turn_id") == turn_id and hit.get("kind") == "episode"


@frozen
class RecordedHits:
    """Blanks hits in the stored turns."""

    store: Store

    async def blank_thread(self, scope: Scope) -> None:
        """Blank the hits that the user's turns recalled from the thread, which is deleted by now.

        Raises:
            StoreUnavailable: some are not blank yet; another call completes it.
        """
        await self._blank(scope.user_id, of_thread(scope.thread))

    async def blank_turn(self, user_id: str, turn_id: str) -> None:
        """Blank the hits that the user's turns recalled from the turn, which is deleted by now.

        Raises:
            StoreUnavailable: some are not blank yet; another call completes it.
        """
        await self._blank(user_id, of_turn(turn_id))

    async def blank_document(self, owner: str, document_id: str) -> None:
        """Blank the hits that turns recalled from the document, which no search finds any more.

        For a global document these are everybody's turns, else those of its `owner`.

        Raises:
            StoreUnavailable: some are not blank yet; another call completes it.
        """
        async for user_id in self._readers(owner):
            await self._blank(user_id, of_document(document_id))

    async def settle(self, turn: Turn) -> None:
        """Blank the hits of a turn that was stored just now, as far as their sources were deleted while it ran.

        A deletion looks through the turns after it has deleted, and this looks for sources after the turn is stored. So
        either the deletion finds this turn, or this finds the source deleted.
        """
        result = turn.result or {}
        found = [source for use in tool_use.uses_of(result) for source in use.get("found") or ()]
        foreign = [hit for hit in (*_hits(result), *found) if hit.get("thread_id") != turn.message.thread_id]
        gone = [hit for hit in foreign if not await self._stands(turn.message.user_id, hit)]
        if gone:
            ids = {hit["id"] for hit in gone}
            await self._clean(turn, lambda hit: hit["id"] in ids)

    async def _readers(self, owner: str) -> AsyncIterator[str]:
        if owner != GLOBAL_USER:
            yield owner
            return
        async for users in self.store.users():
            for user_id in users:
                if user_id != GLOBAL_USER:
                    yield user_id

    async def _stands(self, user_id: str, hit: RecordedHit) -> bool:
        if hit["kind"] == "document":
            return await self._has_document(user_id, hit)
        thread_id, turn_id = hit.get("thread_id"), hit.get("turn_id")
        if hit["kind"] == "episode" and turn_id is not None:
            return await self.store.conversations.turn(user_id=user_id, turn_id=turn_id) is not None
        if thread_id is None:
            return True
        return await self.store.conversations.last_position(Scope(user_id, thread_id)) > 0

    async def _has_document(self, user_id: str, hit: RecordedHit) -> bool:
        documents, document_id = self.store.documents, _document_of(hit)["id"]
        for owner in (user_id, GLOBAL_USER):
            document = await documents.document(user_id=owner, document_id=document_id)
            if document is not None and document.version:
                return hit["id"] == document_id or bool(
                    await documents.passages.passages(user_id=owner, passage_ids=[hit["id"]])
                )
        return False

    async def _blank(self, user_id: str, is_gone: IsGone) -> None:
        async for turns in self.store.conversations.turns(user_id):
            for turn in turns:
                await self._clean(turn, is_gone)

    async def _clean(self, turn: Turn, is_gone: IsGone) -> None:
        """Blank the hits in the turn's result by compare-and-set; read the turn again and retry if it has changed."""
        conversations, message = self.store.conversations, turn.message
        for _ in range(_TRIES):
            if turn.result is None or turn.update is None:
                return
            clean = result_without(turn.result, is_gone)
            if clean is turn.result or await conversations.rewrite(turn, result=clean, update=turn.update):
                return
            stored = await conversations.turn(user_id=message.user_id, turn_id=message.turn_id)
            if stored is None:
                return
            turn = stored
        raise StoreUnavailable("Turns that recalled what is deleted keep changing; delete it again.")


def _hits(result: Mapping[str, Any]) -> Sequence[RecordedHit]:
    hits: Sequence[RecordedHit] = result.get("memory", {}).get("hits", ())
    return hits


def _document_of(hit: RecordedHit) -> Mapping[str, Any]:
    """Return the hit's document; {} if it has none. In an imported hit the field may hold anything."""
    document: object = hit.get("document")
    return cast("Mapping[str, Any]", document) if isinstance(document, Mapping) else {}


def _with_hits(result: Mapping[str, Any], hits: Sequence[RecordedHit]) -> Mapping[str, Any]:
    return {**result, "memory": {**result["memory"], "hits": list(hits)}}


def _blank(hit: RecordedHit) -> RecordedHit:
    """Return the hit without its text, and without its document's title, domain and source."""
    document = _document_of(hit)
    named = {"document": {**document, "title": "", "domain": None, "source": None}} if document else {}
    return {**hit, "content": "", **named}
