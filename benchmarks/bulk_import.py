"""Measures a bulk import of long messages beside other users' searches: `python -m benchmarks.bulk_import`.

EMBEDDING_MODEL_PATH names the folder of all-MiniLM-L6-v2. The service is a real process; one user's import of 5,000
messages of 4,000 characters runs while another user searches, a search every 0.2 s. Its searches are timed before the
import too, because a machine with other work to do answers later by itself.
"""

import argparse
import json
import random
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx

from benchmarks.processes import Server, service
from benchmarks.recalling.passes import say
from benchmarks.report import Row, conclusion, machine, table, write
from recollect.settings import load_settings

RESULTS = Path(__file__).parent / "results" / "bulk_import.json"
MINILM = "fastembed:sentence-transformers/all-MiniLM-L6-v2"
MOST_MIB = 600
MOST_P95_MS = 100
LIMITS = {"IMPORT_SECONDS": "3600", "MAX_UPLOAD_MB": "100"}
"""The lines are 21 MB, one more than a service takes by default."""
BETWEEN_SECONDS = 0.2
TOLD_SECONDS = 60.0
_SYLLABLES = ["ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu"]


@dataclass(slots=True)
class Seen:
    """Collects the milliseconds of searches, and the most resident MiB meanwhile."""

    milliseconds: list[float] = field(default_factory=list[float])
    resident: float = 0.0

    @property
    def p95(self) -> float:
        """Return the milliseconds that 95 of 100 searches stayed below."""
        return quantiles(self.milliseconds, n=20)[-1]


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bulk_import", description="A bulk import's costs.")
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--characters", type=int, default=4_000)
    parser.add_argument("--before", type=float, default=30.0, help="seconds of searches before the import")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go")
    given = parser.parse_args(arguments)
    path, ran_on = load_settings().embedding_model_path, machine()
    if path is None:
        parser.error("EMBEDDING_MODEL_PATH is not set: name the folder of all-MiniLM-L6-v2.")
    settings = {"EMBEDDING_MODEL": MINILM, "EMBEDDING_MODEL_PATH": str(path), **LIMITS}
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder, service(Path(folder), settings) as running:
        measured = _measure(running, given.messages, given.characters, before=given.before)
    alone, seen, p95 = measured.alone, measured.beside, measured.beside.p95
    rows = [
        Row(f"import of {given.messages:,} messages", "", f"{measured.seconds:.0f} s"),
        Row("CPU of the service meanwhile", "", f"{measured.cpu_seconds:.0f} s"),
        Row("most resident memory", f"< {MOST_MIB} MiB", f"{seen.resident:.0f} MiB", seen.resident < MOST_MIB),
        Row("p95 of another user's searches", f"< {MOST_P95_MS} ms", f"{p95:.0f} ms", p95 < MOST_P95_MS),
        Row("median of these searches", "", f"{median(seen.milliseconds):.0f} ms"),
        Row("p95 / median of searches before the import", "", f"{alone.p95:.0f} / {median(alone.milliseconds):.0f} ms"),
    ]
    print(table(rows))
    print(f"\n{conclusion(rows)}")
    counted = {"searches": len(seen.milliseconds), "p95": p95, "resident": seen.resident}
    write(given.json, rows=rows, figures=counted, ran_on=ran_on)


@dataclass(frozen=True, slots=True)
class Measured:
    """The wall time and the CPU time of an import, and the searches before it and `beside` it."""

    seconds: float
    cpu_seconds: float
    alone: Seen
    beside: Seen


def _measure(running: Server, messages: int, characters: int, *, before: float) -> Measured:
    """Search alone, then import beside searches.

    Raises:
        RuntimeError: the import failed, or some of its lines.
    """
    base = f"http://127.0.0.1:{running.port}"
    with httpx.Client(base_url=base, timeout=None) as http:
        http.post("/api/import", content=b"".join(_lines("eve", 200, 200))).raise_for_status()
        with _searching(running, base) as alone:
            time.sleep(before)
        cpu_before, begun = running.cpu_seconds, time.perf_counter()
        with _searching(running, base) as beside:
            stored = _import(http, b"".join(_lines("ada", messages, characters)), beside)
        seconds = time.perf_counter() - begun
    if stored != messages:
        raise RuntimeError(f"Of {messages} messages {stored} are stored.")
    return Measured(seconds, running.cpu_seconds - cpu_before, alone, beside)


def _import(http: httpx.Client, lines: bytes, seen: Seen) -> int:
    """Import the lines, and again where the time of an import is up; return how many are there then.

    Raises:
        RuntimeError: the import failed.
    """
    while True:
        answer = _ended(http, lines, seen)
        if stored := answer.get("imported", 0) + answer.get("known", 0):
            return stored
        if answer.get("error", {}).get("code") != "import_unfinished":
            raise RuntimeError(f"The import failed: {answer}")
        say("the time of an import is up; the same lines are sent again")


def _ended(http: httpx.Client, lines: bytes, seen: Seen) -> dict[str, Any]:
    """Import the lines, and return the answer once the import has ended."""
    answer: dict[str, Any] = http.post("/api/import", content=lines).json()
    told = time.monotonic()
    while answer.get("status") == "running":
        time.sleep(1)
        if time.monotonic() - told >= TOLD_SECONDS:
            told = time.monotonic()
            say(f"{len(seen.milliseconds)} searches, p95 {seen.p95:.0f} ms, {seen.resident:.0f} MiB")
        answer = http.get(f"/api/import/{answer['import_id']}").json()
    return answer


@contextmanager
def _searching(running: Server, base: str) -> Generator[Seen]:
    """Search in a thread until the block ends."""
    seen, is_over = Seen(), threading.Event()
    searching = threading.Thread(target=_search, args=(running, base, seen, is_over), daemon=True)
    searching.start()
    try:
        yield seen
    finally:
        is_over.set()
        searching.join()


def _search(running: Server, base: str, seen: Seen, is_over: threading.Event) -> None:
    with httpx.Client(base_url=base, timeout=60) as http:
        words = _words(random.Random(2))
        while not is_over.wait(BETWEEN_SECONDS):
            query = " ".join(next(words) for _ in range(6))
            begun = time.perf_counter()
            http.post("/api/memory/search", json={"user_id": "eve", "query": query}).raise_for_status()
            seen.milliseconds.append((time.perf_counter() - begun) * 1_000)
            seen.resident = max(seen.resident, running.resident_mb)


def _lines(user_id: str, messages: int, characters: int) -> Iterator[bytes]:
    words = _words(random.Random(1))
    for number in range(messages):
        text = ""
        while len(text) < characters:
            text += next(words) + " "
        line = {
            "user_id": user_id,
            "thread_id": f"t{number // 50}",
            "role": "assistant" if number % 2 else "user",
            "content": text[: characters - 1] + ".",
            "timestamp": 1_700_000_000 + number,
            "message_id": str(number),
        }
        yield json.dumps(line).encode() + b"\n"


def _words(chance: random.Random) -> Iterator[str]:
    while True:
        yield "".join(chance.choice(_SYLLABLES) for _ in range(chance.randint(1, 4)))


if __name__ == "__main__":
    main()
