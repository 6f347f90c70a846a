"""Quoting for prompts: every text that was stored, recalled or said enters them as JSON on one line.

So no quoted text can end its line, its quotation, or the block that it stands in: no value, title or name, and no key
either, because an import may have brought it.
"""

import json

_LINE_ENDS = {ord(char): f"\\u{ord(char):04x}" for char in "\x7f\x85\u2028\u2029"}
"""Characters that some reader takes for the end of a line and JSON does not escape."""
_CLOSING = _LINE_ENDS | {ord("<"): "\\u003c"}


_written = json.JSONEncoder(ensure_ascii=False).encode
"""Kept, because `json.dumps` makes an encoder at each call, which takes longer than a short text."""


def quoted(data: object) -> str:
    """Return the data as JSON on one line."""
    text = _written(data)
    return text if _is_plain(text) else text.translate(_LINE_ENDS)


def quoted_in_block(data: object) -> str:
    """Return the data as JSON on one line, without "<": it cannot close a block such as <memory>."""
    text = _written(data)
    return text if _is_plain(text) and "<" not in text else text.translate(_CLOSING)


def _is_plain(text: str) -> bool:
    """Tell, in less time than replacing takes, that `text` has no character that ends a line for some reader."""
    return text.isascii() and "\x7f" not in text
