"""Reads the body of an upload: JSON, or a form whose file is streamed to the disk."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from recollect.api.schemas.requests import AGENT, WHOSE, Id, check_json, check_request_text
from recollect.memory.background.bulk import Bulk
from recollect.memory.documents.document_service import NewDocument, Upload
from recollect.memory.values.errors import InvalidRequest, Problem, TooLarge, UnsupportedMedia
from recollect.memory.values.frozen import frozen

MOST_FIELDS = 20
MOST_FIELD_BYTES = 1_000_000
FORM_FIELDS = ("user_id", "scope", "text", "title", "domain", "source", "metadata", "agent_id")

Domain = Annotated[str, Field(strict=True, min_length=1, max_length=64), AfterValidator(check_request_text)]


class DocumentRequest(BaseModel):
    """A document: its `text`, or in a form its `file`, and what is said of it."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"user_id": "ada", "text": "Tea is served at four.", "title": "House rules", "domain": "home"}]
        },
    )

    user_id: Id | None = Field(None, description=WHOSE)
    scope: Literal["user", "global"] = Field("user", description="`global`: everybody's; for administrators.")
    text: Annotated[str, Field(strict=True, min_length=1), AfterValidator(check_request_text)] | None = Field(
        None, description="At most MAX_DOCUMENT_CHARACTERS."
    )
    title: (
        Annotated[str, Field(strict=True, min_length=1, max_length=200), AfterValidator(check_request_text)] | None
    ) = Field(None, description="Null: the document's own, or its file's name.")
    domain: Domain | None = Field(None, description="What it is about, in a word: searches can be kept to domains.")
    source: (
        Annotated[str, Field(strict=True, min_length=1, max_length=2_000), AfterValidator(check_request_text)] | None
    ) = Field(None, description="Where it is from. A document with the same source is replaced.")
    metadata: Annotated[dict[str, Any], AfterValidator(check_json)] = Field(
        default_factory=dict, description="Kept with it; in a form as JSON text."
    )
    agent_id: Id | None = Field(None, description=AGENT)

    def given(self) -> NewDocument:
        """Return what is said of the document."""
        return NewDocument(self.title, self.domain, self.source, self.metadata, self.agent_id)


class DocumentForm(DocumentRequest):
    """The same as a form, for the OpenAPI text alone."""

    metadata: str = Field("{}", description="JSON text.")  # pyright: ignore[reportIncompatibleVariableOverride] - a form
    file: bytes = Field(
        description="Text, Markdown, HTML, PDF or DOCX, at most MAX_UPLOAD_MB.",
        json_schema_extra={"format": "binary"},
    )


@frozen
class Sent:
    """The body of an upload; `form` is to be closed at the end."""

    said: DocumentRequest
    upload: Upload | None = None
    form: FormData | None = None


def request_body() -> dict[str, Any]:
    """Return the request's body for the OpenAPI text."""
    form = DocumentForm.model_json_schema()
    form["required"] = ["file"]
    return {
        "required": True,
        "content": {
            "application/json": {"schema": DocumentRequest.model_json_schema() | {"required": ["text"]}},
            "multipart/form-data": {"schema": form},
        },
    }


async def read_body(request: Request, bulk: Bulk) -> Sent:
    """Read and check the request's body.

    Raises:
        TooLarge: it has more than MAX_UPLOAD_MB.
        UnsupportedMedia: it is neither JSON nor a form.
        InvalidRequest, RequestValidationError: a field is wrong.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if media == "application/json" or media.endswith("+json"):
            return Sent(_with_text(await _json(request, bulk)))
        if media == "multipart/form-data":
            return await _form(request)
    except TooLarge:
        raise TooLarge("The body is over MAX_UPLOAD_MB; send a smaller document, or parts of it.") from None
    except ClientDisconnect:
        raise _wrong("body", "ended early") from None
    problem = Problem("body", "must be application/json or multipart/form-data")
    raise UnsupportedMedia("Send JSON, or a form with a file.", problems=[problem])


async def _json(request: Request, bulk: Bulk) -> DocumentRequest:
    body = await request.body()
    try:
        # A large body is parsed in a thread, because parsing it would block the loop.
        said: Any = await bulk.run(lambda: json.loads(body)) if len(body) > MOST_FIELD_BYTES else json.loads(body)
    except (ValueError, RecursionError):
        raise _wrong("body", "is not valid JSON") from None
    return _checked(said)


async def _form(request: Request) -> Sent:
    parser = MultiPartParser(
        request.headers,
        request.stream(),
        max_files=1,
        max_fields=MOST_FIELDS,
        max_part_size=MOST_FIELD_BYTES,
    )
    try:
        form = await parser.parse()
    except MultiPartException:
        raise _wrong("body", "is not a valid form") from None
    try:
        return _of_form(form)
    except BaseException:
        await form.close()
        raise


def _of_form(form: FormData) -> Sent:
    fields, upload = dict[str, Any](), None
    for name, value in form.multi_items():
        if name in fields or (name == "file" and upload is not None):
            raise _wrong(name[:200], "is given twice")
        if isinstance(value, UploadFile):
            if name != "file":
                raise _wrong(name[:200], "must be text; the file is called `file`")
            upload = Upload(value.file, value.filename, value.content_type)
        elif name == "file":
            raise _wrong("file", "must be a file, with a name")
        elif value:  # an empty field of a form says nothing
            fields[name] = _metadata(value) if name == "metadata" else value
    if upload is None:
        return Sent(_with_text(_checked(fields)), form=form)
    if "text" in fields:
        raise _wrong("text", "and `file` are given; send one of them")
    return Sent(_checked(fields), upload, form)


def _metadata(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _wrong("metadata", "is not valid JSON") from None


def _checked(said: Any) -> DocumentRequest:
    try:
        return DocumentRequest.model_validate(said)
    except ValidationError as error:
        problems: Sequence[Any] = [{**item, "loc": ("body", *item["loc"])} for item in error.errors()]
        raise RequestValidationError(problems) from None


def _with_text(said: DocumentRequest) -> DocumentRequest:
    if said.text is None:
        raise _wrong("text", "is missing; or send a form with a `file`")
    return said


def _wrong(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"The request is not valid: see {field}.", problems=[Problem(field, problem)])
