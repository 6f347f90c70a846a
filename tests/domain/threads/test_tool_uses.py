"""Uses of tools that came from elsewhere: their bounds, and whose texts go with which source."""

import json
from typing import Any

from recollect.memory.threads.recorded_hits import bounded_result, of_document, of_thread, result_without
from recollect.memory.values.tool_use import call_of, result_of, use_of, uses_of

RESULT: dict[str, Any] = {"model": "m", "memory": {"facts": {}, "hits": []}}
PASSAGE = {"id": "p", "kind": "document", "content": "secret", "thread_id": None, "document": {"id": "d", "title": "T"}}
SAID = {"id": "m", "kind": "episode", "content": "secret", "thread_id": "t1", "turn_id": "a"}


def test_what_is_kept_is_bounded() -> None:
    call = call_of("i" * 500, "n" * 500, {"text": "x" * 10_000, "number": float("nan"), "deep": [[[{"a": (1, 2)}]]]})
    use = use_of(call, "\x00" + "c" * 50_000, ms=1.5, found=[SAID] * 80)
    (kept,) = uses_of(bounded_result({**RESULT, "tools": [use]}))
    assert kept == use
    assert (len(kept["id"]), len(kept["name"]), len(kept["content"]), len(kept["found"])) == (200, 200, 10_000, 50)
    assert len(json.dumps(kept["args"])) <= 4_000
    assert (kept["args"]["number"], kept["args"]["deep"]) == (None, [[[{"a": [1, 2]}]]])
    assert kept["content"].startswith("?c")
    assert len(uses_of(bounded_result({**RESULT, "tools": [use] * 60}))) == 50


def test_only_uses_that_found_the_source_are_blanked_and_no_text_names_it() -> None:
    call = call_of("1", "search_memory", {"query": "secret"})
    of_passage, of_message = use_of(call, "secret", found=[PASSAGE]), use_of(call, "secret", found=[SAID])
    assert "secret" not in json.dumps(of_passage["found"])
    own = use_of(call, "secret")
    result = {**RESULT, "tools": [of_passage, of_message, own]}
    assert [use["content"] for use in uses_of(result_without(result, of_document("d")))] == ["", "secret", "secret"]
    cleaned = result_without(result, of_thread("t1"))
    assert [use["content"] for use in uses_of(cleaned)] == ["secret", "", "secret"]
    assert uses_of(cleaned)[1]["args"] == {}
    assert result_without(cleaned, of_thread("t1")) is cleaned
    assert result_without(result, of_thread("t2")) is result
    assert result_of(call, "secret") == {"id": "1", "name": "search_memory", "content": "secret"}
