"""Records of imports that go on behind their answer, which any process of the service can be asked about.

A record names neither a user nor a caller, only the keyed hash of who sent the lines; it holds counts, numbers of lines
and sentences of errors, never a text of the lines. It is kept for a day.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import uuid4

from recollect.memory.memory import Memory
from recollect.memory.ports.client_records import ClientRecord
from recollect.memory.values.frozen import frozen
from recollect.memory.values.scope import GLOBAL_USER, Scope
from recollect.memory.values.times import iso

ImportState = Literal["running", "done", "failed", "interrupted"]

KEPT = timedelta(hours=24)
BEAT_SECONDS = 2.0
"""How often the process that imports says that it still does."""
LOST = timedelta(seconds=10)
"""A process that has said nothing for so long has ended amid the import."""
_THREAD = "imports"


@frozen
class ImportRecord:
    """One import. `by`: the keyed hash of its caller. `process` has it, and said so last at `beat_at` (UTC).

    `said` is the result's, or the error's, JSON once it has ended.
    """

    id: str
    by: str
    process: str
    began_at: datetime
    beat_at: datetime
    state: ImportState = "running"
    said: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def as_json(self) -> dict[str, Any]:
        """Return the import as the HTTP contract shows it."""
        return {"import_id": self.id, "status": self.state, **self.said}


@frozen
class ImportRecords:
    """The records of imports in the store.

    Raises:
        StoreUnavailable: from any call, where the store cannot be reached.
    """

    memory: Memory
    process: str = field(default_factory=lambda: uuid4().hex)

    async def begin(self, *, caller: str) -> ImportRecord:
        """Store the record of an import that this process runs for the `caller` of this name, and return it."""
        now = self.memory.now()
        return await self._put(ImportRecord(f"import-{uuid4().hex}", await self._hash(caller), self.process, now, now))

    async def beat(self, record: ImportRecord) -> ImportRecord:
        """Say that the import still runs."""
        return await self._put(replace(record, beat_at=self.memory.now()))

    async def end(self, record: ImportRecord, state: ImportState, said: Mapping[str, Any]) -> None:
        """Say how the import ended."""
        await self._put(replace(record, beat_at=self.memory.now(), state=state, said=said))

    async def find(self, import_id: str) -> ImportRecord | None:
        """Return the record, or None. One whose process has ended amid the import is "interrupted"."""
        found = await self.memory.client_records.record(user_id=GLOBAL_USER, record_id=_record_id(import_id))
        if found is None or found.is_over(self.memory.now()):
            return None
        record = _read(import_id, found)
        return replace(record, state="interrupted") if self._is_lost(record) else record

    async def is_by(self, record: ImportRecord, caller: str) -> bool:
        """Tell whether the caller of this name sent the lines."""
        return record.by == await self._hash(caller)

    def _is_lost(self, record: ImportRecord) -> bool:
        if record.state != "running":
            return False
        # DATA_DIR has one owner at a time: there, another process is one that has ended.
        is_over = self.memory.config.mongodb_url is None and record.process != self.process
        return is_over or record.beat_at + LOST <= self.memory.now()

    async def _put(self, record: ImportRecord) -> ImportRecord:
        fence = await self.memory.observe(Scope(GLOBAL_USER, _THREAD))
        await self.memory.client_records.put(_written(record), fence)
        return record

    async def _hash(self, caller: str) -> str:
        return await self.memory.keyed_hash("import", caller)


def _record_id(import_id: str) -> str:
    return f"import/{import_id}"


def _written(record: ImportRecord) -> ClientRecord:
    content = {
        "by": record.by,
        "process": record.process,
        "beat_at": iso(record.beat_at),
        "state": record.state,
        "said": dict(record.said),
    }
    ends_at = record.beat_at + KEPT
    return ClientRecord(GLOBAL_USER, _THREAD, _record_id(record.id), "import", record.began_at, ends_at, content)


def _read(import_id: str, record: ClientRecord) -> ImportRecord:
    said = record.content
    beat_at = datetime.fromisoformat(said["beat_at"])
    return ImportRecord(import_id, said["by"], said["process"], record.created_at, beat_at, said["state"], said["said"])
