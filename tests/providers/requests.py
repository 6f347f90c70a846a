"""Requests that several tests make."""

from recollect.memory.ports.chat_model import ChatModel, ChatReply, ChatRequest, ToolSpec

SEARCH: ToolSpec = {
    "type": "function",
    "function": {
        "name": "search_memory",
        "description": "Search what is remembered.",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
    },
}
DECIDE: ToolSpec = {
    "type": "function",
    "function": {
        "name": "record_decisions",
        "description": "Record decisions.",
        "parameters": {
            "type": "object",
            "properties": {"decisions": {"type": "array", "items": {"type": "object"}}, "note": {"type": "string"}},
        },
    },
}
HELLO = ChatRequest(messages=[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}])
WITH_TOOLS = ChatRequest(messages=HELLO.messages, tools=[SEARCH])
EXTRACT = ChatRequest(messages=HELLO.messages, tools=[DECIDE], tool_choice="record_decisions")
AS_JSON = ChatRequest(messages=HELLO.messages, json_mode=True)


async def streamed(model: ChatModel, request: ChatRequest) -> tuple[list[str], ChatReply]:
    pieces: list[str] = []
    async for item in model.stream(request):
        if isinstance(item, ChatReply):
            return pieces, item
        pieces.append(item)
    raise AssertionError
