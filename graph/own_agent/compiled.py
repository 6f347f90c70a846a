"""Follows an agent that is a compiled graph: its models' words and its tools as they come, and its last values."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages

from recollect.graph.own_agent.counted_tokens import CountedTokens, counting
from recollect.graph.own_agent.generator import FAILED, close
from recollect.graph.prompts import Prompt
from recollect.graph.spoken import Spoken
from recollect.graph.state import Json
from recollect.graph.tool_uses import ToolUses
from recollect.graph.turn_result import SAID_SEPARATOR

MESSAGES = "messages"
"""The key of a `MessagesState`."""
MOST_DEPTH = 4
"""How deep messages lie in what a node writes."""


def reads_messages(graph: Any) -> bool:
    """Tell whether the graph's state has `messages`."""
    return MESSAGES in graph.channels


async def follow_graph(graph: Any, state: Json, prompt: Prompt | None, spoken: Spoken, uses: ToolUses) -> Any:
    """Run the graph on the turn's state, and return its last values with what they leave out.

    A graph that `reads_messages` is given the `prompt` as these. Without a `reply` in its values, the reply is
    what its models have said in its new messages: the last one, and those that call tools. Without `usage`, the tokens
    of all its models are counted.
    """
    prompted = convert_to_messages(prompt.messages) if prompt is not None else []
    for message in prompted:
        message.id = str(uuid4())
    given = {**state, MESSAGES: prompted} if prompt is not None else state
    reading = _GraphReading(spoken, uses, tuple(tool["function"]["name"] for tool in state["tools"]))
    with counting() as counted:
        values = await _run(graph, given, reading, counted)
    if not isinstance(values, Mapping):
        return values
    answer = _answer(cast("Json", values), state, counted)
    if prompt is None:
        return answer
    known = {message.id for message in prompted}
    new = [message for message in _messages(answer[MESSAGES], MOST_DEPTH) if message.id not in known]
    return {**_spoken_for(answer, new), "block": prompt.block}


async def _run(graph: Any, given: Json, reading: "_GraphReading", counted: CountedTokens) -> Any:
    """Read the graph's stream to its end, and return the last values of its own state."""
    values: Any = None
    outermost: tuple[str, ...] | None = None
    # Graphs inside the graph are read too: an agent of a node streams nothing otherwise.
    stream: AsyncGenerator[Any, None] = graph.astream(
        given, stream_mode=["messages", "updates", "values"], subgraphs=True
    )
    try:
        async for place, mode, item in stream:
            if mode == "values":
                outermost = place if outermost is None else outermost
                values = item if place == outermost else values
            elif mode == "messages":
                counted.add(item[0])
                reading.speak(item[0])
            else:
                reading.use_tools(item)
    finally:
        await close(stream)
    return values


class _GraphReading:
    """Shows what a graph's stream brings. Calls of the `offered` tools are the turn's own, which answers them later."""

    def __init__(self, spoken: Spoken, uses: ToolUses, offered: Sequence[str]) -> None:
        self._spoken = spoken
        self._uses = uses
        self._offered = offered
        self._speaking: str | None = None
        self._read = set[str]()

    def speak(self, message: BaseMessage) -> None:
        """Show a piece of a model's message, or a whole one."""
        if not isinstance(message, AIMessage) or not (text := str(message.text)):
            return
        if message.id != self._speaking:
            self._speaking = message.id
            self._spoken.begin_message()
        self._spoken.say(text)

    def use_tools(self, update: object) -> None:
        """Show the calls and results in what nodes have written; a graph inside writes what its node writes again."""
        for message in _messages(update, MOST_DEPTH):
            if message.id is not None and message.id in self._read:
                continue
            self._read.add(message.id or "")
            if isinstance(message, ToolMessage):
                self._end(message)
            elif isinstance(message, AIMessage):
                for place, call in enumerate(message.tool_calls):
                    if call["name"] not in self._offered:
                        self._uses.begin(call["id"] or f"{message.id}-{place}", call["name"], call["args"])

    def _end(self, message: ToolMessage) -> None:
        call_id = str(message.tool_call_id)
        if not self._uses.is_open(call_id):
            self._uses.begin(call_id, message.name or "", {})
        self._uses.end(call_id, str(message.text), error=FAILED if message.status == "error" else None)


def _answer(values: Json, state: Json, counted: CountedTokens) -> Json:
    """Return the fields of an answer among the values, with the counted tokens where they name none of their own."""
    answer = {name: values.get(name) for name in ("reply", "tool_calls", "model", "usage", MESSAGES)}
    # The graph was given the usage of the turn's earlier rounds.
    is_own = answer["usage"] and answer["usage"] != state["usage"]
    return answer if is_own else {**answer, "usage": counted.usage()}


def _spoken_for(answer: Json, new: Sequence[BaseMessage]) -> Json:
    """Return the answer with the reply and the model of the graph's `new` messages, where it names none of its own."""
    said = [message for message in new if isinstance(message, AIMessage)]
    if not said:
        return answer
    texts = [str(one.text) for one in said[:-1] if one.tool_calls] + [str(said[-1].text)]
    more: Json = {}
    if answer["reply"] is None and not answer["tool_calls"]:
        more["reply"] = SAID_SEPARATOR.join(filter(None, texts)) or None
    if not answer["model"]:
        more["model"] = said[-1].response_metadata.get("model_name")
    return {**answer, **more}


def _messages(value: object, levels: int) -> Iterator[BaseMessage]:
    """Yield the messages in a value's mappings and sequences."""
    if isinstance(value, BaseMessage):
        yield value
    elif levels and isinstance(value, Mapping):
        for inner in cast("Mapping[str, object]", value).values():
            yield from _messages(inner, levels - 1)
    elif levels and isinstance(value, list | tuple):
        for inner in cast("Sequence[object]", value):
            yield from _messages(inner, levels - 1)
