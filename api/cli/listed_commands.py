"""Writes the help of `recollect` as plain text: Rich's panels take longer to import than all else that a help needs."""

from typing import Any

from typer.core import TyperGroup
from typing_extensions import override


class ListedCommands(TyperGroup):
    """Lists the commands under the heading of their panel, in the order in which they were added."""

    @override
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each panel; an ungrouped command stands under "Commands"."""
        panels = dict[str, list[tuple[str, str]]]()
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            panel = getattr(command, "rich_help_panel", None)
            heading = panel if isinstance(panel, str) else "Commands"
            panels.setdefault(heading, []).append((name, command.get_short_help_str(limit=500)))
        for heading, rows in panels.items():
            with formatter.section(heading):
                formatter.write_dl(rows)
