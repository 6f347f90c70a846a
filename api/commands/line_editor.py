"""The terminal's line editor: history, and completion of what commands take."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory

from api.commands.chat_commands import COMMANDS
from api.commands.lines import storable
from api.commands.owner import Refused
from api.commands.plain_text import line

Names = Callable[[], Iterable[str]]


class LineEditor:
    """Typed lines (see `Lines`). `history` is offered again, oldest first; `names` gives what commands complete."""

    def __init__(self, history: Iterable[str], names: Mapping[str, Names]) -> None:
        self._completer = _Completer(names)
        self._session: PromptSession[str] = PromptSession(
            history=InMemoryHistory(list(history)), completer=self._completer, complete_in_thread=True
        )
        self._questions: PromptSession[str] = PromptSession()

    def read(self, prompt: str) -> str:
        """See `Lines`."""
        self._completer.known.clear()
        return storable(self._session.prompt(prompt))

    def ask(self, question: str) -> str:
        """See `Lines`."""
        try:
            return storable(self._questions.prompt(question))
        except (EOFError, KeyboardInterrupt):
            return ""


class _Completer(Completer):
    """Completes the names of commands, and behind a name what `names` has for it, asked for once a line (`known`)."""

    def __init__(self, names: Mapping[str, Names]) -> None:
        self._names = names
        self.known: dict[str, list[str]] = {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """What may follow the text before the cursor."""
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
        """What may stand behind a command's name. Completion is an aid: what is wrong, the command itself says."""
        kind = next((command.completes for command in COMMANDS if command.name == name), None)
        if kind is None:
            return []
        if kind not in self.known:
            try:
                self.known[kind] = sorted(text for text in set(self._names[kind]()) if text == line(text))
            except Refused:
                return []
        return self.known[kind]
