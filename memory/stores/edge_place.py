"""Where the embedded index's collections lie on the disk. Everything here blocks."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from memory.stores.points import generation_name, generation_of, siblings


@dataclass(frozen=True, slots=True)
class Place:
    """Where a collection's generations lie: `<name>`, then `<name>.r2`, …, in one folder.

    The file `<name>.current` names the one that serves; without it `<name>` does. It is replaced as a whole, so that a
    kill leaves the old generation serving or the new one.
    """

    folder: Path
    base: str
    name: str

    def path(self, number: int) -> Path:
        """The folder of a generation."""
        return self.folder / generation_name(self.name, number)

    def serving(self) -> int:
        """Which generation serves."""
        try:
            said = self._pointer.read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            return 1
        return generation_of(said.strip(), name=self.name) or 1

    def serve(self, number: int) -> None:
        """Let this generation serve from the next opening on."""
        written = self._pointer.with_name(f"{self._pointer.name}.new")
        with written.open("w", encoding="utf-8") as file:
            file.write(generation_name(self.name, number))
            file.flush()
            os.fsync(file.fileno())
        written.replace(self._pointer)

    def remove_before(self, number: int) -> None:
        """Remove the generations before this one, whatever can be removed of them."""
        for item in self.folder.iterdir():
            found = generation_of(item.name, name=self.name)
            if found is not None and found < number:
                shutil.rmtree(item, ignore_errors=True)

    def remove_after(self, number: int) -> None:
        """Remove the generations after this one: what a rebuild left that was killed, or given up."""
        for item in self.folder.iterdir():
            found = generation_of(item.name, name=self.name)
            if found is not None and found > number:
                shutil.rmtree(item)

    def damaged(self) -> list[Path]:
        """The folders of the base name that were moved aside as damaged, whoever they were made for."""
        shape = re.compile(re.escape(self.base) + r"__.*\.damaged-[0-9TZ]+")
        return [item for item in self.folder.iterdir() if shape.fullmatch(item.name)]

    def other(self, name: str) -> "Place":
        """Where another embedder's collection lies."""
        return Place(self.folder, self.base, name)

    def others(self) -> list[str]:
        """The collections of other embedders; folders that were moved aside as damaged are none."""
        return siblings(self.base, names=[item.name for item in self.folder.iterdir()], own=self.name)

    @property
    def _pointer(self) -> Path:
        return self.folder / f"{self.name}.current"
