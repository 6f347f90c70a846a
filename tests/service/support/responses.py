"""Uses OpenAI's own Python client for responses."""

from typing import Any

import openai
from openai.types.responses import Response

from tests.service.support.running import Service
from tests.service.support.scripts import texts

Json = dict[str, Any]


def ask(client: openai.OpenAI, user: str, said: Any, **fields: Any) -> Response:
    """Return a response that must succeed."""
    extra = {"user": user, **fields.pop("extra_body", {})}
    create: Any = client.responses.create
    answer: Response = create(model="fake-chat", input=said, extra_body=extra, **fields)
    assert answer.object == "response"
    return answer


def fate_of(answer: Response) -> Json:
    """Return what became of the response's turn."""
    extra = answer.model_extra or {}
    found: Json = extra["memory"]
    return found


def stored(running: Service, user: str, answer: Response) -> list[tuple[str, str]]:
    """Return the messages of the response's thread."""
    thread: str = fate_of(answer)["thread_id"]
    return texts(running, user=user, thread=thread)
