"""The work of the key commands: through the service that has the store open, or with the store alone."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import httpx
import typer

from recollect.api.cli.owner import read_answer, service
from recollect.api.cli.terminal.plain_text import safe_json, safe_line
from recollect.api.cli.terminal.tables import plain_console, table
from recollect.memory.opening.stores import open_store
from recollect.memory.ports.key_ring import KeyRing
from recollect.memory.ports.keys import check_name, is_key_id, read_role
from recollect.memory.values.errors import NotFound
from recollect.memory.values.mem_config import MemoryConfig
from recollect.memory.values.scope import check_id
from recollect.memory.values.times import utc_now

ROUTE = "/api/admin/keys"
PAGE = 200

Json = dict[str, Any]
Result = TypeVar("Result")


def make_key(config: MemoryConfig, role: str, *, name: str | None, agent_id: str | None = None) -> str:
    """Make a key and return its text. The first one may be made before the service has ever run.

    Raises:
        InvalidRequest: the role, the name or the agent's id is none.
    """
    read_role(role)
    check_name(name)
    if agent_id is not None:
        check_id("agent_id", agent_id)

    async def make(ring: KeyRing) -> str:
        _, text = await ring.create(role, name=name, agent_id=agent_id)
        return text

    with service(config, may_be_new=True) as client:
        if client is None:
            return asyncio.run(_alone(config, make))
        body = {"role": role, "name": name, "agent_id": agent_id}
        text: str = read_answer(client.post(ROUTE, json=body))["key"]
        return text


def show_keys(config: MemoryConfig, *, as_json: bool) -> None:
    """Print all keys, as a table or as JSON."""
    with service(config) as client:
        found = asyncio.run(_alone(config, _all)) if client is None else list(_pages(client))
    if as_json:
        typer.echo(safe_json(found))
        return
    made = table("id", "role", "agent", "name", "created")
    for key in found:
        made.add_row(*(safe_line(key.get(column) or "") for column in ("id", "role", "agent_id", "name", "created_at")))
    plain_console().print(made if found else "There are no keys; make one with `recollect keys create`.")


def revoke_key(config: MemoryConfig, key_id: str) -> None:
    """Revoke a key.

    Raises:
        NotFound: there is none of this id.
    """
    if not is_key_id(key_id):
        raise NotFound("There is no such key.")
    with service(config) as client:
        if client is None:
            asyncio.run(_alone(config, lambda ring: ring.revoke(key_id)))
            return
        response = client.delete(f"{ROUTE}/{key_id}")
        if not response.is_success:
            read_answer(response)


async def _alone(config: MemoryConfig, act: Callable[[KeyRing], Awaitable[Result]]) -> Result:
    async with open_store(config) as store:
        return await act(KeyRing(store.keys, utc_now))


async def _all(ring: KeyRing) -> list[Json]:
    found = await ring.page(limit=PAGE)
    page = found
    while len(page) == PAGE:
        page = await ring.page(limit=PAGE, after=(page[-1].created_at, page[-1].id))
        found = [*found, *page]
    return [key.as_json() for key in found]


def _pages(client: httpx.Client) -> Iterator[Json]:
    query: dict[str, str | int] = {"limit": PAGE}
    while True:
        page = read_answer(client.get(ROUTE, params=query))
        yield from page["items"]
        if page["next_cursor"] is None:
            return
        query["cursor"] = page["next_cursor"]
