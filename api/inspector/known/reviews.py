"""A person's reviews of proposed facts: approve, reject; where another proposal stands there by now, show both."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import Response
from pydantic import BaseModel, Field

from recollect.api.inspector.known.acts import Back, lead_back
from recollect.api.inspector.known.owned import FactId, Owned, Writable
from recollect.api.inspector.page import OpenPage, Page
from recollect.api.schemas.requests import MOST_TEXT
from recollect.api.state import OpenMemory
from recollect.memory.facts.reviewing import proposal_version
from recollect.memory.memory import Memory
from recollect.memory.values.errors import NotFound, VersionChanged
from recollect.memory.values.fact import Fact

verbs = APIRouter()
CHANGED = 412
Text = Annotated[str, Field(max_length=MOST_TEXT)]


class ReviewForm(BaseModel):
    """The fields of the form that decides: the version that was shown, and its texts, to show them again beside others.

    A form without a version was shown none.
    """

    version: str = Field("", max_length=200)
    seen: Text = ""
    seen_replaced: Text = ""
    back: Back = None


Given = Annotated[ReviewForm, Form()]


@verbs.post("/{fact_id}/approve")
async def approve_fact(page: OpenPage, owned: Writable, fact_id: FactId, memory: OpenMemory, given: Given) -> Response:
    """Let the proposed fact that was shown hold."""
    try:
        await memory.facts.approve(owned.owner, fact_id, version=given.version)
    except VersionChanged:
        return await _changed(page, owned, fact_id, memory, given)
    return lead_back(page, owned, fact_id, given.back)


@verbs.post("/{fact_id}/reject")
async def reject_fact(page: OpenPage, owned: Writable, fact_id: FactId, memory: OpenMemory, given: Given) -> Response:
    """Refuse the proposed fact that was shown."""
    try:
        await memory.facts.reject(owned.owner, fact_id, version=given.version)
    except VersionChanged:
        return await _changed(page, owned, fact_id, memory, given)
    return lead_back(page, owned, fact_id, given.back)


async def replaced_by(memory: Memory, owned: Owned, facts: list[Fact]) -> dict[str, Fact]:
    """Return what each of the proposed facts would change or end, by its id."""
    found: dict[str, Fact] = {}
    for fact in facts:
        if fact.status == "proposed" and fact.replaces is not None:
            try:
                found[fact.id] = await memory.facts.fact(owned.owner, fact.replaces)
            except NotFound:
                continue  # evicted since: nothing is left that could be shown
    return found


def review_fields(facts: list[Fact], replaced: Mapping[str, Fact]) -> dict[str, dict[str, str]]:
    """Return the hidden fields of each proposed fact's forms, by its id."""
    return {
        fact.id: {
            "version": proposal_version(fact, replaced.get(fact.id)),
            "seen": _words(fact),
            "seen_replaced": _words(replaced.get(fact.id)),
        }
        for fact in facts
        if fact.status == "proposed"
    }


async def _changed(page: Page, owned: Owned, fact_id: str, memory: Memory, given: ReviewForm) -> Response:
    """Show what is stored beside what was shown; what is sent then names the version that is shown now."""
    fact = await memory.facts.fact(owned.owner, fact_id)
    replaced = await replaced_by(memory, owned, [fact])
    return page.show(
        "known/review.html",
        title="The proposal has changed",
        status=CHANGED,
        owned=owned,
        fact=fact,
        replaced=replaced,
        reviews=review_fields([fact], replaced),
        given=given,
        stored=_words(fact),
        stored_replaced=_words(replaced.get(fact.id)),
    )


def _words(fact: Fact | None) -> str:
    if fact is None:
        return ""
    return f"{fact.key}: {fact.text}" if fact.key else fact.text
