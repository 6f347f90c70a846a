"""The tools that an agent used in a turn, as the turn keeps and shows them: plain JSON of a bounded size.

A use is `{"id", "name", "args", "content", "ms", "error"}`: what was asked of the tool, what it answered, how long that
took (milliseconds; None where nobody measured it) and why it failed (None where it did not). A stored use also has
`found`: what a search of the agent's own found, as `source_of` names it, so that the use can be blanked with it.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from recollect.memory.values.text import cut

Json = dict[str, Any]

MOST_USES = 50
"""The most uses of one turn that are kept and shown."""
MOST_NAME_CHARACTERS = 200
MOST_ARGS_CHARACTERS = 4_000
"""The most characters of a use's `args` as JSON."""
MOST_CONTENT_CHARACTERS = 10_000
MOST_FOUND = 50
MOST_DEPTH = 12
"""The most levels of a use's `args`: what is nested deeper is left out."""
_SHOWN = ("id", "name", "args", "content", "ms", "error")


def call_of(call_id: str, name: str, args: Mapping[str, Any]) -> Json:
    """Return a call as it is kept and shown: texts that a store can hold, within their bounds."""
    return {
        "id": _fitting(call_id, MOST_NAME_CHARACTERS),
        "name": _fitting(name, MOST_NAME_CHARACTERS),
        "args": _fitting_args(args),
    }


def result_of(call: Mapping[str, Any], content: str) -> Json:
    """Return what the tool answered to `call`, as it is kept and shown."""
    return {"id": call["id"], "name": call["name"], "content": _fitting(content, MOST_CONTENT_CHARACTERS)}


def use_of(
    call: Mapping[str, Any],
    content: str,
    *,
    ms: float | None = None,
    error: str | None = None,
    found: Sequence[Mapping[str, Any]] = (),
) -> Json:
    """Return a use as a turn keeps it; `found` are the hits of a search of the agent's own."""
    use: Json = {**call, **result_of(call, content), "ms": ms, "error": error}
    return {**use, "found": [source_of(hit) for hit in found[:MOST_FOUND]]} if found else use


def source_of(hit: Mapping[str, Any]) -> Json:
    """Return what tells where a hit is from, without its text."""
    document: object = hit.get("document")
    source = {name: hit.get(name) for name in ("id", "kind", "thread_id", "turn_id")}
    if not isinstance(document, Mapping):
        return source
    return {**source, "document": {"id": cast("Mapping[str, Any]", document).get("id")}}


def uses_of(result: Mapping[str, Any]) -> Sequence[Json]:
    """Return the uses that a turn's result keeps; turns of earlier versions keep none."""
    uses: Sequence[Json] = result.get("tools") or ()
    return uses


def shown_use(use: Mapping[str, Any]) -> Json:
    """Return a stored use as the HTTP contract shows it."""
    return {name: use.get(name) for name in _SHOWN}


def bounded_use(use: Mapping[str, Any]) -> Json:
    """Return a use that came from elsewhere within the bounds."""
    call = call_of(use["id"], use["name"], use["args"])
    kept = use_of(call, use["content"], ms=use.get("ms"), error=use.get("error"), found=use.get("found") or ())
    return {**kept, "error": None if kept["error"] is None else _fitting(kept["error"], MOST_NAME_CHARACTERS)}


def uses_without(result: Mapping[str, Any], is_gone: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
    """Return the result without the texts of uses for which `is_gone` holds; `result` itself if there are none."""
    uses = uses_of(result)
    kept = [blank(use) if is_gone(use) else use for use in uses]
    return result if kept == list(uses) else {**result, "tools": kept}


def blank(use: Mapping[str, Any]) -> Json:
    """Return the use without its texts; its id, its name and its time stay."""
    return {name: value for name, value in use.items() if name != "found"} | {"args": {}, "content": ""}


def _fitting_args(args: Mapping[str, Any]) -> Json:
    """Return the arguments within MOST_ARGS_CHARACTERS: whole, with their texts cut, or none at all."""
    plain: Json = _plain(args, MOST_DEPTH)
    if _size(plain) <= MOST_ARGS_CHARACTERS:
        return plain
    share = MOST_ARGS_CHARACTERS // (2 * len(plain))
    shorter = {name: cut(value, share) if isinstance(value, str) else value for name, value in plain.items()}
    return shorter if _size(shorter) <= MOST_ARGS_CHARACTERS else {}


def _plain(value: object, levels: int) -> Any:
    """Return JSON that every store can hold; what is nested deeper than `levels` is None."""
    if isinstance(value, str):
        return _storable(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if levels == 0:
        return None
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {_storable(str(name)): _plain(item, levels - 1) for name, item in items}
    if isinstance(value, list | tuple):
        return [_plain(item, levels - 1) for item in cast("Sequence[object]", value)]
    return _storable(str(value))


def _fitting(text: str, characters: int) -> str:
    return cut(_storable(text), characters)


def _storable(text: str) -> str:
    """Return the text with NUL and lone surrogates replaced by "?"."""
    return text.replace("\x00", "?").encode("utf-8", "replace").decode()


def _size(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False))
