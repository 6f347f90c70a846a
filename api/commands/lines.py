"""Where typed lines come from: a line editor at the terminal (`line_editor.py`), or a pipe."""

import sys
from typing import Protocol


class Lines(Protocol):
    """Gives one typed line after the other."""

    def read(self, prompt: str) -> str:
        """The next line.

        Raises:
            EOFError: there is none.
            KeyboardInterrupt: the line was given up.
        """
        ...

    def ask(self, question: str) -> str:
        """The answer to a question, which is nothing to remember; empty where there is none."""
        ...


class PipedLines:
    """Standard input's, which is no terminal; prompts are not shown."""

    def read(self, prompt: str) -> str:
        """See `Lines`."""
        typed = sys.stdin.readline()
        if not typed:
            raise EOFError
        return storable(typed.rstrip("\r\n"))

    def ask(self, question: str) -> str:
        """See `Lines`: the next line is the answer."""
        try:
            return self.read(question)
        except EOFError:
            return ""


def storable(typed: str) -> str:
    """The line without bytes that are no text, which no store could hold."""
    return typed.encode("utf-8", "replace").decode()
