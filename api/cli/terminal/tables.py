"""Draws the service's answers as tables. Texts of people, models and documents are made safe to print first."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from recollect.api.cli.terminal.plain_text import safe, safe_line
from recollect.api.schemas.answers import ChangeAnswer, FactAnswer, HitAnswer, RefusedAnswer, ThreadAnswer, TurnAnswer

MOST_SHOWN = 300
"""The most characters of a text in a table's cell."""
LEAST_WIDTH = 120
"""The columns of a table where no terminal sets its width."""


def plain_console(*, stderr: bool = False) -> Console:
    """Open a console that interprets nothing in texts: no markup, no emoji codes, no highlights."""
    made = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not made.is_terminal:
        made.width = max(LEAST_WIDTH, made.width)
    return made


def table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table; a column whose name begins with `>` is aligned to the right."""
    made = Table(box=SIMPLE_HEAD, title=title, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(
            column.removeprefix(">"), justify="right" if column.startswith(">") else "left", overflow="fold"
        )
    return made


def facts_table(facts: Sequence[FactAnswer], *, title: str | None = None) -> RenderableType:
    """Draw facts, keyed ones first, each with its source."""
    if not facts:
        return Text("Nothing is known.")
    made = table("key", "value", "since", "source", "id", title=title)
    for fact in sorted(facts, key=lambda one: (one.key is None, one.key or "")):
        marks = [
            fact.source,
            *(("pinned",) if fact.pinned else ()),
            *(("this thread",) if fact.scope == "thread" else ()),
        ]
        made.add_row(
            safe_line(fact.key or "", "bold"),
            _cut(fact.value if fact.key is not None else fact.statement),
            safe_line(_day(fact.valid_from)),
            safe_line(", ".join(marks)),
            safe_line(fact.id[:8], "dim"),
        )
    return made


def hits_table(hits: Sequence[HitAnswer], *, title: str | None = None) -> RenderableType:
    """Draw recalled memories, best first, each with its scores."""
    if not hits:
        return Text("Nothing was found.")
    made = table(">score", ">alike", "when", "from", "thread", "text", title=title)
    for hit in hits:
        made.add_row(
            f"{hit.score:.2f}",
            f"{hit.similarity:.2f}",
            safe_line(_day(hit.created_at)),
            safe_line(_source(hit)),
            safe_line(hit.thread_id or "", "dim"),
            _cut(hit.content),
        )
    return made


def threads_table(threads: Sequence[ThreadAnswer], *, current: str | None = None) -> RenderableType:
    """Draw threads, most recently written first; the current one is marked."""
    if not threads:
        return Text("There are no threads.")
    made = table("thread", "title", "last activity", ">turns", ">messages", "")
    for thread in threads:
        marks = [*(("here",) if thread.thread_id == current else ()), *(("archived",) if thread.archived else ())]
        made.add_row(
            safe_line(thread.thread_id, "bold"),
            _cut(thread.title or ""),
            safe_line(_minute(thread.last_activity_at)),
            str(thread.turns),
            str(thread.messages),
            ", ".join(marks),
        )
    return made


def stats_table(counts: Mapping[str, Any]) -> RenderableType:
    """Draw counts of what is stored."""
    made = table("stored", ">count")
    for name, count in counts.items():
        made.add_row(safe_line(name, "bold"), safe_line(str(count)))
    return made


def turn_tables(turn: TurnAnswer) -> RenderableType:
    """Draw what a turn recalled and taught."""
    memory = turn.memory
    parts: list[RenderableType] = [
        Text(f"The last turn was given {memory.window} turns before it and {len(memory.facts)} facts."),
        hits_table(memory.hits, title="It recalled") if memory.hits else Text("It recalled nothing else."),
    ]
    if memory.summary:
        parts.append(Group(Text("Summary", style="bold"), safe(memory.summary)))
    if memory.degraded:
        parts.append(Text.assemble(("Missing: ", "red"), safe_line(", ".join(memory.degraded))))
    update = memory.update
    status = safe_line(f"It was learned from: {update.status}{f' ({update.reason})' if update.reason else ''}")
    parts.append(status)
    if update.changes:
        parts.append(changes_table(update.changes, title="It taught"))
    if update.refused:
        parts.append(refused_table(update.refused, title="It was refused"))
    if update.undone is not None:
        parts.append(safe_line(f"Taken back at {_minute(update.undone.at)}."))
    return Group(*parts)


def changes_table(changes: Sequence[ChangeAnswer], *, title: str | None = None) -> RenderableType:
    """Draw changes of facts: values before and after."""
    made = table("did", "key", "before", "after", title=title)
    for change in changes:
        made.add_row(
            safe_line(change.decision if change.status is None else f"{change.decision} ({change.status})"),
            *(safe_line(change.key or "", "bold"), _cut(change.before), _cut(change.after)),
        )
    return made


def refused_table(refused: Sequence[RefusedAnswer], *, title: str | None = None) -> RenderableType:
    """Draw refused proposals with their reasons."""
    made = table("key", "value", "why", title=title)
    for one in refused:
        made.add_row(safe_line(one.key or "", "bold"), _cut(one.value), _cut(one.reason))
    return made


def _source(hit: HitAnswer) -> str:
    """Return the speaker of a hit, or its place in a document."""
    if hit.document is None:
        return hit.name or hit.role or hit.kind
    page = "" if hit.document.page is None else f", page {hit.document.page}"
    return f"{hit.document.title}{page}"


def _cut(text: str | None) -> Text:
    """Return a text as one line of a cell."""
    found = safe_line(text or "")
    found.truncate(MOST_SHOWN, overflow="ellipsis")
    return found


def _day(time: str) -> str:
    return time[:10]


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")
