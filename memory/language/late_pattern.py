"""Regular expressions that are compiled when they are first used, so that a start does not wait for them.

Compiling those that a turn may need takes a fourteenth of a start. A service compiles them once it is ready.
"""

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
_WAITING = list["_LatePattern"]()
"""Those that `compile_late_patterns` has not seen yet."""


class _LatePattern:
    """Compiles its source at the first use, and from then on has the pattern's methods as its own."""

    def __init__(self, source: str, flags: int) -> None:
        self._source = source
        self._flags = flags
        _WAITING.append(self)

    def __getattr__(self, name: str) -> Any:
        """Return this attribute of the compiled pattern. Python asks for those alone that the object does not have."""
        compiled = re.compile(self._source, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def late_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """Return what can be used as `re.compile(source, flags)`, except as an argument of `re`'s own functions.

    A wrong expression raises `re.error` at its first use.
    """
    return cast("re.Pattern[str]", _LatePattern(source, flags))


def compile_late_patterns() -> None:
    """Compile every pattern that was imported and not used yet. It takes 0.1 s: an event loop calls it in a thread."""
    while _WAITING:
        _WAITING.pop().__getattr__("search")
