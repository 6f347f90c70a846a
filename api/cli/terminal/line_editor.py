"""The terminal's line editor: history, and completion of commands and their arguments."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from typing_extensions import override

from recollect.api.cli.owner import OwnerRefused
from recollect.api.cli.terminal.chat_commands import COMMANDS
from recollect.api.cli.terminal.lines import Lines, storable
from recollect.api.cli.terminal.plain_text import line

Names = Callable[[], Iterable[str]]


class LineEditor(Lines):
    """Reads lines (see `Lines`). `history` is offered again, oldest first; `names` returns a command's completions."""

    def __init__(self, history: Iterable[str], names: Mapping[str, Names]) -> None:
        self._completer = _Completer(names)
        self._session: PromptSession[str] = PromptSession(
            history=InMemoryHistory(list(history)), completer=self._completer, complete_in_thread=True
        )
        self._questions: PromptSession[str] = PromptSession()

    @override
    def read(self, prompt: str) -> str:
        self._completer.known.clear()
        return storable(self._session.prompt(prompt))

    def ask(self, question: str) -> str:
        """Return the answer to a question, without keeping it in the history; empty where there is none."""
        try:
            return storable(self._questions.prompt(question))
        except (EOFError, KeyboardInterrupt):
            return ""


class _Completer(Completer):
    """Completes commands' names, and arguments from `names`, which is called once a line (cached in `known`)."""

    def __init__(self, names: Mapping[str, Names]) -> None:
        self._names = names
        self.known: dict[str, list[str]] = {}

    @override
    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions of the text before the cursor."""
        typed = document.text_before_cursor
        if not typed.startswith("!"):
            return
        name, space, begun = typed.partition(" ")
        if not space:
            for command in COMMANDS:
                if command.name.startswith(name):
                    yield Completion(command.name, start_position=-len(name), display_meta=command.help)
            return
        for text in self._found(name):
            if text.startswith(begun):
                yield Completion(text, start_position=-len(begun))

    def _found(self, name: str) -> list[str]:
        """Return the possible arguments of a command. Errors are swallowed, because the command itself reports them."""
        kind = next((command.completes for command in COMMANDS if command.name == name), None)
        if kind is None:
            return []
        if kind not in self.known:
            try:
                self.known[kind] = sorted(text for text in set(self._names[kind]()) if text == line(text))
            except OwnerRefused:
                return []
        return self.known[kind]
