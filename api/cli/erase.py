"""`recollect erase`: removes every trace of a user, and shows the receipt."""

import typer

from recollect.api.cli.command_context import CommandContext
from recollect.api.cli.terminal.client import parsed
from recollect.api.cli.terminal.connection import connection
from recollect.api.cli.terminal.plain_text import safe_json
from recollect.api.cli.terminal.tables import plain_console, table
from recollect.api.schemas.erasure_answers import ErasureAnswer


def run_erase(told: CommandContext, url: str | None, *, user_id: str, is_sure: bool, as_json: bool) -> None:
    """Erase the user through the service at `url`, the running one, or one of its own; ask first unless `is_sure`.

    Raises:
        ConfigurationError: there is no DATA_DIR, or `url` is none.
        Refused: the service refused it, cannot be reached, or is not through yet; then it goes on by itself.
        Abort: the answer was no.
    """
    if not is_sure:
        typer.confirm(f"Erase everything of {user_id}, for good?", abort=True, err=True)
    with connection(told, url) as connected:
        said = connected.client.erase(user_id)
    if as_json:
        typer.echo(safe_json(said))
        return
    receipt = parsed(ErasureAnswer, said)
    drawn = table("holder", ">erased", ">remaining")
    for holder, count in receipt.counts.items():
        drawn.add_row(holder, str(count), str(receipt.remaining.get(holder, 0)))
    console = plain_console()
    console.print(drawn)
    console.print(f"Erased at {receipt.erased_at}; the receipt is {receipt.erasure_id}.")
