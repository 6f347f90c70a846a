"""`recollect chat | facts | search | threads | stats`: the terminal, through a running service or one of its own."""

from typing import Annotated

import typer

from recollect.api.cli.command_context import TALK, AsJson, DataDir, Url, User, read_context
from recollect.memory.values.filtering.reading import read_json_object
from recollect.memory.values.scope import check_id

app = typer.Typer()


@app.command(rich_help_panel=TALK)
def chat(
    context: typer.Context,
    user: User,
    thread: Annotated[str | None, typer.Option(help="The thread to go on with; left out: a new one.")] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Talk to the agent; `!help` lists what else there is to type. Lines may come through a pipe too."""
    _check(user, thread)
    from recollect.api.cli.terminal.chat import talk_in_terminal

    raise typer.Exit(talk_in_terminal(read_context(context, data_dir), user_id=user, thread_id=thread, url=url))


@app.command(rich_help_panel=TALK)
def facts(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    user: User,
    thread: Annotated[str | None, typer.Option(help="What is known in this thread too.")] = None,
    matching: Annotated[str | None, typer.Option("--filter", metavar="JSON", help="Conditions of facts.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show what is known of a user."""
    _check(user, thread)
    asked = None if matching is None else read_json_object(matching, field="--filter")
    from recollect.api.cli.terminal import looking

    looking.look(
        read_context(context, data_dir),
        url,
        lambda client: client.facts(user, thread_id=thread, matching=asked),
        looking.draw_facts,
        as_json=as_json,
    )


@app.command(rich_help_panel=TALK)
def search(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="What to look for.")],
    user: User,
    thread: Annotated[str | None, typer.Option(help="In this thread alone.")] = None,
    top: Annotated[int, typer.Option(min=1, max=50, help="Most hits.")] = 10,
    matching: Annotated[str | None, typer.Option("--filter", metavar="JSON", help="Conditions of hits.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Search a user's memory."""
    _check(user, thread)
    asked = None if matching is None else read_json_object(matching, field="--filter")
    from recollect.api.cli.terminal import looking

    looking.look(
        read_context(context, data_dir),
        url,
        lambda client: client.search(user, text, thread_id=thread, top_k=top, matching=asked),
        looking.draw_hits,
        as_json=as_json,
    )


@app.command(rich_help_panel=TALK)
def threads(
    context: typer.Context, user: User, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
) -> None:
    """Show a user's threads, those last written to first."""
    _check(user)
    from recollect.api.cli.terminal import looking

    looking.look(
        read_context(context, data_dir), url, lambda client: client.threads(user), looking.draw_threads, as_json=as_json
    )


@app.command(rich_help_panel=TALK)
def stats(
    context: typer.Context,
    user: Annotated[str | None, typer.Option(help="Whose; left out: the whole service's.")] = None,
    thread: Annotated[str | None, typer.Option(help="Of this thread alone.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Count what is stored."""
    _check(user, thread)
    if thread is not None and user is None:
        raise typer.BadParameter("say whose thread it is: --user.")
    from recollect.api.cli.terminal import looking

    looking.look(
        read_context(context, data_dir),
        url,
        lambda client: client.stats(user, thread_id=thread),
        looking.draw_counts,
        as_json=as_json,
    )


def _check(user: str | None, thread: str | None = None) -> None:
    """Check that the options are ids.

    Raises:
        InvalidRequest: one is none; it is named.
    """
    for name, given in (("--user", user), ("--thread", thread)):
        if given is not None:
            check_id(name, given)
