"""Reads the items that a client puts into a conversation: messages become turns, as those of an agent elsewhere do."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.api.openai.callers import wrong
from recollect.api.openai.responses.items import read_items
from recollect.graph.history import content_text
from recollect.memory.exchanges.given_exchange import GivenExchange, SaidMessage
from recollect.memory.values.further_message import FurtherMessage
from recollect.memory.values.text import message_problem

MOST_ITEMS = 20
"""The most items of one request, as in OpenAI's API."""


def given_exchanges(items: Sequence[Mapping[str, Any]], *, now: datetime, most: int) -> list[GivenExchange]:
    """Return the messages as exchanges: a user's one with the answer behind it, or one of the two alone.

    Messages of the system go with the exchange before them, or with the first. `most` is the most characters of each.

    Raises:
        InvalidRequest: an item is no message, has no text, or there are messages of the system alone.
    """
    for place, item in enumerate(items):
        if item.get("type", "message") != "message":
            raise wrong(f"items.{place}.type", "must be message: calls of functions are kept with their responses")
    read = read_items(items, field="items")
    made = list[GivenExchange]()
    leading = list[FurtherMessage]()
    for message, field in zip(read.messages, read.fields, strict=True):
        role, text = message["role"], content_text(message["content"])
        problem = message_problem(text, most=most)
        if problem is not None:
            raise wrong(f"{field}.content", problem)
        if role == "user":
            made.append(GivenExchange(SaidMessage(text, created_at=now)))
        elif role == "assistant":
            made[-1:] = _answered(made[-1:], SaidMessage(text, created_at=now))
        elif made:
            made[-1] = _with(made[-1], [FurtherMessage("system", text, now)])
        else:
            leading.append(FurtherMessage("system", text, now))
    if not made and leading:
        raise wrong("items", "must hold a message of the user or of the assistant")
    return [_with(made[0], leading), *made[1:]] if made else []


def _answered(last: Sequence[GivenExchange], answer: SaidMessage) -> list[GivenExchange]:
    """Return the last exchange with its answer, or with a new one behind it that nobody asked for."""
    if last and last[0].assistant is None:
        return [GivenExchange(last[0].user, answer, messages=last[0].messages)]
    return [*last, GivenExchange(SaidMessage("", created_at=answer.created_at), answer, is_unasked=True)]


def _with(given: GivenExchange, more: Sequence[FurtherMessage]) -> GivenExchange:
    return GivenExchange(given.user, given.assistant, messages=(*given.messages, *more), is_unasked=given.is_unasked)
