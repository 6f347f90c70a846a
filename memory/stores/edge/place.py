"""Names and removes the folders of the embedded index's collections. Everything here blocks."""

import contextlib
import os
import re
import shutil
import time
from pathlib import Path

from recollect.memory.stores.points import generation_name, generation_of, siblings
from recollect.memory.values.frozen import frozen


@frozen
class EdgePlace:
    """The folders of a collection's generations: `<name>`, then `<name>.r2`, …, in one folder.

    The file `<name>.current` names the generation that serves; without it `<name>` does. It is replaced atomically, so
    that a kill leaves either the old generation or the new one serving.
    """

    folder: Path
    base: str
    name: str

    def path(self, number: int) -> Path:
        """Return the folder of a generation."""
        return self.folder / generation_name(self.name, number)

    def serving(self) -> int:
        """Return the number of the generation that serves."""
        try:
            said = self._pointer.read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return 1
        return generation_of(said.strip(), name=self.name) or 1

    def marker(self, number: int) -> Path:
        """Return the path of the generation's marker: it is there, with the time, since its files hold deleted text."""
        return marker_of(self.path(number))

    def is_rewrite_due(self, number: int, *, seconds: float, last: float | None = None) -> bool:
        """Tell whether the generation's files hold deleted text and are due for a rewrite.

        They are due half of `seconds` after the first deletion, so that one rewrite covers later deletions too, and
        not before `seconds` after the `last` rewrite began (else after a generation last began to serve).
        """
        deleted_at, before = _time_of(self.marker(number)), last or _time_of(self._pointer) or 0.0
        return deleted_at is not None and time.time() >= max(deleted_at + seconds / 2, before + seconds)

    def serve(self, number: int) -> None:
        """Let this generation serve from the next opening on."""
        written = self._pointer.with_name(f"{self._pointer.name}.new")
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(generation_name(self.name, number))
            file.flush()
            os.fsync(file.fileno())
        written.replace(self._pointer)

    def remove_before(self, number: int) -> None:
        """Remove the generations before this one, as far as the system lets them be removed."""
        for item in self.folder.iterdir():
            found = generation_of(item.name, name=self.name)
            if found is not None and found < number:
                shutil.rmtree(item, ignore_errors=True)
                self.marker(found).unlink(missing_ok=True)

    def remove_after(self, number: int) -> None:
        """Remove the generations after this one, which killed or abandoned rebuilds left."""
        for item in self.folder.iterdir():
            found = generation_of(item.name, name=self.name)
            if found is not None and found > number:
                shutil.rmtree(item)
                self.marker(found).unlink(missing_ok=True)

    def remove_all(self) -> None:
        """Remove all generations, damaged ones too, with the files that belong to them."""
        parts = r"(?:\.r[0-9]+)?(?:\.current(?:\.new)?|\.deleted|\.damaged-[0-9TZ]+)?"
        shape = re.compile(re.escape(self.name) + parts)
        for item in self.folder.iterdir():
            if shape.fullmatch(item.name):
                shutil.rmtree(item) if item.is_dir() else item.unlink(missing_ok=True)

    def damaged(self) -> list[Path]:
        """Return the folders of the base name that were moved aside as damaged, of any embedder."""
        shape = re.compile(re.escape(self.base) + r"__.*\.damaged-[0-9TZ]+")
        return [item for item in self.folder.iterdir() if shape.fullmatch(item.name)]

    def other(self, name: str) -> "EdgePlace":
        """Return the place of another embedder's collection."""
        return EdgePlace(self.folder, self.base, name)

    def others(self) -> list[str]:
        """Return the names of other embedders' collections, without damaged folders."""
        return siblings(self.base, names=[item.name for item in self.folder.iterdir()], own=self.name)

    @property
    def _pointer(self) -> Path:
        return self.folder / f"{self.name}.current"


def marker_of(path: Path) -> Path:
    """Return the path of the marker of the generation in `path`; see `EdgePlace.marker`."""
    return path.with_name(f"{path.name}.deleted")


def mark_deleted(path: Path) -> None:
    """Mark the generation in `path` as holding text of deleted points; an earlier mark keeps its time."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(marker_of(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _time_of(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return None
