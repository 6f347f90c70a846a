"""Sources of typed lines: a line editor at the terminal (`line_editor.py`), or a pipe."""

import sys
from abc import abstractmethod
from typing import Protocol

from typing_extensions import override


class Lines(Protocol):
    """Returns one typed line after the other."""

    @abstractmethod
    def read(self, prompt: str) -> str:
        """Return the next line.

        Raises:
            EOFError: there is none.
            KeyboardInterrupt: the line was given up.
        """
        ...


class PipedLines(Lines):
    """Reads lines from a standard input that is no terminal; prompts are not shown."""

    @override
    def read(self, prompt: str) -> str:
        typed = sys.stdin.readline()
        if not typed:
            raise EOFError
        return storable(typed.rstrip("\r\n"))


def storable(typed: str) -> str:
    """Return the line without bytes that are no text, which no store could hold."""
    return typed.encode("utf-8", "replace").decode()
