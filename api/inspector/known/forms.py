"""Forms that add a fact or edit one; what was typed is shown again where it cannot be stored."""

from typing import Annotated, Any

from fastapi import APIRouter, Form
from fastapi.responses import Response

from recollect.api.inspector.known.fact_fields import LABELS, FactFields, differences, edit_of, form_fields
from recollect.api.inspector.known.owned import FactId, Owned, Writable
from recollect.api.inspector.page import OpenPage, Page
from recollect.api.state import OpenMemory
from recollect.memory.memory import Memory
from recollect.memory.values.errors import FactConflict, InvalidRequest, Problem, VersionChanged
from recollect.memory.values.fact import Fact

verbs = APIRouter()
Given = Annotated[FactFields, Form()]
INVALID, CHANGED = 422, 412


@verbs.get("/new")
async def ask_new(page: OpenPage, owned: Writable) -> Response:
    """Show the empty form."""
    return _new(page, owned, FactFields())


@verbs.post("/new")
async def add_fact(page: OpenPage, owned: Writable, given: Given, memory: OpenMemory) -> Response:
    """Write the fact; where one holds under the key already, show both texts and store nothing."""
    try:
        fact = await _written(memory, owned.owner, given)
    except InvalidRequest as error:
        return _new(page, owned, given, problems=error.problems)
    except VersionChanged:
        stored = await memory.facts.under(owned.owner, given.key.strip(), edit_of(given, FactFields()))
        return _new(page, owned, given) if stored is None else _changed(page, owned, given, stored)
    return page.lead(owned.fact(fact.id))


@verbs.get("/{fact_id}/edit")
async def ask_edit(page: OpenPage, owned: Writable, fact_id: FactId, memory: OpenMemory) -> Response:
    """Show the form with what is stored."""
    fact = await _open_fact(memory, owned, fact_id)
    return _edit(page, owned, fact, form_fields(fact))


@verbs.post("/{fact_id}/edit")
async def edit_fact(page: OpenPage, owned: Writable, fact_id: str, given: Given, memory: OpenMemory) -> Response:
    """Store the changed fields; where the fact has changed since it was shown, show both texts and store nothing."""
    fact = await _open_fact(memory, owned, fact_id)
    own = given.model_copy(update={"key": fact.key or ""})
    try:
        await memory.facts.patch(owned.owner, fact_id, edit_of(own, form_fields(fact)), version=given.version)
    except InvalidRequest as error:
        return _edit(page, owned, fact, own, problems=error.problems)
    except VersionChanged:
        return _changed(page, owned, own, await memory.facts.fact(owned.owner, fact_id))
    return page.lead(owned.fact(fact_id))


async def _written(memory: Memory, owner: str, given: FactFields) -> Fact:
    """Write a new fact under its key, or as a note."""
    edit = edit_of(given, FactFields())
    if not given.value.strip():
        raise InvalidRequest(problems=[Problem("value", "is missing")])
    key = given.key.strip()
    if key:
        return await memory.facts.put(owner, key, edit, version="")
    return (await memory.facts.write_note(owner, edit)).fact


async def _open_fact(memory: Memory, owned: Owned, fact_id: str) -> Fact:
    fact = await memory.facts.fact(owned.owner, fact_id)
    if not fact.is_open:
        raise FactConflict(f"The fact is {fact.shown_status}; only what is known can be changed.")
    return fact


def _new(page: Page, owned: Owned, given: FactFields, **shown: Any) -> Response:
    return _form(page, owned, given, title="Add a fact", fact=None, action=f"{owned.address}/new", **shown)


def _edit(page: Page, owned: Owned, fact: Fact, given: FactFields, **shown: Any) -> Response:
    action = f"{owned.fact(fact.id)}/edit"
    return _form(page, owned, given, title="Edit a fact", fact=fact, action=action, **shown)


def _changed(page: Page, owned: Owned, given: FactFields, stored: Fact) -> Response:
    """Show what is stored beside what was typed; what is sent then names the version that is shown now."""
    given = given.model_copy(update={"version": stored.version, "key": stored.key or ""})
    return _edit(page, owned, stored, given, others=differences(given, form_fields(stored)), status=CHANGED)


def _form(page: Page, owned: Owned, given: FactFields, *, status: int = 200, **shown: Any) -> Response:
    """Show the form; `problems` are the sentences about its fields, `others` how the stored fact differs."""
    if "problems" in shown:
        status = INVALID
    values: dict[str, Any] = {"problems": [], "others": None, "labels": LABELS, **shown}
    return page.show("known/form.html", part="form", status=status, owned=owned, given=given, **values)
