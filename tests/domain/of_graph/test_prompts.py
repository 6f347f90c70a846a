from typing import Any

from recollect.graph.prompts import chat_messages


def test_messages_stand_in_the_order_of_the_talk() -> None:
    window = [{"role": "user", "content": "A", "id": "1"}, {"role": "assistant", "content": "B", "id": "2"}]
    exchange: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "tool", "content": "found"},
    ]
    made = chat_messages(instructions="Be good.", message="C", window=window, memory="BLOCK", exchange=exchange)
    assert made == [
        {"role": "system", "content": "Be good.\n\nBLOCK"},
        {"role": "user", "content": "A"},
        {"role": "assistant", "content": "B"},
        {"role": "user", "content": "C"},
        *exchange,
    ]


def test_without_memory_the_instructions_stand_alone() -> None:
    made = chat_messages(instructions="Be good.", message="C", window=[], memory="")
    assert made == [{"role": "system", "content": "Be good."}, {"role": "user", "content": "C"}]
