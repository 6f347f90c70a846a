"""Measures a bulk import of long messages beside other users' searches: `python -m benchmarks.bulk_import`.

EMBEDDING_MODEL_PATH names the folder of all-MiniLM-L6-v2. The service is a real process; one user's import of 5,000
messages of 4,000 characters runs while another user searches, a search every 0.2 s.
"""

import argparse
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles

import httpx

from benchmarks.processes import Server, service
from benchmarks.report import Row, conclusion, machine, table, write
from recollect.settings import load_settings

RESULTS = Path(__file__).parent / "results" / "bulk_import.json"
MINILM = "fastembed:sentence-transformers/all-MiniLM-L6-v2"
MOST_MIB = 600
MOST_P95_MS = 100
BETWEEN_SECONDS = 0.2
_SYLLABLES = ["ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu"]


@dataclass(slots=True)
class Seen:
    """Collects, while the import runs, the milliseconds of searches and the most resident MiB."""

    milliseconds: list[float] = field(default_factory=list[float])
    resident: float = 0.0


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bulk_import", description="A bulk import's costs.")
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--characters", type=int, default=4_000)
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go")
    given = parser.parse_args(arguments)
    path, ran_on = load_settings().embedding_model_path, machine()
    if path is None:
        parser.error("EMBEDDING_MODEL_PATH is not set: name the folder of all-MiniLM-L6-v2.")
    settings = {"EMBEDDING_MODEL": MINILM, "EMBEDDING_MODEL_PATH": str(path), "IMPORT_SECONDS": "3600"}
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder, service(Path(folder), settings) as running:
        seconds, seen = _measure(running, given.messages, given.characters)
    p95 = quantiles(seen.milliseconds, n=20)[-1]
    rows = [
        Row("import, seconds", "", f"{seconds:.0f}"),
        Row("most resident memory", f"< {MOST_MIB} MiB", f"{seen.resident:.0f} MiB", seen.resident < MOST_MIB),
        Row("p95 of another user's searches", f"< {MOST_P95_MS} ms", f"{p95:.0f} ms", p95 < MOST_P95_MS),
    ]
    print(table(rows))
    print(f"\n{conclusion(rows)}")
    write(given.json, rows=rows, figures={"searches": len(seen.milliseconds)}, ran_on=ran_on)


def _measure(running: Server, messages: int, characters: int) -> tuple[float, Seen]:
    """Return the seconds of the import, and what was seen meanwhile."""
    base = f"http://127.0.0.1:{running.port}"
    seen, is_over = Seen(), threading.Event()
    with httpx.Client(base_url=base, timeout=None) as http:
        http.post("/api/import", content=b"".join(_lines("eve", 200, 200))).raise_for_status()
        searching = threading.Thread(target=_search, args=(running, base, seen, is_over), daemon=True)
        searching.start()
        begun = time.perf_counter()
        said = http.post("/api/import", content=b"".join(_lines("ada", messages, characters)))
        said.raise_for_status()
        answer = said.json()
        while answer.get("status") == "running":
            time.sleep(1)
            answer = http.get(f"/api/import/{answer['import_id']}").json()
        seconds = time.perf_counter() - begun
        is_over.set()
        searching.join()
    if answer.get("imported") != messages:
        raise RuntimeError("The import failed, or lines of it.")
    return seconds, seen


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
