"""One pass of a sync: copies changes of one side to the other; what changed on both sides is a conflict."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePosixPath
from typing import Any

from recollect.api.cli.owner import OwnerRefused
from recollect.api.cli.sync.folder import FileState, Folder, SyncState, conflict_of, file_hash, kind_of_file
from recollect.api.cli.sync.memory_side import MemorySide, Snapshot, WantedFile
from recollect.api.cli.sync.texts import FactFile, gone_text, read_fact, read_summary
from recollect.memory.transfer.front_matter import NoFrontMatter
from recollect.memory.values.errors import RecollectError


class NotThisMemory(RecollectError):
    """The folder and the memory do not belong together."""


class Verdict(Enum):
    """The action to take for a file."""

    SAME = "same"
    TO_FILE = "to file"
    TO_MEMORY = "to memory"
    CONFLICT = "conflict"


def verdict(base: str | None, here: str | None, there: str | None) -> Verdict:
    """Decide by the hashes of the last sync (`base`), the file (`here`) and the memory (`there`); None where absent."""
    if here == there:
        return Verdict.SAME
    if here == base:
        return Verdict.TO_FILE
    return Verdict.TO_MEMORY if there == base else Verdict.CONFLICT


@dataclass
class PassResult:
    """The result of a pass, one sentence for each action; `open` names what waits for a person."""

    done: list[str] = field(default_factory=list[str])
    open: list[str] = field(default_factory=list[str])
    has_edited: bool = False


@dataclass
class FactsPass:
    """Syncs facts and summaries, both ways."""

    folder: Folder
    memory: MemorySide
    state: SyncState
    is_forced: bool
    _edited: list[tuple[str, str | None, str]] = field(init=False, default_factory=list[tuple[str, str | None, str]])

    def run(self, outcome: PassResult) -> Snapshot:
        """Run one pass; return the memory as it was at its beginning.

        Raises:
            NotThisMemory: nothing was done, because it would undo everything on one side.
            Refused: the service cannot be reached.
        """
        there = self.memory.snapshot()
        here = {path: content for path, content in self.folder.files().items() if kind_of_file(path) != "turn"}
        self._undo_renames(here, there, outcome)
        paths = {*here, *there.items, *(path for path in self.state.files if kind_of_file(path) != "turn")}
        verdicts = {path: self._verdict(path, here, there) for path in paths}
        if not self.is_forced:
            self._check(verdicts, here, there)
        for path in sorted(paths):
            if self._is_open(path, here, there, outcome):
                continue
            item = there.items.get(path)
            if verdicts[path] is Verdict.SAME:
                self._record(path, item)
            elif verdicts[path] is Verdict.TO_FILE:
                self._to_file(path, item, outcome)
            elif verdicts[path] is Verdict.CONFLICT and not self._says_the_same(path, item):
                self._conflict(path, item, outcome)
            elif verdicts[path] is Verdict.CONFLICT:
                self._to_file(path, item, outcome)
            else:
                self._to_memory(path, here.get(path), there, outcome)
        if self._edited:
            outcome.has_edited = True
            after = self.memory.snapshot()
            for path, content, made in self._edited:
                self._take_over(path, content, after.items.get(made))
        return there

    def _verdict(self, path: str, here: dict[str, str], there: Snapshot) -> Verdict:
        item, base = there.items.get(path), self.state.files.get(path)
        return verdict(base and base.hash, here.get(path), item and item.hash)

    def _check(self, verdicts: dict[str, Verdict], here: dict[str, str], there: Snapshot) -> None:
        """Refuse what looks like a mistake: an emptied folder, or another memory."""
        for kind in ("fact", "summary"):
            known = [path for path in self.state.files if kind_of_file(path) == kind]
            standing = [path for path in known if path in there.items]
            forgotten = [path for path in standing if path not in here and verdicts[path] is Verdict.TO_MEMORY]
            if len(forgotten) > 1 and len(forgotten) == len(standing):
                raise NotThisMemory(
                    f"All {len(forgotten)} {_PLURAL[kind]} are gone from {self.folder.base}, which would remove them "
                    "from the memory; nothing was done. Put the files back, or say --force."
                )
        ids = {one.id for path, one in self.state.files.items() if kind_of_file(path) == "fact"}
        if len(ids) > 1 and not ids & there.fact_ids:
            raise NotThisMemory(
                f"None of the facts in {self.folder.base} is in this memory: it is another one, or was erased. Nothing "
                "was done; name the right service, or say --force to remove the files too."
            )

    def _undo_renames(self, here: dict[str, str], there: Snapshot, outcome: PassResult) -> None:
        """Give renamed files of facts their names back: a fact's name is its key, or its id."""
        for path in [path for path in here if kind_of_file(path) == "fact" and path not in self.state.files]:
            try:
                named = self._fact(path).id
            except NoFrontMatter:
                continue
            item = there.of_id(named)
            if item is not None and item.path != path and item.path in self.state.files and item.path not in here:
                self.folder.move(path, item.path)
                here[item.path] = here.pop(path)
                outcome.done.append(f"renamed {path} to {item.path}: a fact's file has the name of its key or id")

    def _is_open(self, path: str, here: dict[str, str], there: Snapshot, outcome: PassResult) -> bool:
        """Tell whether an earlier conflict is undecided; keep the memory's version beside it up to date."""
        beside = conflict_of(path)
        if not self.folder.has(beside):
            return False
        item = there.items.get(path)
        if here.get(path) == (item and item.hash):
            self.folder.remove(beside)
            return False
        self._conflict(path, item, outcome)
        return True

    def _says_the_same(self, path: str, item: WantedFile | None) -> bool:
        """Tell whether the file differs in form alone: an interrupted sync may have sent it before."""
        content = self.folder.read(path)
        if item is None or content is None:
            return False
        try:
            if item.kind == "summary":
                return read_summary(content) == item.line["content"]
            given = read_fact(content, PurePosixPath(path).stem)
        except NoFrontMatter:
            return False
        return given.key == item.line["key"] and not given.changes(item.line)

    def _conflict(self, path: str, item: WantedFile | None, outcome: PassResult) -> None:
        """Write the memory's version beside the file. Once that is removed, the file's version wins."""
        beside, content = conflict_of(path), gone_text() if item is None else item.content
        if self.folder.read(beside) != content:
            self.folder.write(beside, content)
        self._record(path, item)
        outcome.open.append(
            f"conflict {path}: changed here and in the memory, whose version is {beside}; edit {path} and delete that"
        )

    def _record(self, path: str, item: WantedFile | None) -> None:
        if item is None:
            self.state.files.pop(path, None)
        else:
            self.state.files[path] = FileState(hash=item.hash, id=item.id)

    def _to_file(self, path: str, item: WantedFile | None, outcome: PassResult) -> None:
        if item is None:
            self.folder.remove(path)
            outcome.done.append(f"removed {path}")
        else:
            self.folder.write(path, item.content)
            outcome.done.append(f"wrote {path}")
        self._record(path, item)

    def _to_memory(self, path: str, here: str | None, there: Snapshot, outcome: PassResult) -> None:
        """Send the edit; then replace the file with the memory's version of it."""
        try:
            if kind_of_file(path) == "summary":
                done = self._edit_summary(path, here, there)
                made = path
            else:
                done, made = self._edit_fact(path, here, there)
        except NoFrontMatter as error:
            outcome.open.append(f"left {path} alone: {error}")
            return
        except OwnerRefused as error:
            outcome.open.append(f"left {path} alone: {error.message}")
            return
        outcome.done.append(done)
        self._edited.append((path, here, made))

    def _take_over(self, path: str, here: str | None, item: WantedFile | None) -> None:
        """Write the memory's current version, unless the file was edited again meanwhile."""
        self.state.files.pop(path, None)
        if item is None:
            return
        self._record(item.path, item)
        now = self.folder.read(path)
        if here is not None and (now is None or file_hash(now) == here):
            self.folder.write(item.path, item.content)
            if item.path != path:
                self.folder.remove(path)

    def _edit_summary(self, path: str, here: str | None, there: Snapshot) -> str:
        client, user_id = self.memory.client, self.memory.user_id
        item, thread = there.items.get(path), there.threads.get(PurePosixPath(path).parts[0])
        if item is None and thread is None:
            raise NoFrontMatter("The memory has no such thread.")
        thread_id = item.id if item is not None else str((thread or {})["thread_id"])
        text = None if here is None else read_summary(self._content(path))
        client.set_summary(user_id, thread_id, text)
        return f"removed the summary of {path} from the memory" if text is None else f"edited {path} in the memory"

    def _edit_fact(self, path: str, here: str | None, there: Snapshot) -> tuple[str, str]:
        """Send a fact's edit; return what was done, and the path that the fact's file has then."""
        client, user_id, item = self.memory.client, self.memory.user_id, there.items.get(path)
        if here is None:
            if item is not None:
                client.forget(user_id, item.id)
            return f"forgot {path} in the memory", path
        given = self._fact(path)
        if item is not None:
            if given.key != item.line["key"] or given.id not in (None, item.id):
                raise NoFrontMatter("id and key cannot be changed; delete the file and write a new one.")
            changes = given.changes(item.line)
            if changes:
                client.change_fact(user_id, item.id, changes)
            return f"edited {path} in the memory", path
        return self._add_fact(path, given, there)

    def _add_fact(self, path: str, given: FactFile, there: Snapshot) -> tuple[str, str]:
        client, user_id = self.memory.client, self.memory.user_id
        if there.of_id(given.id) is not None:
            raise NoFrontMatter("It has the id of another file's fact; take id out to make a new one.")
        if given.key is not None:
            made = f"facts/{given.key}.md"
            if made != path and (made in there.items or self.folder.has(made)):
                raise NoFrontMatter(f"The fact under this key has its file, {made}.")
            client.put_fact(user_id, given.key, given.edit())
            return f"added {made} to the memory", made
        edit: dict[str, Any] = given.edit()
        fact_id = str(client.write_note(user_id, edit.pop("statement")).get("id"))
        if edit:
            client.change_fact(user_id, fact_id, edit)
        return f"added {path} to the memory, as facts/{fact_id}.md", f"facts/{fact_id}.md"

    def _fact(self, path: str) -> FactFile:
        return read_fact(self._content(path), PurePosixPath(path).stem)

    def _content(self, path: str) -> bytes:
        content = self.folder.read(path)
        if content is None:
            raise NoFrontMatter("The file cannot be read; it may be too long.")
        return content


@dataclass
class TurnsPass:
    """Writes turns, which are read-only, from the memory to the folder. `seen`: the threads at the last pass."""

    folder: Folder
    memory: MemorySide
    state: SyncState
    seen: dict[str, Any]

    def run(self, there: Snapshot, outcome: PassResult) -> None:
        """Write turns that are new or changed, restore those that were edited, remove those that are gone."""
        here = {path: content for path, content in self.folder.files().items() if kind_of_file(path) == "turn"}
        tracked = {path: one.hash for path, one in self.state.files.items() if kind_of_file(path) == "turn"}
        edited = {_thread(path) for path, base in tracked.items() if here.get(path) != base}
        changed = {name for name, thread in there.threads.items() if self.seen.get(name) != thread or name in edited}
        gone = {_thread(path) for path in tracked} - there.threads.keys()
        for item in self._turns(changed, there):
            self._follow(item, here.get(item.path), tracked.pop(item.path, None), outcome)
        for path, base in tracked.items():
            if _thread(path) in changed | gone:
                self._drop(path, here.get(path), base, outcome)
        self.seen.clear()
        self.seen.update(there.threads)

    def _turns(self, changed: set[str], there: Snapshot) -> Iterable[WantedFile]:
        """Yield the turns of the changed threads; where all have changed, in one request."""
        if changed and changed == there.threads.keys():
            yield from self.memory.turns(None)
            return
        for name in sorted(changed):
            yield from self.memory.turns(there.threads[name]["thread_id"])

    def _follow(self, item: WantedFile, here: str | None, base: str | None, outcome: PassResult) -> None:
        if here != item.hash:
            self.folder.write(item.path, item.content)
            is_edited = here is not None and here != base
            outcome.done.append(f"restored {item.path}: turns cannot be edited" if is_edited else f"wrote {item.path}")
        self.state.files[item.path] = FileState(hash=item.hash, id=item.id)

    def _drop(self, path: str, here: str | None, base: str, outcome: PassResult) -> None:
        del self.state.files[path]
        if here == base:
            self.folder.remove(path)
            outcome.done.append(f"removed {path}")
        elif here is not None:
            outcome.done.append(f"left {path}: its turn is gone, and the file was edited")


_PLURAL = {"fact": "facts", "summary": "summaries"}


def _thread(path: str) -> str:
    return PurePosixPath(path).parts[0]
