"""Users' data that LangGraph's development server (`make studio`) keeps: its own runs, and files that outlive it.

Its threads, runs and checkpoints hold the texts typed into Studio. While the server runs in this process, an erasure
deletes them through LangGraph's own routes; otherwise it removes the folder that the server left behind.
"""

import asyncio
import importlib
import json
import shutil
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from typing_extensions import override

from recollect.memory.erasure.data_holders import ForeignHolder
from recollect.memory.values.errors import StoreUnavailable
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import Scope

FOLDER = ".langgraph_api"
MARKER = "langgraph"
"""The file in DATA_DIR that names the folder of LangGraph's server."""
OUR_GRAPH = "recollect.graph.workflow:graph"
"""This project's graph, as a langgraph.json names it."""
PAGE = 100
SECONDS = 10.0
"""The time limit for one answer of LangGraph."""


def is_running() -> bool:
    """Tell whether this process is run by LangGraph's server."""
    return "langgraph_api.server" in sys.modules


def foreign_holders(data_dir: Path, token: str | None) -> Sequence[ForeignHolder]:
    """Return the holders of LangGraph's data. `token` makes the caller of its routes this machine's owner."""
    return (StudioRuns(token),) if is_running() else (StudioFiles(data_dir),)


def mark_folder(data_dir: Path) -> None:
    """Write down where LangGraph's server, which runs in this process, keeps its files; make the folder private.

    Without a DATA_DIR (servers hold everything, or memory does), nothing is written down.
    """
    folder = Path.cwd() / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    marker = data_dir / MARKER
    if not data_dir.is_dir():
        return
    marker.write_text(str(folder), encoding="utf-8")
    marker.chmod(0o600)


@frozen
class StudioRuns(ForeignHolder):
    """LangGraph's threads with their runs and checkpoints, reached through its routes in this process."""

    token: str | None
    name: str = "langgraph"

    @override
    async def is_there(self, scope: Scope) -> bool:
        return True

    @override
    async def erase(self, scope: Scope) -> int:
        """Delete every LangGraph thread that names the user (and the thread); runs under way are ended before."""
        async with self._client() as client:
            found = [thread async for thread in self._naming(client, scope)]
            for thread_id in found:
                for run in await client.runs.list(thread_id, limit=PAGE):
                    if run["status"] in {"pending", "running"}:
                        await client.runs.cancel(thread_id, run["run_id"], wait=True)
                await client.threads.delete(thread_id)
        if found:
            await asyncio.to_thread(_write_files)
        return len(found)

    @override
    async def remaining(self, scope: Scope) -> int:
        async with self._client() as client:
            return len([thread async for thread in self._naming(client, scope)])

    async def _naming(self, client: Any, scope: Scope) -> AsyncIterator[str]:
        """Yield the ids of the LangGraph threads whose values, runs or checkpoints name the scope."""
        threads = list[Mapping[str, Any]]()
        while page := await client.threads.search(limit=PAGE, offset=len(threads)):
            threads += page
        for thread in threads:
            thread_id = thread["thread_id"]
            runs = await client.runs.list(thread_id, limit=PAGE)
            past = await client.threads.get_history(thread_id, limit=PAGE)
            if _names(json.dumps([thread, runs, past], ensure_ascii=False, default=str), scope):
                yield thread_id

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[Any]:
        """Open LangGraph's client of this very process, as this machine's owner.

        Raises:
            StoreUnavailable: LangGraph does not answer.
        """
        from langgraph_sdk import get_client

        headers = {"Host": "localhost", **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        try:
            async with asyncio.timeout(SECONDS), get_client(headers=headers) as client:
                yield client
        except Exception as error:
            # LangGraph passes on whatever its own routes raise.
            raise StoreUnavailable("LangGraph's server does not answer; the erasure goes on by itself.") from error


@frozen
class StudioFiles(ForeignHolder):
    """The folder that LangGraph's server has left: beside a langgraph.json here, or where DATA_DIR's marker says."""

    data_dir: Path
    name: str = "langgraph_files"

    @override
    async def is_there(self, scope: Scope) -> bool:
        return bool(await self.remaining(scope))

    @override
    async def erase(self, scope: Scope) -> int:
        """Remove the whole folder, because only LangGraph can take single threads out of its files."""
        return await asyncio.to_thread(self._remove, scope)

    @override
    async def remaining(self, scope: Scope) -> int:
        """Count the files."""
        return await asyncio.to_thread(lambda: sum(len(_files(folder)) for folder in self._folders(scope)))

    def _remove(self, scope: Scope) -> int:
        removed = 0
        for folder in self._folders(scope):
            files = len(_files(folder))
            shutil.rmtree(folder)
            removed += files
        return removed

    def _folders(self, scope: Scope) -> Sequence[Path]:
        """Return the folders to erase: ours with a whole user, and any that names the user, or the thread."""
        marked = self._marked()
        candidates = {
            folder: folder == marked or _is_ours(folder) for folder in (marked, Path.cwd() / FOLDER) if folder
        }
        return [
            folder
            for folder, is_ours in candidates.items()
            if folder.is_dir() and not folder.is_symlink()
            if (is_ours and scope.thread_id is None) or any(_holds(file, scope) for file in _files(folder))
        ]

    def _marked(self) -> Path | None:
        try:
            folder = Path((self.data_dir / MARKER).read_text(encoding="utf-8"))
        except (OSError, UnicodeError):
            return None
        return folder if folder.name == FOLDER else None


def _is_ours(folder: Path) -> bool:
    try:
        return OUR_GRAPH in (folder.parent / "langgraph.json").read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return False


def _files(folder: Path) -> Sequence[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def _holds(file: Path, scope: Scope) -> bool:
    """Tell whether the file holds the ids; ids are ASCII, and pickles keep texts as they are."""
    content = file.read_bytes()
    return all(one.encode() in content for one in (scope.user_id, scope.thread_id) if one is not None)


def _names(text: str, scope: Scope) -> bool:
    return all(json.dumps(one) in text for one in (scope.user_id, scope.thread_id) if one is not None)


def _write_files() -> None:
    """Write LangGraph's files now: it does so every ten seconds, and until then they hold the deleted data."""
    try:
        kept = importlib.import_module("langgraph_runtime_inmem._persistence")
        stores = cast("Mapping[str, Any]", kept._stores)
    except (ImportError, AttributeError):
        return  # Another runtime, or another version of it, writes them by itself.
    for reference in list(stores.values()):
        store = reference()
        if store is not None:
            store.sync()
