"""The terminal's commands, which begin with `!`."""

from collections.abc import Callable, Sequence
from typing import Literal

from rich.console import Console
from rich.text import Text

from recollect.api.cli.owner import OwnerRefused
from recollect.api.cli.terminal.client import parsed
from recollect.api.cli.terminal.conversation import Conversation
from recollect.api.cli.terminal.plain_text import line, safe_line
from recollect.api.cli.terminal.tables import changes_table, facts_table, hits_table, table, threads_table, turn_tables
from recollect.api.schemas.answers import UndoAnswer
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import check_id

Confirm = Callable[[str], bool]


@frozen
class Desk:
    """The context of a command: the conversation, the console, and how to ask for a yes, if that is possible."""

    conversation: Conversation
    console: Console
    confirm: Confirm | None

    def settle(self) -> None:
        """Wait until the last turn was learned from, so that its facts are shown."""
        with self.console.status("The last turn is being learned from …"):
            self.conversation.settle()


@frozen
class Command:
    """One command: `argument` names what may follow it (in brackets where it may be left out)."""

    name: str
    argument: str
    help: str
    act: Callable[[Desk, str], None]
    completes: Literal["facts", "threads"] | None = None

    def check(self, argument: str) -> None:
        """Check that the command can run with this argument.

        Raises:
            Refused: something is missing, or too much.
        """
        if argument and not self.argument:
            raise OwnerRefused(f"{self.name} takes nothing more.")
        if not argument and self.argument and not self.argument.startswith("["):
            raise OwnerRefused(f"Say more: {self.name} {self.argument}")


def do(desk: Desk, typed: str) -> None:
    """Run a typed command, which begins with an exclamation mark.

    Raises:
        Refused: there is no such command, or it cannot be done.
        InvalidRequest: what follows it is no id.
    """
    name, _, argument = typed.partition(" ")
    found = {command.name: command for command in COMMANDS}.get(name)
    if found is None:
        raise OwnerRefused(
            f"There is no {line(name)}; !help lists what there is. A space before it sends it as a message."
        )
    found.check(argument.strip())
    found.act(desk, argument.strip())


def _memory(desk: Desk, _: str) -> None:
    desk.settle()
    user = desk.conversation.user_id
    desk.console.print(facts_table(desk.conversation.facts(), title=f"Known of {user}"))
    turn = desk.conversation.last_turn()
    if turn is None:
        desk.console.print("Nothing was said in this thread yet.")
    else:
        desk.console.print(turn_tables(turn))


def _facts(desk: Desk, _: str) -> None:
    desk.settle()
    desk.console.print(facts_table(desk.conversation.facts()))


def _forget(desk: Desk, named: str) -> None:
    desk.settle()
    for fact in desk.conversation.forget(named):
        desk.console.print(Text.assemble("Forgotten: ", safe_line(fact.key or fact.id[:8], "bold")))


def _undo(desk: Desk, argument: str) -> None:
    if argument not in {"", "force"}:
        raise OwnerRefused("!undo takes nothing, or: force")
    said = parsed(UndoAnswer, desk.conversation.undo(force=argument == "force"))
    if said.undone:
        desk.console.print(changes_table(said.undone, title="Taken back"))
    elif not said.left:
        desk.console.print("The last turn taught nothing: there was nothing to take back.")
    for left in said.left:
        desk.console.print(
            Text.assemble("Left: ", safe_line(left.key or left.fact_id, "bold"), " ", safe_line(left.reason))
        )


def _search(desk: Desk, text: str) -> None:
    desk.settle()
    desk.console.print(hits_table(desk.conversation.search(text)))


def _clear(desk: Desk, argument: str) -> None:
    if argument not in {"", "--yes"}:
        raise OwnerRefused("!clear takes nothing, or: --yes")
    thread = desk.conversation.thread_id
    if not argument and desk.confirm is None:
        desk.console.print("Nothing was removed: nobody can be asked here; !clear --yes removes without asking.")
        return
    if desk.confirm and not (argument or desk.confirm(f"Remove all that was said in {thread}? The facts stay. [y/N] ")):
        desk.console.print("Nothing was removed.")
        return
    desk.conversation.clear()
    desk.console.print(f"Thread {thread} is empty.")


def _threads(desk: Desk, thread_id: str) -> None:
    if thread_id:
        desk.conversation.go_to(check_id("The thread", thread_id))
        desk.console.print(f"Now in thread {thread_id}.")
        return
    desk.console.print(threads_table(desk.conversation.threads(), current=desk.conversation.thread_id))


def _help(desk: Desk, _: str) -> None:
    made = table("type", "to")
    for command in COMMANDS:
        made.add_row(Text(f"{command.name} {command.argument}".strip(), style="bold"), command.help)
    made.add_row(Text("Ctrl-C", style="bold"), "stop listening to an answer, which is stored all the same")
    made.add_row(Text("Ctrl-D", style="bold"), "end")
    desk.console.print(made)


COMMANDS: Sequence[Command] = (
    Command("!memory", "", "see what is known, and what the last turn recalled and taught", _memory),
    Command("!facts", "", "see what is known of you", _facts),
    Command("!forget", "KEY", "forget a fact, by its key or id", _forget, completes="facts"),
    Command("!undo", "[force]", "take back what the last turn taught", _undo),
    Command("!search", "TEXT", "search all that is remembered of you", _search),
    Command("!clear", "[--yes]", "remove all that was said in this thread; --yes: without asking", _clear),
    Command("!threads", "[ID]", "see your threads, or go on in another one", _threads, completes="threads"),
    Command("!help", "", "see this", _help),
)
