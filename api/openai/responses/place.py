"""Finds where a response belongs: its thread, the turn that it continues, and the round whose results it brings."""

from collections.abc import Mapping
from typing import Any

from recollect.api.openai.callers import wrong
from recollect.api.openai.responses.ids import call_item_id
from recollect.api.openai.responses.items import ReadItems, read_items
from recollect.api.openai.responses.kept import NONE, KeptResponses
from recollect.api.openai.responses.requests import ResponseRequest
from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.values.frozen import frozen
from recollect.memory.values.turn import Turn

Json = dict[str, Any]


@frozen
class Place:
    """Where a response belongs; `thread_id` is None where nothing names the thread.

    `appends` and `follows` are those of `ClientChat`.
    `round`: the open round that it goes on with; `is_named`: by `previous_response_id`, so that the round's own
    messages are not in the input.
    """

    thread_id: str | None
    appends: bool = False
    follows: str | None = None
    round: ClientRecord | None = None
    is_named: bool = False

    @property
    def proposals(self) -> tuple[Json, ...]:
        """Return what the agent proposed in the round."""
        return tuple(self.round.content["proposals"]) if self.round is not None else ()

    @property
    def calls(self) -> dict[str, str]:
        """Return the ids of the round's calls by their ids as items, earlier ones too."""
        if self.round is None:
            return {}
        made = {
            call_item_id(self.round.id, number): call["id"]
            for number, call in enumerate(self.round.content["tool_calls"])
        }
        response: Mapping[str, Any] = self.round.content["response"] or {}
        return {**response.get("items", {}), **made}

    def read(self, given: Any) -> ReadItems:
        """Read the input, behind the round's messages where a client leaves those to the service.

        Raises:
            InvalidRequest: an item is wrong.
        """
        before = ReadItems(items=self.calls)
        if self.round is not None and self.is_named:
            content = self.round.content
            own = {"role": "user", "content": content["parts"] or content["message"]}
            for message in (*content["history"], own, *content["exchange"]):
                before.add(dict(message), "previous_response_id")
        return read_items(given, before)

    def rounds(self, brought: tuple[Json, ...]) -> tuple[Json, ...]:
        """Return the rounds that a client `brought`, with the agent's own part in front of the last results."""
        if self.round is None or self.is_named:
            return brought
        ids = {call["id"] for call in self.round.content["tool_calls"]}
        places = [
            place
            for place, message in enumerate(brought)
            if ids and ids == {call["id"] for call in message.get("tool_calls") or ()}
        ]
        return (*self.round.content["exchange"], *brought[places[-1] + 1 :]) if places else brought


async def find_place(kept: KeptResponses, body: ResponseRequest, items: Any, *, named: str | None) -> Place:
    """Return where the response belongs; `items` is the input, references resolved, and `named` the thread of headers.

    Raises:
        InvalidRequest: two places are named, or a response that is not kept.
    """
    if body.previous_response_id is not None:
        if body.conversation is not None:
            raise wrong("previous_response_id", "and conversation cannot both be given: each names the thread")
        return _behind(await kept.named(body.previous_response_id))
    if body.conversation is not None:
        waiting = await kept.round_waiting(body.conversation, items)
        return Place(body.conversation, appends=True) if waiting is None else _behind(waiting)
    round_ = await kept.round_of(items)
    if named is not None:
        return Place(named, round=round_ if round_ is not None and round_.thread_id == named else None)
    if round_ is not None:
        return Place(round_.thread_id, round=round_)
    return Place(None)


def _behind(previous: Turn | ClientRecord | None) -> Place:
    if previous is None:
        raise wrong("previous_response_id", NONE)
    if isinstance(previous, Turn):
        return Place(previous.message.thread_id, appends=True, follows=previous.message.turn_id)
    content = previous.content
    return Place(
        previous.thread_id, appends=content["appends"], follows=content["follows"], round=previous, is_named=True
    )
