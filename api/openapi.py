"""The OpenAPI text, with examples that show null as null: FastAPI omits every None from the whole document."""

from collections.abc import Callable
from typing import Any, get_args

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from recollect.api.openai_errors import is_openais
from recollect.api.schemas.schema_names import PLACE, EarlyAnswer

SHOWING_A_TURN = (
    ("/api/agent", "post"),
    ("/api/turns/{turn_id}", "get"),
    ("/api/turns/{turn_id}/regenerate", "post"),
)
MESSAGES = (
    ("AgentRequest", "message"),
    ("ContextRequest", "message"),
    ("SaidByUser", "content"),
    ("SaidFurther", "content"),
    ("MessageRequest", "content"),
    ("SearchRequest", "query"),
    ("LessonRequest", "content"),
)
"""The fields whose length a setting bounds."""

BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "A key (AUTH=api_key) or a token (AUTH=jwt); with AUTH=none nothing is needed.",
}


def install_openapi(app: FastAPI, *, most_characters: Callable[[], int], add_routes: Callable[[], None]) -> None:
    """Restore the examples of turns, describe authentication, and correct parameters.

    `most_characters` bounds messages (MAX_MESSAGE_CHARACTERS); `add_routes` adds those that nobody has asked for yet.
    """

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            from recollect.api.schemas import answers

            add_routes()
            described = FastAPI.openapi(app)
            _add_early_answers(described["components"])
            for path, method in SHOWING_A_TURN:
                answer = described["paths"][path][method]["responses"]["200"]
                answer["content"]["application/json"]["example"] = answers.EXAMPLE_TURN
            for path in filter(is_openais, described["paths"]):
                for operation in described["paths"][path].values():
                    # Invalid requests answer 400 there; FastAPI gives every route the application's 422.
                    operation["responses"].pop("422", None)
            for methods in described["paths"].values():
                for operation in methods.values():
                    _correct(operation)
            for schema, field in MESSAGES:
                described["components"]["schemas"][schema]["properties"][field]["maxLength"] = most_characters()
            described["components"]["securitySchemes"] = {"bearer": BEARER}
            described["security"] = [{}, {"bearer": []}]
            app.openapi_schema = described
        return app.openapi_schema

    app.openapi = document


def _add_early_answers(components: dict[str, Any]) -> None:
    """Add the schemas of answers that routes only name, with those that they consist of."""
    from recollect.api.schemas import answers

    models: list[type[BaseModel]] = [getattr(answers, name) for name in get_args(EarlyAnswer)]
    _, found = models_json_schema([(model, "serialization") for model in models], ref_template=PLACE)
    components["schemas"] = dict(sorted({**found["$defs"], **components["schemas"]}.items()))


def _correct(operation: dict[str, Any]) -> None:
    """Remove null from parameters' types, and the JSON answer where there is none."""
    for parameter in operation.get("parameters", ()):
        parameter["schema"] = _without_null(parameter["schema"])
    for answer in operation["responses"].values():
        content = answer.get("content", {})
        if len(content) > 1 and content.get("application/json") == {"schema": {}}:
            del content["application/json"]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without null: a URL and a header cannot express it."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**kinds[0], **{name: value for name, value in schema.items() if name != "anyOf"}}
