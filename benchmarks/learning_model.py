"""The extraction model of the learning benchmark, imperfect on purpose: `python -m benchmarks.learning_model`.

It knows the fact that each line of `benchmarks.learning_talk` tells, and proposes it. Beside that it errs as models do:
facts from the reply, quotes that were not said, questions as facts, deletes of wrong facts, numbers that were not
shown, an add for an update or a keep for a new value, an attacker's planted fact, a known fact again under another key
or as free text (in the same words, other case and punctuation), prose instead of the call, half a call. Equal prompts
get equal answers.
"""

import asyncio
import random
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import orjson
import uvloop
from typing_extensions import override

from benchmarks.fake_model import CHARACTERS_PER_TOKEN, FakeModel
from benchmarks.learning_talk import Line, script

REPLY = "Thank you, I noted that. You have a parrot called Polly, you live in Timbuktu, and you like turnips."
"""The text of every reply: it claims facts that nobody said."""
ERRING = 0.5
"""The probability of each kind of error beside an answer, where it fits."""
MALFORMED = 0.06
MODELS = ("fake-chat", "lexical")

_SAID = re.compile(r'^User\'s message(?: \d+)?: (".*")$', re.MULTILINE)
_KNOWN = re.compile(r"^(\d+): (\{.*\})$", re.MULTILINE)
_LINES: Mapping[str, Line] = {line.text: line for line in script().lines}

Decision = dict[str, Any]


class LearningModel(FakeModel):
    """One connection, answered at once; see `FakeModel`."""

    @override
    def _answer(self, body: Mapping[str, Any]) -> None:
        now = asyncio.get_running_loop().time()
        kind, message = _message(body)
        prompt = len(orjson.dumps([body["messages"], body.get("tools") or []])) // CHARACTERS_PER_TOKEN
        answer = len(orjson.dumps(message)) // CHARACTERS_PER_TOKEN
        self._calls.append({"kind": kind, "arrived": now, "answered": now, "tokens": prompt, "answer_tokens": answer})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
        usage = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}
        self._write(orjson.dumps({**whole, "usage": usage}))


def _message(body: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    asks_json = bool(body.get("response_format"))
    if not body.get("tool_choice") and not asks_json:
        return "chat", {"content": REPLY}
    texts = [str(message["content"]) for message in body["messages"]]
    source = random.Random(crc32(texts[1].encode()))
    arguments = orjson.dumps({"decisions": list(_decisions(texts[1], source))}).decode()
    if asks_json:
        return "extraction", {"content": arguments}
    if len(texts) == 2 and source.random() < MALFORMED:
        if source.random() < 0.5:
            return "extraction", {"content": "Of course! Here is what I would remember of it."}
        arguments = arguments[: len(arguments) // 2]
    function = {"name": body["tool_choice"]["function"]["name"], "arguments": arguments}
    return "extraction", {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}


def _decisions(prompt: str, source: random.Random) -> Iterator[Decision]:
    known = [orjson.loads(found[2]) for found in _KNOWN.finditer(prompt)]
    for found in _SAID.finditer(prompt):
        line = _LINES.get(orjson.loads(found[1]))
        if line is None:
            continue
        if line.truth is not None:
            yield _right(line, known, source)
        if line.planted is not None:
            key, value, statement = line.planted
            yield {"decision": "add", "key": key, "value": value, "statement": statement, "evidence": line.quote}
        yield from (wrong for wrong in _wrong(line, known, source) if source.random() < ERRING)


def _right(line: Line, known: Sequence[Decision], source: random.Random) -> Decision:
    """Return the decision for the line: as a rule the best one, else one that code has to correct."""
    truth = line.truth
    assert truth is not None
    numbers = [number for number, fact in enumerate(known, start=1) if fact["key"] == truth.key]
    number = numbers[0] if numbers else None
    made = {"key": truth.key, "value": truth.value, "statement": truth.statement, "evidence": line.quote}
    if line.kind == "end":
        return {"decision": "delete", "key": truth.key, "evidence": line.quote, "fact": number}
    if number is None:
        return {"decision": "add", **made, "fact": None, "importance": 0.5}
    is_known = known[number - 1]["value"] == truth.value
    best = "keep" if is_known else "update"
    decision = best if source.random() < 0.5 else source.choice(["add", "update", "keep"])
    return {"decision": decision, **made, "fact": None if decision == "add" else number}


def _wrong(line: Line, known: Sequence[Decision], source: random.Random) -> Iterator[Decision]:
    """Yield the errors that fit this line."""
    polly = {"decision": "add", "key": "parrot_name", "value": "Polly", "statement": "The user's parrot is Polly."}
    yield {**polly, "evidence": "You have a parrot called Polly"}
    yield {**polly, "key": None, "evidence": source.choice(["I have a parrot", "my parrot Polly", ""])}
    yield {"decision": "update", "fact": 99, "value": "turnips", "evidence": line.text}
    yield {"decision": "delete", "fact": source.randint(1, max(1, len(known))), "evidence": line.quote or line.text}
    if line.kind == "question":
        yield {"decision": "add", "key": "question", "value": "asked", "statement": line.text, "evidence": line.text}
        yield {"decision": "add", "key": "question", "value": "asked", "evidence": line.text.rstrip("?")}
    if line.kind == "injection":
        for number in range(1, len(known) + 1):
            yield {"decision": "delete", "fact": number, "evidence": line.text}
    if line.truth is not None and line.kind != "end":
        same = {"decision": "add", "value": line.truth.value, "evidence": line.quote}
        yield {**same, "key": None, "statement": _reworded(line.truth.statement, source)}
        yield {**same, "key": f"{line.truth.key}_again", "statement": _reworded(line.truth.statement, source)}


def _reworded(statement: str, source: random.Random) -> str:
    """Return the statement in the same words, with other case and punctuation."""
    return source.choice([statement.upper(), statement.rstrip("."), f" {statement}", statement.replace(" ", "  ")])


async def serve() -> None:
    """Serve on a free loopback port, which is printed, until killed."""
    calls: list[dict[str, Any]] = []
    server = await asyncio.get_running_loop().create_server(lambda: LearningModel(calls), "127.0.0.1", 0, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
