"""Narrows what a request sees: to the `?filter=` of lists and exports, and to the label of an agent's key."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from fastapi import Depends, Query, Request

from recollect.api.auth.caller import Caller, WhoCalls
from recollect.api.schemas.memory_answers import MemoryChange, MemoryRequest
from recollect.api.schemas.requests import FactRequest
from recollect.api.state import OpenMemory
from recollect.memory.background.scanning import Fitting
from recollect.memory.facts.fact_edit import FactEdit
from recollect.memory.memory import Memory
from recollect.memory.values.errors import NotFound
from recollect.memory.values.filtering.filter import Filter
from recollect.memory.values.filtering.reading import MOST_FILTER_CHARACTERS, read_filter_text
from recollect.memory.values.scope import GLOBAL_USER

SAID = 'Conditions as JSON, URL-encoded, such as {"project": "apollo", "priority": {"gte": 2}}.'


async def _filter(
    caller: WhoCalls,
    text: Annotated[str | None, Query(alias="filter", description=SAID, max_length=MOST_FILTER_CHARACTERS)] = None,
) -> Filter | None:
    return caller.narrowed(read_filter_text(text) if text else None)


Filtered = Annotated[Filter | None, Depends(_filter)]
"""The filter of a list or an export, within the label of an agent's key; None without one."""


class Narrowed(NamedTuple):
    """The filter of a list, and the agent to whose label the rest of the answer keeps."""

    asked: Filter | None = None
    agent_id: str | None = None


async def _narrowed(caller: WhoCalls, asked: Filtered = None) -> Narrowed:
    return Narrowed(asked, caller.agent_id)


NOT_NARROWED = Narrowed()
Listed = Annotated[Narrowed, Depends(_narrowed)]


def shown_filter(found: Fitting[Any]) -> dict[str, Any]:
    """Return what a page says of its filter."""
    return {"filter": {"complete": found.is_complete}}


_NAMING = frozenset({"fact_id", "memory_id", "document_id", "turn_id"})


async def _check_label(request: Request, caller: WhoCalls, memory: OpenMemory) -> None:
    """Check the label of the fact, document or turn that the path names.

    Raises:
        NotFound: it has another label than the caller's agent, or does not exist.
    """
    named = request.path_params
    if caller.agent_id is None or not _NAMING.intersection(named):
        return
    user_id = named.get("user_id") or request.query_params.get("user_id")
    is_document = "document_id" in named and request.query_params.get("scope") == "global"
    is_global = is_document or request.url.path.startswith("/api/global/")
    owner = GLOBAL_USER if is_global else caller.acts_for(user_id)
    try:
        caller.check_label(await _label(memory, owner, named))
    except NotFound:
        raise NotFound from None  # in the same words, whether there is none or it is another agent's


async def _label(memory: Memory, owner: str, named: Mapping[str, str]) -> str | None:
    """Return the label of the owner's thing with this id.

    Raises:
        NotFound: there is none.
    """
    fact_id = named.get("fact_id") or named.get("memory_id")
    if fact_id is not None:
        return (await memory.facts.fact(owner, fact_id)).agent_id
    if "document_id" in named:
        return (await memory.documents.document(owner, named["document_id"])).agent_id
    turn = await memory.find_turn(user_id=owner, turn_id=named["turn_id"])
    return turn.message.agent_id if turn is not None else None


LABELLED = Depends(_check_label)
"""The dependency of routes whose path names a fact, a document or a turn."""


def labelled(body: FactRequest | MemoryRequest | MemoryChange, caller: Caller) -> FactEdit:
    """Return the edit, with the label of the caller's own agent."""
    edit, label = body.edit(), caller.label(body.agent_id)
    if label is not None:
        edit["agent_id"] = label
    return edit
