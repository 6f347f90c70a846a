"""Reads a user's responses as they are kept: turns with their answer, and rounds that are open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recollect.api.auth.agent_bounds import sees_message, sees_record
from recollect.api.openai.callers import wrong
from recollect.api.openai.responses.ids import place_of_call, turn_of_answer, turn_of_input, turn_of_response
from recollect.api.openai.responses.shapes import answer_item, call_item, round_items, user_item
from recollect.memory.memory import Memory
from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.values.errors import InvalidRequest
from recollect.memory.values.scope import Scope, check_id
from recollect.memory.values.turn import Turn

Json = dict[str, Any]
NONE = "names no response of this user's that is kept"


@dataclass
class KeptResponses:
    """The user's responses; each is read once. `agent_id`: those with this agent's label, to which the key is bound."""

    memory: Memory
    user_id: str
    agent_id: str | None = None
    _turns: dict[str, Turn | None] = field(init=False, default_factory=dict[str, Turn | None])
    _rounds: dict[str, ClientRecord | None] = field(init=False, default_factory=dict[str, ClientRecord | None])

    async def named(self, given: str) -> Turn | ClientRecord | None:
        """Return the turn, or the open round, of the response with this id; None where it is not kept."""
        turn_id = turn_of_response(given)
        if turn_id is None:
            return None
        return await self.turn(turn_id) or await self.open_round(turn_id)

    async def turn(self, turn_id: str) -> Turn | None:
        """Return the turn if it has its answer."""
        if not _is_id(turn_id):
            return None
        if turn_id not in self._turns:
            self._turns[turn_id] = await self.memory.find_turn(user_id=self.user_id, turn_id=turn_id)
        turn = self._turns[turn_id]
        is_kept = turn is not None and turn.reply is not None and sees_message(self.agent_id, turn.message)
        return turn if is_kept else None

    async def open_round(self, turn_id: str) -> ClientRecord | None:
        """Return the open round of the response that this turn would have been."""
        if not _is_id(turn_id):
            return None
        if turn_id not in self._rounds:
            records = self.memory.client_records
            self._rounds[turn_id] = await records.record(user_id=self.user_id, record_id=turn_id)
        record = self._rounds[turn_id]
        return record if record is not None and self._is_open(record) else None

    async def resolved(self, given: str | Sequence[Mapping[str, Any]]) -> str | list[Mapping[str, Any]]:
        """Return the input with the items that its references name.

        Raises:
            InvalidRequest: a reference names none.
        """
        if isinstance(given, str):
            return given
        items = list[Mapping[str, Any]]()
        for place, item in enumerate(given):
            if not _is_reference(item):
                items.append(item)
                continue
            found = await self._item(item.get("id"), given)
            if found is None:
                raise wrong(f"input.{place}.id", "names no item that is kept")
            items.append(found)
        return items

    async def round_of(self, items: str | Sequence[Mapping[str, Any]]) -> ClientRecord | None:
        """Return the open round that made the last call in `items`, if it is still kept."""
        if isinstance(items, str):
            return None
        calls = [item.get("id") for item in items if item.get("type") == "function_call"]
        place = place_of_call(calls[-1]) if calls and isinstance(calls[-1], str) else None
        return None if place is None else await self.open_round(place.turn_id)

    async def round_waiting(self, thread_id: str, items: str | Sequence[Mapping[str, Any]]) -> ClientRecord | None:
        """Return the thread's latest open round whose results are in `items` without the calls themselves."""
        if isinstance(items, str):
            return None
        made = {item.get("call_id") for item in items if item.get("type") == "function_call"}
        results = {item.get("call_id") for item in items if item.get("type") == "function_call_output"} - made
        if not results:
            return None
        found = list[ClientRecord]()
        async for records in self.memory.client_records.every(Scope(self.user_id, thread_id)):
            found += [record for record in records if _waits_for(record, results) and self._is_open(record)]
        return max(found, key=lambda record: record.created_at, default=None)

    def _is_open(self, record: ClientRecord) -> bool:
        is_seen = record.kind == "open_round" and sees_record(self.agent_id, record)
        return is_seen and not record.is_over(self.memory.now())

    async def _item(self, item_id: Any, given: Sequence[Mapping[str, Any]]) -> Json | None:
        if not isinstance(item_id, str):
            return None
        if (turn_id := turn_of_answer(item_id)) is not None:
            return await self._answer(turn_id)
        if (turn_id := turn_of_input(item_id)) is not None:
            turn = await self.turn(turn_id)
            return None if turn is None else user_item(turn_id, turn.message.content)
        place = place_of_call(item_id)
        if place is None:
            return None
        record = await self.open_round(place.turn_id)
        calls = record.content["tool_calls"] if record is not None else ()
        if place.number < len(calls):
            return call_item(place.turn_id, place.number, calls[place.number])
        return await self._call_of_a_turn(item_id, given)

    async def _answer(self, turn_id: str) -> Json | None:
        turn = await self.turn(turn_id)
        if turn is not None and turn.reply is not None:
            return answer_item(turn_id, turn.reply.content)
        record = await self.open_round(turn_id)
        return None if record is None else answer_item(turn_id, record.content["text"])

    async def _call_of_a_turn(self, item_id: str, given: Sequence[Mapping[str, Any]]) -> Json | None:
        """Return the call as a turn keeps it whose answer is among the items: the round itself may be gone by now."""
        for item in given:
            named = item.get("id")
            turn_id = turn_of_answer(named) if isinstance(named, str) else None
            turn = None if turn_id is None else await self.turn(turn_id)
            for call in rounds_of(turn) if turn is not None else ():
                if call["id"] == item_id:
                    return call
        return None


def rounds_of(turn: Turn) -> list[Json]:
    """Return the calls and results of the turn's rounds, as items."""
    kept: Mapping[str, Any] = (turn.result or {}).get("response") or {}
    return round_items(turn.message.turn_id, kept.get("rounds") or (), kept.get("items") or {})


def _waits_for(record: ClientRecord, results: set[Any]) -> bool:
    """Tell whether all calls of the round have their results among these."""
    calls = {call["id"] for call in record.content.get("tool_calls") or ()}
    return bool(calls) and calls <= results


def _is_reference(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "item_reference" or (item.get("type") is None and set(item) <= {"id", "type"})


def _is_id(turn_id: str) -> bool:
    try:
        check_id("id", turn_id)
    except InvalidRequest:
        return False
    return True
