"""A person's acts on a thread: give it a title, edit its summary, archive it, delete it."""

from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import Response

from recollect.api.auth.caller import PathUser
from recollect.api.inspector.page import OpenPage
from recollect.api.inspector.rendering import segment
from recollect.api.inspector.threads import LostEdit, ThreadId, address_of_thread, thread_page
from recollect.api.schemas.requests import MOST_SUMMARY_CHARACTERS
from recollect.api.state import OpenMemory
from recollect.memory.threads.thread_service import MOST_TITLE_CHARACTERS
from recollect.memory.values.errors import VersionChanged
from recollect.memory.values.scope import Scope

router = APIRouter(prefix="/users/{user_id}/threads/{thread_id}")


@router.post("/title")
async def rename(
    page: OpenPage,
    user_id: PathUser,
    thread_id: ThreadId,
    memory: OpenMemory,
    title: Annotated[str, Form(max_length=4 * MOST_TITLE_CHARACTERS)] = "",
) -> Response:
    """Give the thread a title; a blank one removes it."""
    await memory.threads.rename(Scope(user_id, thread_id), title.strip() or None)
    return page.lead(address_of_thread(user_id, thread_id))


@router.post("/summary")
async def write_summary(
    page: OpenPage,
    user_id: PathUser,
    thread_id: ThreadId,
    memory: OpenMemory,
    version: Annotated[str, Form(max_length=200)],
    summary: Annotated[str, Form(max_length=MOST_SUMMARY_CHARACTERS)] = "",
) -> Response:
    """Write the summary, if it is still the one that was shown; else show both texts and store nothing."""
    scope = Scope(user_id, thread_id)
    said = summary.replace("\r\n", "\n")  # a form's line breaks
    try:
        await memory.threads.set_summary(scope, said, version=version)
    except VersionChanged as error:
        return await thread_page(page, memory, scope, lost=LostEdit(said, error.message))
    return page.lead(address_of_thread(user_id, thread_id))


@router.post("/archive")
async def archive(page: OpenPage, user_id: PathUser, thread_id: ThreadId, memory: OpenMemory) -> Response:
    """Archive the thread."""
    await memory.threads.archive(Scope(user_id, thread_id))
    return page.lead(address_of_thread(user_id, thread_id))


@router.get("/delete")
async def ask_delete(page: OpenPage, user_id: PathUser, thread_id: ThreadId, memory: OpenMemory) -> Response:
    """Show what deleting the thread removes."""
    thread = await memory.threads.overview(Scope(user_id, thread_id))
    titles = await memory.threads.titles(user_id, [thread])
    return page.show(
        "thread_delete.html",
        title="Delete a thread",
        part="confirm",
        thread=thread,
        thread_title=titles[thread_id],
    )


@router.post("/delete")
async def delete(page: OpenPage, user_id: PathUser, thread_id: ThreadId, memory: OpenMemory) -> Response:
    """Delete the thread."""
    await memory.threads.delete(Scope(user_id, thread_id), by=page.caller.name)
    return page.lead(f"/users/{segment(user_id)}/threads")
