"""`recollect chat`: a conversation at the terminal, or line by line through a pipe."""

import io
import sys
from collections.abc import Callable
from contextlib import closing
from uuid import uuid4

from recollect.api.cli.command_context import CommandContext
from recollect.api.cli.terminal.chat_commands import Confirm, Desk, do
from recollect.api.cli.terminal.client import Unreachable
from recollect.api.cli.terminal.conversation import Conversation
from recollect.api.cli.terminal.lasting_connection import LastingConnection
from recollect.api.cli.terminal.lines import Lines, PipedLines
from recollect.api.cli.terminal.plain_text import safe
from recollect.api.cli.terminal.spoken import speak
from recollect.api.cli.terminal.tables import plain_console
from recollect.api.cli.terminal.typed_lines import TypedLines
from recollect.memory.values.errors import RecollectError
from recollect.memory.values.times import utc_now

YES = frozenset({"y", "yes"})


def talk_in_terminal(told: CommandContext, *, user_id: str, thread_id: str | None, url: str | None) -> int:
    """Talk until the input ends; return the exit code: 1 where a piped line failed.

    Raises:
        ConfigurationError: the service cannot be started, or `url` is none.
        Unreachable: nothing answers at `url`, before a line is typed.
    """
    is_typed = sys.stdin.isatty() and sys.stdout.isatty()
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with closing(LastingConnection(told, url)) as reach:
        connected = reach.connect()
        conversation = Conversation(connected.client, user_id=user_id, thread_id=thread_id or _new_thread())
        chat = Chat(conversation, reach)
        if is_typed:
            if url is not None:
                connected.client.check()
            chat.talk(TypedLines(told, user_id, is_kept=connected.has_data_dir))
            return 0
        return chat.take(PipedLines())


class Chat:
    """One conversation between typed lines and printed answers."""

    def __init__(self, conversation: Conversation, reach: LastingConnection) -> None:
        self._conversation = conversation
        self._reach = reach
        self._console = plain_console()
        self._errors = plain_console(stderr=True)

    def talk(self, typed_lines: TypedLines) -> None:
        """Talk at the terminal until Ctrl-D."""
        from recollect.api.cli.terminal.line_editor import LineEditor

        try:
            before = typed_lines.before()
        except OSError as error:
            self._tell(f"Earlier lines cannot be read ({error.strerror}).")
            before = []
        lines = LineEditor(before, {"facts": self._fact_keys, "threads": self._thread_ids})
        self._console.print(f"{self._conversation.user_id} in thread {self._conversation.thread_id}.", end=" ")
        self._console.print("!help lists commands, Ctrl-D ends.", style="dim")
        while True:
            try:
                line = lines.read(f"{self._conversation.thread_id}> ")
            except KeyboardInterrupt:
                continue  # as in a shell: the line is given up
            except EOFError:
                return
            if line.strip():
                self._keep(typed_lines, line)
                self._attempt(line, lambda question: _is_yes(lines.ask(question)))

    def take(self, lines: Lines) -> int:
        """Run piped lines, waiting until each turn was learned from; return 1 where one failed."""
        code = 0
        while True:
            try:
                line = lines.read("")
            except EOFError:
                return code
            try:
                if line.strip():
                    self._reached(lambda line=line: self._do(line))
            except RecollectError as error:
                self._tell(f"error: {error.message}")
                code = 1

    def _attempt(self, line: str, confirm: Confirm) -> None:
        """Run a line. An error or an interrupt does not end the conversation."""
        try:
            self._reached(lambda: self._do(line, confirm))
        except RecollectError as error:
            self._tell(f"error: {error.message}")
        except KeyboardInterrupt:
            if line.startswith("!"):
                self._tell("Interrupted.")
            else:
                self._tell("Interrupted; the answer is stored all the same. The same message again shows it.")

    def _reached(self, act: Callable[[], None]) -> None:
        """Run `act`; where the service has gone, find one again and repeat it there: a turn keeps its id."""
        try:
            act()
        except Unreachable:
            self._conversation.client = self._reach.connect().client
            act()

    def _do(self, line: str, confirm: Confirm | None = None) -> None:
        """Run a typed line; without `confirm` it came through a pipe, whose next line is never an answer."""
        if line.startswith("!"):
            do(Desk(self._conversation, self._console, confirm), line.rstrip())
            return
        is_typed = confirm is not None
        events = self._conversation.say(line.strip(), wait_for_memory=not is_typed)
        with closing(events):
            speak(self._console, events, tells_more=is_typed)

    def _keep(self, typed_lines: TypedLines, line: str) -> None:
        try:
            typed_lines.add(line, thread_id=self._conversation.thread_id)
        except OSError as error:
            self._tell(f"Lines are not kept from here on ({error.strerror}).")

    def _tell(self, sentence: str) -> None:
        self._errors.print(safe(sentence, "red"), soft_wrap=True)

    def _fact_keys(self) -> list[str]:
        return [fact.key for fact in self._conversation.facts() if fact.key is not None]

    def _thread_ids(self) -> list[str]:
        return [thread.thread_id for thread in self._conversation.threads()]


def _is_yes(answer: str) -> bool:
    return answer.strip().lower() in YES


def _new_thread() -> str:
    """Return an id for a new thread that a person can type."""
    return f"{utc_now():%Y%m%d-%H%M}-{uuid4().hex[:4]}"
