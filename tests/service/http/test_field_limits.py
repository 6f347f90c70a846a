"""Whatever a request may say has an end: each text, list and number of the OpenAPI text is bounded."""

from collections.abc import Iterator
from typing import Any

import pytest

from recollect.api.app import app

Json = dict[str, Any]
BY_THE_BODY = {
    # OpenAI's own fields, passed on to the model as they come: bounded by the body's 1,000,000 bytes.
    *("messages", "tools", "stop", "user", "input", "instructions", "items"),
    # Checked by their own limits, which settings can change: MAX_UPLOAD_MB and MAX_DOCUMENT_CHARACTERS.
    *("text", "file", "metadata"),
}
BY_THEIR_PATHS = {"document_id", "key", "model_id"}
"""Nothing that is longer than any id, key or model is found."""


@pytest.fixture(scope="module")
def document() -> Json:
    return app.openapi()


OPENAIS = ("/v1/chat/completions", "/v1/responses", "/v1/conversations", "/items")
"""OpenAI's own bodies, whose further fields are taken and left alone."""


def asked(document: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield each parameter and each field of a body: operation, name and schema."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            label = f"{method} {path}"
            for parameter in operation.get("parameters", ()):
                yield label, parameter["name"], parameter["schema"]
            for media, content in operation.get("requestBody", {}).get("content", {}).items():
                if media in {"application/json", "multipart/form-data"}:
                    yield from fields_of(document, label, resolved(document, content["schema"]))


def fields_of(document: Json, label: str, schema: Json) -> Iterator[tuple[str, str, Json]]:
    for kind in schema.get("anyOf", schema.get("oneOf", [schema])):
        whole = resolved(document, kind)
        if whole == {"type": "null"}:
            continue
        if whole.get("type") == "array":
            assert whole["maxItems"], label
            yield from fields_of(document, label, resolved(document, whole["items"]))
            continue
        assert whole.get("additionalProperties") is False or label.endswith(OPENAIS), label
        for name, field in whole["properties"].items():
            inner = [resolved(document, one) for one in field.get("anyOf", [field])]
            objects = [one for one in inner if "properties" in one]
            for one in objects:
                yield from fields_of(document, label, one)
            if not objects:
                yield label, name, {"anyOf": inner}


def resolved(document: Json, schema: Json) -> Json:
    if "$ref" not in schema:
        return schema
    found: Json = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def unbounded(schema: Json) -> str | None:
    """Return what of the schema has no end, if anything."""
    for kind in schema.get("anyOf", [schema]):
        if "enum" in kind or "const" in kind:
            continue
        if kind.get("type") == "string" and not {"maxLength", "pattern", "format"} & set(kind):
            return "string"
        if kind.get("type") == "array":
            if "maxItems" not in kind:
                return "array"
            found = unbounded(kind["items"])
            if found:
                return f"array of {found}"
    return None


def test_every_text_and_list_of_a_request_has_an_end(document: Json) -> None:
    endless = {
        (label, name, found)
        for label, name, schema in asked(document)
        if name not in BY_THE_BODY | BY_THEIR_PATHS and (found := unbounded(schema)) is not None
    }
    assert endless == set()
