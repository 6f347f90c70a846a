"""The command line. Commands that need more than a call or two have a file of their own beside this one.

It alone reads the settings: commands that stand elsewhere ask for them through their context (`command_context.py`).
"""

import functools
import gc
import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.api.cli import embedder, keys
from recollect.api.cli.command_context import (
    CARRY,
    KEEP,
    TALK,
    AsJson,
    CommandContext,
    DataDir,
    Form,
    Url,
    User,
    read_context,
)
from recollect.api.cli.listed_commands import ListedCommands
from recollect.api.cli.terminal import terminal
from recollect.api.telemetry.log import configure_logging
from recollect.api.version import VERSION
from recollect.memory.values.errors import ConfigurationError, RecollectError
from recollect.memory.values.scope import check_id

if TYPE_CHECKING:
    from fastapi import FastAPI

    from recollect.memory.values.mem_config import MemoryConfig
    from recollect.settings import Settings

app = typer.Typer(
    cls=ListedCommands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Recollect: an agent service that remembers.",
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Recollect: an agent service that remembers."""
    context.obj = _told
    if version:
        typer.echo(VERSION)
        raise typer.Exit


@app.command(rich_help_panel=TALK)
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on (HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (PORT).")] = None,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes behind the port; more than one needs MongoDB and Qdrant.")
    ] = 1,
    data_dir: DataDir = None,
) -> None:
    """Serve the agent over HTTP until stopped."""
    gc.disable()  # until the server has imported everything: see `_prepare` in serving.py
    from recollect.settings import load_settings

    settings = load_settings(host=host, port=port, data_dir=data_dir)
    check_address(settings)
    config = settings.memory()
    if workers > 1:
        from recollect.memory.opening.sharing import check_shared

        check_shared(config, f"--workers {workers}")
    from recollect.api.cli.serving import Application
    from recollect.api.cli.serving import run_service as serve_with

    application = Application(
        functools.partial(_make_app, settings),
        functools.partial(_configure_log, settings),
        (settings.host, settings.port),
        settings.shutdown_seconds,
        settings.max_connections,
    )
    serve_with(application, workers=workers)


def _make_app(settings: "Settings", url: str) -> "FastAPI":
    from recollect.api.app import create_app

    return create_app(settings, url=url)


def _configure_log(settings: "Settings") -> None:
    configure_logging(settings.log_level, as_json=settings.log_format == "json", secrets=settings.secrets())


@app.command(rich_help_panel=TALK)
def worker() -> None:
    """Work updates off until stopped, beside services on the same MongoDB and Qdrant; serves nobody."""
    from recollect.memory.opening.sharing import check_shared
    from recollect.settings import load_settings

    settings = load_settings()
    check_shared(settings.memory(), "`recollect worker`")
    _configure_log(settings)
    from recollect.api.cli.worker import work

    work(settings.memory(), collector=settings.otel_exporter_otlp_endpoint)


app.add_typer(terminal.app)
app.add_typer(keys.app, name="keys", rich_help_panel=KEEP)
app.add_typer(embedder.app, name="embedder", rich_help_panel=KEEP)


@app.command(rich_help_panel=KEEP)
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole report as JSON.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Compare documents and index, and say what to do; exit code 1 where something is wrong."""
    config = _quiet_config(data_dir)
    from recollect.api.cli.doctor import run_doctor as examine

    raise typer.Exit(examine(config, as_json=as_json))


@app.command(rich_help_panel=KEEP)
def reindex(
    user: Annotated[str | None, typer.Option(help="One user's points alone, where they are.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Rebuild the index from the documents, while the service runs or without it."""
    config = _quiet_config(data_dir)
    from recollect.api.cli.reindex import run_reindex as rebuild

    rebuild(config, user_id=user, dry_run=dry_run)


@app.command(name="eval", rich_help_panel=KEEP)
def eval_(  # noqa: PLR0913  # the options of a command
    cases: Annotated[
        Path | None, typer.Argument(help="A file of cases, one JSON object a line; - reads the standard input.")
    ] = None,
    as_json: AsJson = False,
    fail_under: Annotated[
        float | None, typer.Option(min=0, max=100, help="Exit code 1 where R@10 is below so many percent.")
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(metavar="B.env", help="A file of other settings of recall, to run beside the present."),
    ] = None,
    propose: Annotated[
        int | None, typer.Option(min=1, max=1_000, help="Print so many cases of a user's own history; with --user.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="Whose history it is, with --propose.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Measure what searches find, by cases that say what they have to find; exit code 1 below --fail-under."""
    if (cases is None) == (propose is None) or (propose is None) != (user is None):
        raise typer.BadParameter("name a file of cases, or say --propose N with --user U.")
    if cases is None and (compare is not None or fail_under is not None):
        raise typer.BadParameter("--compare and --fail-under need a file of cases; --propose only writes one.")
    config = _quiet_config(data_dir)
    from recollect.api.cli import evaluation

    if user is not None and propose is not None:
        evaluation.propose(config, check_id("--user", user), propose)
        return
    assert cases is not None
    lines = evaluation.read_lines(cases, longest=config.max_message_characters)
    report = evaluation.evaluate(config, lines, None if compare is None else _compared(compare))
    evaluation.show_report(report, as_json=as_json)
    if fail_under is not None and report["R@10"] < fail_under:
        raise typer.Exit(1)


def _compared(path: Path) -> dict[str, Any]:
    """Return the settings of a file that are compared with the present ones."""
    from recollect.api.cli.evaluation import compared_settings
    from recollect.settings import load_settings, read_file

    def typed(given: Mapping[str, str]) -> Mapping[str, Any]:
        settings = load_settings(**given)
        return {name: getattr(settings, name) for name in given}

    return compared_settings(read_file(path), typed)


@app.command(rich_help_panel=KEEP)
def learn(
    failed: Annotated[bool, typer.Option("--failed", help="Try the updates again that have failed.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what a model would be asked about a turn; ask nobody.")
    ] = False,
    user: Annotated[str | None, typer.Option(help="Whose turn it is, with --dry-run.")] = None,
    turn: Annotated[str | None, typer.Option(help="Which turn, with --dry-run.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Learn again from turns whose update has failed, or show the prompt of one turn (--dry-run --user U --turn T)."""
    if failed == dry_run:
        raise typer.BadParameter("say --failed, or --dry-run with --user and --turn.")
    if dry_run != (user is not None and turn is not None) or (failed and (user or turn)):
        raise typer.BadParameter("--dry-run needs --user and --turn, and --failed neither.")
    config = _quiet_config(data_dir)
    from recollect.api.cli.learn import learn_failed, show_prompt

    if user is None or turn is None:
        raise typer.Exit(learn_failed(config))
    check_id("--user", user)
    check_id("--turn", turn)
    show_prompt(config, user_id=user, turn_id=turn)


@app.command(name="import", rich_help_panel=CARRY)
def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="A file of JSON Lines, a folder of session_*.json or of Markdown entries, mongodb://…/database, or a "
            "Qdrant server's URL."
        ),
    ],
    user: Annotated[str | None, typer.Option(help="Whose it is where the source does not say.")] = None,
    learn: Annotated[bool, typer.Option("--learn", help="Learn from the turns too.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Import conversations, through the service or without it; exit code 1 where lines failed."""
    config = _quiet_config(data_dir)
    from recollect.api.cli.imports import import_source

    raise typer.Exit(import_source(config, source, user_id=user, learn=learn))


@app.command(rich_help_panel=TALK)
def mcp(context: typer.Context, user: User, url: Url = None, data_dir: DataDir = None) -> None:
    """Serve a user's memory to an MCP client, over standard input and output."""
    check_id("--user", user)
    from recollect.api.cli.mcp import serve_mcp

    serve_mcp(read_context(context, data_dir), user_id=user, url=url)


@app.command(rich_help_panel=CARRY)
def erase(
    context: typer.Context,
    user: User,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Remove every trace of a user, and show the receipt."""
    check_id("--user", user)
    from recollect.api.cli.erase import run_erase as erase_user

    erase_user(read_context(context, data_dir), url, user_id=user, is_sure=yes, as_json=as_json)


@app.command(rich_help_panel=CARRY)
def export(
    context: typer.Context,
    user: User,
    form: Annotated[Form, typer.Option("--format", help="JSON Lines, or a zip of Markdown files.")] = "jsonl",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file; left out: the standard output.")
    ] = None,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Export all that is kept of a user, for `recollect import` here or elsewhere."""
    check_id("--user", user)
    from recollect.api.cli.export import export_user

    export_user(read_context(context, data_dir), user, form=form, output=output, url=url)


@app.command(rich_help_panel=CARRY)
def sync(  # noqa: PLR0913  # the options of a command
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Where the files are; <user>/ is made in it.")],
    user: User,
    watch: Annotated[bool, typer.Option("--watch", help="Go on, both ways, until interrupted.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also where all facts are gone on one side.")] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Keep a folder of Markdown files and a user's memory the same; exit code 1 where something has to be decided."""
    check_id("--user", user)
    from recollect.api.cli.sync.command import sync_folder

    chosen = read_context(context, data_dir)
    raise typer.Exit(sync_folder(chosen, folder, user, watch=watch, force=force, url=url))


def _told(data_dir: Path | None) -> CommandContext:
    """Return the context of a command in another file; only errors of its log, and of its own service's, are shown."""
    from recollect.settings import load_settings

    settings = load_settings(data_dir=data_dir)
    configure_logging("ERROR", secrets=settings.secrets())

    key = settings.recollect_api_key
    return CommandContext(
        settings.memory(), None if key is None else key.get_secret_value(), functools.partial(_make_app, settings)
    )


def _quiet_config(data_dir: Path | None) -> "MemoryConfig":
    """Return the configuration of a command that ends by itself: of its log, only warnings and errors are shown."""
    from recollect.settings import load_settings

    settings = load_settings(data_dir=data_dir)
    configure_logging("WARNING", secrets=settings.secrets())
    return settings.memory()


def check_address(settings: "Settings") -> None:
    """Refuse an address that others reach where nobody has to prove who they are, unless the settings allow it.

    Raises:
        ConfigurationError: HOST is no loopback address, AUTH is none, and ALLOW_INSECURE is not set.
    """
    if settings.auth != "none" or settings.allow_insecure or is_loopback(settings.host):
        return
    raise ConfigurationError(
        f"HOST {settings.host} is reachable from other machines, and callers need not prove who they are. Listen on "
        "127.0.0.1, set AUTH=api_key or AUTH=jwt, or set ALLOW_INSECURE=true."
    )


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def main() -> None:
    """Run the command; what stops it is one sentence, a wrong setting exit code 2, anything else 1."""
    try:
        app()
    except RecollectError as error:
        from recollect.api.cli.ending import end_command

        end_command(error)
