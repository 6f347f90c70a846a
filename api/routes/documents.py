"""`/api/documents`, and threads' attachments."""

from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

from recollect.api.auth.caller import Caller, UserId, WhoCalls
from recollect.api.errors import plain_error
from recollect.api.routes.document_bodies import Sent, read_body, request_body
from recollect.api.routes.filters import LABELLED, Filtered, shown_filter
from recollect.api.routes.hanging_up import Sender
from recollect.api.routes.pages import Cursor, Limit, bad_cursor, from_cursor, to_cursor
from recollect.api.schemas.document_answers import (
    AttachedAnswer,
    AttachedDocumentsAnswer,
    DocumentAnswer,
    DocumentsAnswer,
)
from recollect.api.schemas.requests import Id
from recollect.api.state import OpenMemory
from recollect.memory.background.scanning import Fitting
from recollect.memory.memory import Memory
from recollect.memory.values.document import Attached, Document
from recollect.memory.values.filtering.items import document_item
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.times import from_ms, iso, to_ms

router = APIRouter(tags=["documents"], dependencies=[LABELLED])

DocumentId = Annotated[str, Path(max_length=128, description="The document's `id`.")]
WhichScope = Literal["user", "global"]


async def _owner(
    caller: WhoCalls,
    user_id: Annotated[Id | None, Query(description="Whose; a key of one user's own may leave it out.")] = None,
    scope: Annotated[WhichScope, Query(description="`global`: everybody's.")] = "user",
) -> str:
    """Return the owner of the documents that the query means."""
    return GLOBAL_USER if scope == "global" else caller.acts_for(user_id)


Owner = Annotated[str, Depends(_owner)]


@router.post(
    "/api/documents",
    status_code=201,
    response_model=None,
    summary="Add a document",
    description="JSON with a `text`, or a form with a `file`: text, Markdown, HTML, PDF or DOCX. One with the same "
    "`source` (without one: the same content) is replaced; passages that stay as they were are not embedded again. 202 "
    "where it takes longer to become findable: ask for it again.",
    responses={201: {"model": DocumentAnswer}, 202: {"model": DocumentAnswer}},
    openapi_extra={"requestBody": request_body()},
)
async def post_document(request: Request, memory: OpenMemory, caller: WhoCalls) -> JSONResponse:
    """Store it, and wait a little until it can be found."""
    sent = await read_body(request, memory.bulk)
    try:
        if sent.said.scope == "global":
            caller.check_admin()
            owner = GLOBAL_USER
        else:
            owner = caller.acts_for(sent.said.user_id)
        sent.said.agent_id = caller.label(sent.said.agent_id)
        document = await Sender(request, has_sent=True).unless_gone(_added(memory, owner, sent, caller))
    except ClientDisconnect:
        return plain_error(400, "invalid_request", "The client has gone.")
    finally:
        if sent.form is not None:
            await sent.form.close()
    return JSONResponse(await _shown(memory, document), 202 if document.status == "processing" else 201)


@router.get(
    "/api/documents",
    response_model=None,
    summary="A user's documents",
    description="Newest first; with `scope=global` everybody's.",
    responses={200: {"model": DocumentsAnswer}},
)
async def get_documents(
    owner: Owner,
    memory: OpenMemory,
    domain: Annotated[str | None, Query(max_length=64, description="Those of this domain.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    asked: Filtered = None,
) -> JSONResponse:
    """Return one page."""
    if asked is not None:
        fitting = await memory.filtered.documents_of(owner, asked, limit=limit, domain=domain, before=_place(cursor))
        items = [await _shown(memory, one) for one in fitting.items]
        following = _cursor(fitting.items[-1]) if fitting.has_more else None
        return JSONResponse({"items": items, "next_cursor": following, **shown_filter(fitting)})
    found = await memory.documents.page(owner, limit=limit + 1, domain=domain, before=_place(cursor))
    page = found[:limit]
    following = _cursor(page[-1]) if len(found) > limit else None
    return JSONResponse({"items": [await _shown(memory, one) for one in page], "next_cursor": following})


@router.get(
    "/api/documents/{document_id}",
    response_model=None,
    summary="One document",
    description="Of the user's, or everybody's. `status` and `progress` tell how far it is.",
    responses={200: {"model": DocumentAnswer}},
)
async def get_document(document_id: DocumentId, owner: Owner, memory: OpenMemory) -> JSONResponse:
    """404 for another user's."""
    return JSONResponse(await _shown(memory, await memory.documents.document(owner, document_id)))


@router.delete(
    "/api/documents/{document_id}",
    status_code=204,
    response_model=None,
    summary="Delete a document",
    description="Its passages go with it, and threads lose it. Everybody's (`scope=global`) administrators delete.",
)
async def delete_document(document_id: DocumentId, owner: Owner, memory: OpenMemory, caller: WhoCalls) -> Response:
    """404 where the owner has no such document."""
    if owner == GLOBAL_USER:
        caller.check_admin()
    await memory.documents.delete(owner, document_id)
    return Response(status_code=204)


@router.get(
    "/api/threads/{thread_id}/documents",
    response_model=None,
    summary="A thread's documents",
    description="What is attached to it, in the order of attaching.",
    responses={200: {"model": AttachedDocumentsAnswer}},
)
async def get_attached(thread_id: Id, user_id: UserId, memory: OpenMemory, asked: Filtered = None) -> JSONResponse:
    """Empty for a thread that has none, or that nobody wrote to."""
    attached = await memory.documents.attached(Scope(user_id, thread_id))
    found = [one for one in attached if asked is None or asked.fulfilled(document_item(one.document))]
    said = {} if asked is None else shown_filter(Fitting(found, has_more=False, is_complete=True))
    items = [await _attached(memory, one) for one in found]
    return JSONResponse({"items": items, "next_cursor": None, **said})


@router.put(
    "/api/threads/{thread_id}/documents/{document_id}",
    response_model=None,
    summary="Attach a document to a thread",
    description="Its turns search it whatever their `domains`, and get it whole where it is small. The thread need not "
    "exist yet; again changes nothing.",
    responses={200: {"model": AttachedAnswer}},
)
async def attach_document(thread_id: Id, document_id: DocumentId, user_id: UserId, memory: OpenMemory) -> JSONResponse:
    """404 for another user's document."""
    attached = await memory.documents.attach(Scope(user_id, thread_id), document_id)
    return JSONResponse(await _attached(memory, attached))


@router.delete(
    "/api/threads/{thread_id}/documents/{document_id}",
    status_code=204,
    response_model=None,
    summary="Detach a document",
    description="It stays among the user's documents.",
)
async def detach_document(thread_id: Id, document_id: DocumentId, user_id: UserId, memory: OpenMemory) -> Response:
    """404 where it is not attached."""
    await memory.documents.detach(Scope(user_id, thread_id), document_id)
    return Response(status_code=204)


async def _added(memory: Memory, owner: str, sent: Sent, caller: Caller) -> Document:
    given, agent_id = sent.said.given(), caller.agent_id
    if sent.upload is not None:
        return await memory.documents.add_file(owner, given, sent.upload, agent_id=agent_id)
    return await memory.documents.add_text(owner, given, sent.said.text or "", agent_id=agent_id)


def _cursor(document: Document) -> str:
    return to_cursor(f"{to_ms(document.created_at)}/{document.id}")


async def _shown(memory: Memory, document: Document) -> dict[str, Any]:
    return document.as_json(progress=await memory.documents.progress(document))


async def _attached(memory: Memory, attached: Attached) -> dict[str, Any]:
    return {**await _shown(memory, attached.document), "attached_at": iso(attached.attached_at)}


def _place(cursor: str | None) -> Any:
    """Return the time and id of the previous page's last document."""
    said = from_cursor(cursor)
    if said is None:
        return None
    milliseconds, _, last = said.partition("/")
    try:
        return from_ms(int(milliseconds)), str(UUID(last))
    except (ValueError, OverflowError):
        raise bad_cursor() from None
