"""The floor: a bare FastAPI endpoint that makes the one chat call with the same client library, and nothing else.

`MODEL_URL=… python -m benchmarks.floor` prints its port. The library is langchain-openai, as in the service.
"""

import os
import socket

import uvicorn
from fastapi import FastAPI
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr


class Question(BaseModel):
    """The service's own body, as far as the floor needs it."""

    user_id: str
    thread_id: str
    message: str


def create_app(model_url: str) -> FastAPI:
    """Create the endpoint, at the service's own path."""
    app = FastAPI()
    chat = ChatOpenAI(model="fake-chat", base_url=model_url, api_key=SecretStr("none"), stream_usage=True)

    @app.post("/api/agent")
    async def answer(body: Question) -> dict[str, str]:  # pyright: ignore[reportUnusedFunction]  # the route
        reply = await chat.ainvoke([{"role": "user", "content": body.message}])
        return {"reply": str(reply.text)}

    return app


def serve(app: FastAPI) -> None:
    """Print a free loopback port and serve `app` there until killed."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        print(bound.getsockname()[1], flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[bound])


if __name__ == "__main__":
    serve(create_app(os.environ["MODEL_URL"]))
