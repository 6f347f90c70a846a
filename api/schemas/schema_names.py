"""Names the schemas of answers, for routes that exist from the start: a start neither imports nor builds the answers.

`openapi.py` adds the named schemas when somebody asks for the text.
"""

from typing import Any, Literal

PLACE = "#/components/schemas/{model}"
"""Where the OpenAPI text has the schema of a model."""
EarlyAnswer = Literal["ErrorAnswer", "HealthAnswer", "ReadyAnswer", "TurnAnswer"]


def answer_of(model: EarlyAnswer, description: str | None = None) -> dict[str, Any]:
    """Describe a route's JSON answer: the name of its model in `answers.py`, and what the answer means."""
    described = {} if description is None else {"description": description}
    return {"content": {"application/json": {"schema": {"$ref": PLACE.format(model=model)}}}, **described}
