"""The bodies that the scripted server sends: completions, streamed pieces, embeddings."""

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, cast
from zlib import crc32

import numpy as np

Body = dict[str, Any]
Answer = str | int | bytes | Mapping[str, Any]

AGENT_TOOLS = frozenset({"search_memory", "remember_fact"})
CLIENT_TOOLS = frozenset({"get_weather", "get_time"})
"""The tools of chat clients in tests."""
_USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


def call(name: str, /, **args: Any) -> Body:
    """Return a message that calls one tool."""
    return {"content": None, "tool_calls": [{"id": f"call_{name}", "name": name, "arguments": json.dumps(args)}]}


def vector_of(text: str, dimensions: int) -> list[float]:
    """Return the default embedding: each word adds one to its place."""
    vector = [0.001] * dimensions
    for word in text.lower().replace("'s", "").split():
        vector[crc32(word.strip(".,!?'\"").encode()) % dimensions] += 1.0
    return vector


def extraction_tool(body: Body) -> Body | None:
    """Return the function of an extraction request, None for any other."""
    functions = [tool["function"] for tool in body.get("tools") or ()]
    return next((function for function in functions if function["name"] not in AGENT_TOOLS | CLIENT_TOOLS), None)


def array_property(function: Body) -> str:
    properties = cast("dict[str, Body]", function["parameters"]["properties"])
    return next(name for name, schema in properties.items() if schema.get("type") == "array")


def response(answer: Answer) -> bytes:
    status, kind = 200, b"application/json"
    if isinstance(answer, int):
        status, content = answer, json.dumps({"error": {"message": f"scripted {answer}", "code": None}}).encode()
    elif isinstance(answer, bytes):
        kind, content = b"text/html", answer
    else:
        body = dict(answer) if isinstance(answer, Mapping) else {}
        status = body.pop("status", 200)
        content = json.dumps(body).encode()
    head = b"HTTP/1.1 %d Scripted\r\ncontent-type: %s\r\ncontent-length: %d\r\n" % (status, kind, len(content))
    # Without this the client's own pause before a retry would cost each test half a second.
    return head + b"retry-after-ms: 5\r\n\r\n" + content


def _calls(message: Mapping[str, Any]) -> list[Body]:
    return [
        {"id": item["id"], "type": "function", "function": {"name": item["name"], "arguments": item["arguments"]}}
        for item in message.get("tool_calls") or ()
    ]


def completion(body: Body, message: Mapping[str, Any]) -> Body:
    whole: Body = {"role": "assistant", "content": message.get("content")}
    if calls := _calls(message):
        whole["tool_calls"] = calls
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": whole}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]} | {
        "usage": _USAGE
    }


def pieces(body: Body, message: Mapping[str, Any]) -> list[bytes]:
    text = message.get("content") or ""
    deltas: list[Body] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word + " "} for word in text.split(" ")[:-1]] + [{"content": text.split(" ")[-1]}] * bool(
        text
    )
    for number, item in enumerate(_calls(message)):
        arguments = item["function"]["arguments"]
        half = len(arguments) // 2
        begin = item | {"index": number, "function": item["function"] | {"arguments": arguments[:half]}}
        deltas += [{"tool_calls": [begin]}]
        deltas += [{"tool_calls": [{"index": number, "function": {"arguments": arguments[half:]}}]}]
    chunk: Body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    found: list[Body] = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    found += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    options: Body = body.get("stream_options") or {}
    if options.get("include_usage"):
        found += [{"choices": [], "usage": _USAGE}]
    return [json.dumps(chunk | part).encode() for part in found] + [b"[DONE]"]


def embedding(body: Body, *, dimensions: int, floats_only: bool) -> Body:
    """Return the default answer to an embedding request."""
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    vectors: list[Any] = [vector_of(text, body.get("dimensions") or dimensions) for text in texts]
    if body.get("encoding_format") == "base64" and not floats_only:
        vectors = [b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode() for vector in vectors]
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "model": body["model"], "data": data, "usage": usage}
