"""`recollect keys create | list | revoke`: the keys of AUTH=api_key."""

from typing import Annotated

import typer

from recollect.api.cli.command_context import AsJson, DataDir, read_context

app = typer.Typer(no_args_is_help=True, help="Make, list and revoke the keys that callers show (AUTH=api_key).")


@app.command()
def create(
    context: typer.Context,
    role: Annotated[
        str | None,
        typer.Option(
            help="service (any user), admin (administers too), user:<id> (one user), user:acme:* (ids that begin so); "
            "of an agent's key, service is the default."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What you tell it by.")] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="ID", help="An agent: callers write its label, and see it alone.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Make a key and print it, this once: only a hash of it is stored."""
    if role is None and agent is None:
        raise typer.BadParameter("is missing: service, admin, user:<id> or user:acme:*", param_hint="--role")
    config = read_context(context, data_dir).config
    from recollect.api.cli.key_work import make_key

    typer.echo(make_key(config, role or "service", name=name, agent_id=agent))


@app.command(name="list")
def list_(context: typer.Context, as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List the keys, oldest first, without what opens."""
    config = read_context(context, data_dir).config
    from recollect.api.cli.key_work import show_keys

    show_keys(config, as_json=as_json)


@app.command()
def revoke(
    context: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")],
    data_dir: DataDir = None,
) -> None:
    """Revoke a key: it opens nothing any more."""
    config = read_context(context, data_dir).config
    from recollect.api.cli.key_work import revoke_key

    revoke_key(config, key_id)
