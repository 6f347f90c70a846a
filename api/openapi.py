"""The OpenAPI text, with examples that show null as null: FastAPI leaves every None out of the whole document."""

from typing import Any

from fastapi import FastAPI

from api.answers import EXAMPLE_TURN

SHOWING_A_TURN = (("/api/agent", "post"), ("/api/turns/{turn_id}", "get"))


def install(app: FastAPI) -> None:
    """Put the example of a turn back whole wherever one is answered."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            described = FastAPI.openapi(app)
            for path, method in SHOWING_A_TURN:
                answer = described["paths"][path][method]["responses"]["200"]
                answer["content"]["application/json"]["example"] = EXAMPLE_TURN
            app.openapi_schema = described
        return app.openapi_schema

    app.openapi = document
