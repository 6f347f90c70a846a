"""Sorts the files of another agent's folder into those that are read, in order, and those that no reader knows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from recollect.memory.transfer.line_source import SourceHoldings, Unreadable
from recollect.memory.transfer.sources.app_database import MAGIC as DATABASE
from recollect.memory.transfer.sources.app_database import SUFFIXES, is_database, read_database
from recollect.memory.transfer.sources.files import Said, read_json
from recollect.memory.transfer.sources.markdown import entry_files, read_entry_file
from recollect.memory.transfer.sources.sessions import is_session, messages_in, read_session
from recollect.memory.transfer.sources.tiered import SUMMARIES, is_tiered, read_tiered
from recollect.memory.values.frozen import frozen

_DATA = frozenset({".json", ".jsonl", *SUFFIXES})
"""Suffixes of files that may hold memories: those that are not read are named to the user."""
_OTHERS = frozenset({"node_modules", "site-packages", "__pycache__", ".git", ".venv", "venv"})


def is_readable(path: Path) -> bool:
    """Tell whether the file's name selects a reader other than that of JSON Lines."""
    return is_session(path) or is_tiered(path) or path.suffix == ".md"


def holds_session(path: Path) -> bool:
    """Tell whether a `.json` file of any name is a session: a list of messages, or an object with such a list."""
    if path.suffix != ".json":
        return False
    said = read_json(path)
    messages = None if isinstance(said, Unreadable) else messages_in(said)
    return messages is not None and all(isinstance(message, dict) for message in messages)


def sort_files(folder: Path) -> tuple[list[Path], list[str]]:
    """Return the folder's files that are read, in order, and the paths of other data files, relative to the folder."""
    found = sorted(path for path in folder.rglob("*") if path.suffix in _DATA and path.is_file())
    kept = [path for path in found if not _OTHERS.intersection(path.relative_to(folder).parts)]
    sessions = [path for path in kept if is_session(path)]
    tiered = [path for path in kept if is_tiered(path) and path not in sessions]
    databases = [path for path in kept if path.suffix in SUFFIXES and _is_database(path)]
    # Summaries come last: a summary needs the messages of its thread.
    summaries = [path for path in tiered if path.stem == SUMMARIES]
    others = [path for path in tiered if path not in summaries]
    chosen = [*sessions, *others, *databases, *entry_files(folder), *summaries]
    known = frozenset(chosen)
    return chosen, [str(path.relative_to(folder)) for path in kept if path not in known]


@frozen
class Reader:
    """Reads each file of a source by its name, for `user_id`; adds what it reads to `holdings`."""

    paths: Sequence[Path]
    holdings: SourceHoldings
    user_id: str | None

    def read(self, path: Path) -> Iterator[Said]:
        """Yield the fields of each message, fact and summary in the file."""
        if path.suffix in SUFFIXES:
            within = f"{path.name}:" if len(self.paths) > 1 else ""
            yield from read_database(path, user_id=self.user_id, holdings=self.holdings, within=within)
            return
        if path.name not in self.holdings.read:
            self.holdings.read.append(path.name)
        if is_tiered(path):
            sessions = [one for one in self.paths if is_session(one)]
            yield from read_tiered(path, user_id=self.user_id, sessions=sessions)
        elif path.suffix == ".md":
            yield from read_entry_file(path, user_id=self.user_id)
        else:
            yield from read_session(path, user_id=self.user_id)


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_database(file.read(len(DATABASE)))
    except OSError:
        return False
