"""`recollect facts | search | threads | stats`: shows a user's stored data, as a table or as JSON."""

from collections.abc import Callable
from typing import Any

import typer
from pydantic import RootModel
from rich.console import Group, RenderableType

from recollect.api.cli.command_context import CommandContext
from recollect.api.cli.terminal.client import TerminalClient, parsed
from recollect.api.cli.terminal.connection import connection
from recollect.api.cli.terminal.plain_text import safe_json
from recollect.api.cli.terminal.tables import facts_table, hits_table, plain_console, stats_table, threads_table
from recollect.api.schemas.answers import FactsAnswer, SearchAnswer, ThreadsAnswer

Json = dict[str, Any]
INDEX_IS_DOWN = "The index is down: the newest memories were searched by words."


def draw_facts(said: Json) -> RenderableType:
    """Draw facts."""
    return facts_table(parsed(FactsAnswer, said).items)


def draw_hits(said: Json) -> RenderableType:
    """Draw the hits of a search, and say where they were found without the index."""
    found = parsed(SearchAnswer, said)
    drawn = hits_table(found.hits)
    return Group(INDEX_IS_DOWN, drawn) if found.degraded else drawn


def draw_threads(said: Json) -> RenderableType:
    """Draw a user's threads."""
    return threads_table(parsed(ThreadsAnswer, said).items)


def draw_counts(said: Json) -> RenderableType:
    """Draw counts."""
    return stats_table(parsed(RootModel[dict[str, int]], said).root)


def look(
    told: CommandContext,
    url: str | None,
    ask: Callable[[TerminalClient], Json],
    draw: Callable[[Json], RenderableType],
    *,
    as_json: bool,
) -> None:
    """Ask the service and show its answer: drawn, or as plain JSON, all pages in one.

    Raises:
        ConfigurationError: there is no DATA_DIR, or `url` is none.
        Refused: the service refused it, or cannot be reached.
    """
    with connection(told, url) as connected:
        said = ask(connected.client)
    drawn = draw(said)
    if as_json:
        typer.echo(safe_json(said))
        return
    plain_console().print(drawn)
