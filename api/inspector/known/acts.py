"""A person's acts on a fact: pin, forget."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Form
from fastapi.responses import Response
from pydantic import BaseModel, Field

from recollect.api.inspector.known.owned import FactId, Owned, Writable
from recollect.api.inspector.page import OpenPage, Page
from recollect.api.state import OpenMemory
from recollect.memory.facts.forgetting import ForgettingPreview
from recollect.memory.values.version import version_of

verbs = APIRouter()
Back = Annotated[str | None, Field(max_length=5_000)]
"""The query of the list that the act was called from; None: from the fact's own page."""


class Pinning(BaseModel):
    """The fields of the form that pins a fact; `version` is the one that was shown."""

    version: str = Field(max_length=200)
    pinned: bool
    back: Back = None


@verbs.post("/{fact_id}/pin")
async def pin_fact(
    page: OpenPage, owned: Writable, fact_id: FactId, memory: OpenMemory, given: Annotated[Pinning, Form()]
) -> Response:
    """Pin the fact that was shown, or take its pin away."""
    await memory.facts.patch(owned.owner, fact_id, {"pinned": given.pinned}, version=given.version)
    return lead_back(page, owned, fact_id, given.back)


@verbs.get("/{fact_id}/forget")
async def ask_forget(page: OpenPage, owned: Writable, fact_id: FactId, memory: OpenMemory) -> Response:
    """Show every text that would go, and how many turns' records are blanked."""
    return _ask(page, owned, fact_id, await memory.facts.forgetting_preview(owned.owner, fact_id))


@verbs.post("/{fact_id}/forget")
async def forget_fact(
    page: OpenPage,
    owned: Writable,
    fact_id: FactId,
    memory: OpenMemory,
    seen: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Forget what was shown; where there are other texts by now, show these first.

    A fact without texts is one that was cut off while it was forgotten: the same call completes that.
    """
    preview = await memory.facts.forgetting_preview(owned.owner, fact_id)
    if preview.versions and seen != _texts(preview):
        return _ask(page, owned, fact_id, preview, has_changed=True)
    await memory.facts.forget(owned.owner, fact_id)
    return page.lead(f"{owned.list}{'?kind=global' if owned.is_global else ''}")


def _ask(page: Page, owned: Owned, fact_id: str, preview: ForgettingPreview, *, has_changed: bool = False) -> Response:
    return page.show(
        "known/forget.html",
        part="confirm",
        title="Forget a fact",
        status=412 if has_changed else 200,
        owned=owned,
        address=owned.fact(fact_id),
        texts=_distinct(preview),
        turns=preview.turns,
        is_all=preview.is_all,
        seen=_texts(preview),
        has_changed=has_changed,
    )


def _distinct(preview: ForgettingPreview) -> list[Mapping[str, Any]]:
    """Return the versions, newest first; where only other fields changed, the text stands there once."""
    texts = {(version["key"], version["value"], version["statement"]): version for version in preview.versions}
    return list(texts.values())[::-1]


def _texts(preview: ForgettingPreview) -> str:
    """Return the version of the texts that a person was shown."""
    return version_of(*((one["id"], one["key"], one["value"], one["statement"]) for one in preview.versions))


def lead_back(page: Page, owned: Owned, fact_id: str, back: str | None) -> Response:
    """Lead to the list that the act was called from; without its query, to the fact's own page."""
    if back is None:
        return page.lead(owned.fact(fact_id))
    query = urlencode(parse_qsl(back.removeprefix("?"), max_num_fields=20))  # written anew: it is the browser's text
    return page.lead(f"{owned.list}?{query}" if query else owned.list)
