"""Measures the inspector's pages for a user with many messages, facts and threads, embedded: `--quick` is a short run.

The service's time is that of a request over a loopback connection that stays open, and its CPU time, which other load
hardly changes, the mean of them all; a page's time in Chromium begins with the navigation and ends when all that it
loads is there, each time in a new window without a cache.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from typing import Any
from urllib.parse import quote

import httpx
from playwright.sync_api import Browser, CDPSession, sync_playwright

from benchmarks.inspector_data import FULL, OWNER, QUICK, Size, fill
from benchmarks.processes import Server, service
from benchmarks.report import Row, conclusion, machine, table, write
from recollect.memory.opening.opening import open_memory
from recollect.memory.values.mem_config import MemoryConfig

RESULTS = Path(__file__).parent / "results" / "inspector.json"
CHROMIUM = Path("/usr/bin/chromium")
MOST_SERVER_MS = 100.0
MOST_LOADED_MS = 300.0
MOST_KB = 100.0
NO_SWEEP_SECONDS = 86_400.0
_QUERY = "bada dedo"


@dataclass(frozen=True, slots=True)
class Loads:
    """How a page loads: milliseconds and kilobytes (1,000 bytes), headers included."""

    server_p50: float
    server_p95: float
    server_cpu: float
    server_kb: float
    browser_p50: float | None = None
    browser_p95: float | None = None
    wire_kb: float | None = None


def main(arguments: list[str] | None = None) -> None:
    """Fill, measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inspector", description="How fast the pages are.")
    parser.add_argument("--quick", action="store_true", help="a short run, whose figures mean little")
    parser.add_argument("--json", type=Path, default=RESULTS, help="where the figures go")
    parser.add_argument("--folder", type=Path, help="keep the store there, and take it again where it is filled")
    given = parser.parse_args(arguments)
    ran_on, size = machine(), QUICK if given.quick else FULL
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        rows, figures = measure(size, given.folder or Path(folder))
    print(table(rows))
    print(f"\n{conclusion(rows)}")
    write(given.json, rows=rows, figures=figures, ran_on=ran_on)


def measure(size: Size, folder: Path) -> tuple[list[Row], dict[str, Any]]:
    """Fill the store in the folder, serve it, and load each page `size.loads` times."""
    if not (folder / "filled").exists():
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(_fill(size, folder / "data"))
        (folder / "filled").touch()
    with service(folder, {}) as running, httpx.Client(base_url=f"http://127.0.0.1:{running.port}", timeout=60) as http:
        found = {name: _served(running, http, path, size.loads) for name, path in _pages(http).items()}
        if CHROMIUM.exists():
            with chromium() as browser:
                for name, path in _pages(http).items():
                    found[name] = _shown(browser, f"{http.base_url}{path}", found[name], max(5, size.loads // 4))
        else:
            print(f"There is no {CHROMIUM}: nothing is measured in a browser.", file=sys.stderr)
    rows = [row for name, loads in found.items() for row in _rows(name, loads)]
    return rows, {name: {field: getattr(loads, field) for field in Loads.__slots__} for name, loads in found.items()}


async def _fill(size: Size, folder: Path) -> None:
    async with open_memory(MemoryConfig(data_dir=folder, sweep_seconds=NO_SWEEP_SECONDS)) as memory:
        await fill(memory, size)


def _pages(http: httpx.Client) -> Mapping[str, str]:
    """Return each page's address; a turn is run first, so that one has a record of what was recalled."""
    user = {"user_id": OWNER}
    body = {**user, "thread_id": "thread-0", "message": f"What did I say about {_QUERY}?", "turn_id": "asked"}
    http.post("/api/agent", json={**body, "wait_for_memory": True}).raise_for_status()
    fact = http.get(f"/api/users/{OWNER}/facts", params={"limit": 1}).raise_for_status().json()["items"][0]["id"]
    own = f"/users/{OWNER}"
    return {
        "Talk, a thread": f"{own}/talk?thread=thread-0",
        "What is known": f"{own}/facts",
        "What is known, as of a time": f"{own}/facts?as_of=2030-01-01T00:00:00Z",
        "What is known, with a text": f"{own}/facts?text={quote(_QUERY)}",
        "What is known, with a tag": f"{own}/facts?tag=tag3",
        "a fact": f"{own}/facts/{fact}",
        "before forgetting": f"{own}/facts/{fact}/forget",
        "Threads": f"{own}/threads",
        "Threads, with a text": f"{own}/threads?text={quote(_QUERY)}",
        "a thread": f"{own}/threads/thread-7",
        "why, a turn": f"{own}/turns/asked",
        "Search, a query": f"{own}/search?query={quote(_QUERY)}",
    }


def _served(running: Server, http: httpx.Client, path: str, times: int) -> Loads:
    """Time requests for a page."""
    taken, size, used = list[float](), 0, 0.0
    for number in range(times + times // 10):
        if number == times // 10:  # the first ones warm up
            taken, used = [], running.cpu_seconds
        begun = time.perf_counter()
        answer = http.get(path, headers={"Accept-Encoding": "gzip"})
        taken.append((time.perf_counter() - begun) * 1_000)
        if not answer.is_success:
            raise RuntimeError(f"{path} is {answer.status_code}: {answer.text[:500]}")
        size = answer.num_bytes_downloaded
    cpu = (running.cpu_seconds - used) / times * 1_000
    return Loads(median(taken), quantiles(taken, n=20)[-1], cpu, size / 1_000)


@contextmanager
def chromium() -> Generator[Browser]:
    """Run the browser."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def _shown(browser: Browser, url: str, served: Loads, times: int) -> Loads:
    """Load a page in new windows, and add what was measured."""
    taken, sizes = list[float](), list[float]()
    for _ in range(times + 1):
        context = browser.new_context()
        page = context.new_page()
        received = _bytes_received(context.new_cdp_session(page))
        page.goto(url, wait_until="load")
        taken.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventStart"))
        sizes.append(sum(received) / 1_000)
        context.close()
    return replace(
        served,
        browser_p50=median(taken[1:]),
        browser_p95=quantiles(taken[1:], n=20)[-1],
        wire_kb=max(sizes[1:]),
    )


def _bytes_received(session: CDPSession) -> list[float]:
    """Return the list to which the size of each answer is added, as it came over the wire."""
    received = list[float]()

    def ended(event: dict[str, Any]) -> None:
        received.append(event["encodedDataLength"])

    session.on("Network.loadingFinished", ended)
    session.send("Network.enable")  # pyright: ignore[reportUnknownMemberType]  # its answer has no type
    return received


def _rows(name: str, loads: Loads) -> list[Row]:
    rows = [
        Row(
            f"{name}: the service, p50 / p95 / CPU",
            f"p95 < {MOST_SERVER_MS:.0f} ms",
            f"{loads.server_p50:.1f} / {loads.server_p95:.1f} / {loads.server_cpu:.1f} ms",
            loads.server_p95 < MOST_SERVER_MS,
        )
    ]
    if loads.browser_p50 is not None and loads.browser_p95 is not None and loads.wire_kb is not None:
        rows += [
            Row(
                f"{name}: complete in Chromium, p50 / p95",
                f"p50 < {MOST_LOADED_MS:.0f} ms",
                f"{loads.browser_p50:.0f} / {loads.browser_p95:.0f} ms",
                loads.browser_p50 < MOST_LOADED_MS,
            ),
            Row(
                f"{name}: over the wire, first visit",
                f"<= {MOST_KB:.0f} kB",
                f"{loads.wire_kb:.1f} kB",
                loads.wire_kb <= MOST_KB,
            ),
        ]
    return rows


if __name__ == "__main__":
    main()
