"""The memory's side of a sync: the files that its current content calls for."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from recollect.api.cli.owner import OwnerRefused
from recollect.api.cli.sync.folder import file_hash
from recollect.api.cli.sync.texts import fact_text, summary_text, turn_text
from recollect.api.cli.terminal.client import TerminalClient
from recollect.memory.transfer.file_names import file_name
from recollect.memory.values.fact import is_key
from recollect.memory.values.frozen import frozen

Json = dict[str, Any]


@frozen
class WantedFile:
    """A file that the memory calls for, and the line of the export that it was made of."""

    path: str
    kind: str
    id: str
    content: bytes
    line: Json

    @property
    def hash(self) -> str:
        """Of its content."""
        return file_hash(self.content)


@dataclass
class Snapshot:
    """Facts and summaries by their files' paths; `fact_ids` includes facts in any state, `threads` is by folder."""

    items: dict[str, WantedFile] = field(default_factory=dict[str, WantedFile])
    fact_ids: set[str] = field(default_factory=set[str])
    threads: dict[str, Json] = field(default_factory=dict[str, Json])

    def of_id(self, fact_id: str | None) -> WantedFile | None:
        """Return the fact's file."""
        return next((one for one in self.items.values() if one.kind == "fact" and one.id == fact_id), None)


@frozen
class MemorySide:
    """Reads a user's memory through the service's export.

    Raises:
        Refused: from any call.
    """

    client: TerminalClient
    user_id: str

    def snapshot(self) -> Snapshot:
        """Read facts and summaries as they are now."""
        snapshot = Snapshot()
        known: list[Json] = []
        for line in self._lines({"type": ["fact", "summary"]}):
            if line["type"] == "fact":
                snapshot.fact_ids.add(line["id"])
                known += [line] if _is_shown(line) else []
            else:
                path = f"{file_name(line['thread_id'])}/summary.md"
                snapshot.items[path] = WantedFile(path, "summary", line["thread_id"], summary_text(line), line)
        for line in sorted(known, key=_by_claim):
            path = f"facts/{line['key'] or line['id']}.md"
            if path in snapshot.items:
                path = f"facts/{line['id']}.md"
            snapshot.items[path] = WantedFile(path, "fact", line["id"], fact_text(line), line)
        for thread in self.client.threads(self.user_id)["items"]:
            snapshot.threads[file_name(thread["thread_id"])] = thread
        return snapshot

    def turns(self, thread_id: str | None) -> Iterator[WantedFile]:
        """Yield the turns of a thread, or of all."""
        messages: list[Json] = []
        query: dict[str, str | list[str]] = {"type": ["message", "turn"]}
        if thread_id is not None:
            query["thread_id"] = thread_id
        for line in self._lines(query):
            if line["type"] == "message":
                messages.append(line)
                continue
            path = f"{file_name(line['thread_id'])}/turns/{file_name(line['turn_id'])}.md"
            yield WantedFile(path, "turn", line["turn_id"], turn_text(line, messages), line)
            messages = []

    def _lines(self, query: dict[str, str | list[str]]) -> Iterator[Json]:
        for text in _split(self.client.export(self.user_id, query)):
            try:
                line: Json = json.loads(text)
                yield {**line, "type": line["type"]}
            except (ValueError, TypeError, KeyError):
                raise OwnerRefused("The service's export is none of Recollect's.") from None


def _split(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
    if rest:
        raise OwnerRefused("The service's export ended amid a line; try again.")


def _is_shown(line: Json) -> bool:
    """Tell whether the fact is the user's own, and holds now or will."""
    until = line["valid_to"]
    is_over = until is not None and datetime.fromisoformat(until) <= datetime.now(UTC)
    is_own = line["scope"] == "user" and (line["key"] is None or is_key(line["key"]))
    return is_own and line["status"] == "active" and line["ended"] is None and not is_over


def _by_claim(line: Json) -> tuple[bool, float, str]:
    """Return the sort key of facts under one key: the one that holds now gets the key's file, then the newest."""
    is_coming = datetime.fromisoformat(line["valid_from"]) > datetime.now(UTC)
    return is_coming, -datetime.fromisoformat(line["created_at"]).timestamp(), line["id"]
