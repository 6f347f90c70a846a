"""The process that reads files: what it may not do, and what becomes of files that need too much."""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from time import monotonic
from typing import BinaryIO

import psutil
import pytest

from recollect.memory.providers.reading.limits import ReadingLimits
from recollect.memory.providers.reading.reader import AT_ONCE, FileReader
from recollect.memory.values.document import DocumentKind
from recollect.memory.values.errors import UnreadableDocument
from tests.service.support import papers

LIMITS = ReadingLimits(pages=500, characters=5_000_000, unpacked=100_000_000)


@contextmanager
def stored(data: bytes) -> Generator[BinaryIO]:
    with tempfile.SpooledTemporaryFile(max_size=1_000_000) as file:
        file.write(data)
        yield file  # pyright: ignore[reportReturnType] - it is a binary file in all but its type


async def refused(data: bytes, kind: DocumentKind, limits: ReadingLimits) -> str:
    with stored(data) as file, pytest.raises(UnreadableDocument) as caught:
        await FileReader(limits).read(file, kind)
    ((field, problem),) = caught.value.problems
    assert field == "file"
    return problem


async def test_a_file_that_takes_too_long_is_given_up() -> None:
    endless = papers.docx(*["word"] * 100_000)  # each paragraph costs far more than its text
    started = monotonic()
    problem = await refused(endless, "docx", ReadingLimits(500, 50_000_000, 500_000_000, seconds=1))
    assert "1 seconds" in problem
    assert monotonic() - started < 10


async def test_a_file_that_takes_too_much_memory_is_given_up() -> None:
    problem = await refused(
        papers.docx("word " * 2_000_000), "docx", ReadingLimits(500, 50_000_000, 500_000_000, 120_000_000)
    )
    assert "120 MB of memory" in problem


async def test_the_loop_goes_on_while_files_are_read_a_few_at_a_time() -> None:
    reader, most = FileReader(LIMITS), 0

    async def one() -> str:
        with stored(papers.pdf("Hello.")) as file:
            return (await reader.read(file, "pdf")).pages[0]

    tasks = [asyncio.create_task(one()) for _ in range(2 * AT_ONCE + 1)]
    ticks = 0
    while not all(task.done() for task in tasks):
        most = max(most, children())
        ticks += 1
        await asyncio.sleep(0.005)
    assert [task.result() for task in tasks] == ["Hello."] * len(tasks)
    assert most <= AT_ONCE
    assert ticks > 20


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.005)


def children() -> int:
    """Return how many processes of ours read a file; other tests have processes of their own."""
    return len(readers())


def readers() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if _reads(child)]


def _reads(process: psutil.Process) -> bool:
    try:
        return "recollect.memory.providers.reading.child" in process.cmdline()
    except psutil.Error:  # it has ended meanwhile
        return False


async def test_whoever_gives_up_waiting_leaves_no_process() -> None:
    with stored(papers.pdf(*["Hello."] * 500)) as file:
        task = asyncio.create_task(FileReader(LIMITS).read(file, "pdf"))
        await until(lambda: children() > 0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert children() == 0


async def test_the_process_is_told_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    seen: dict[str, str] = {}
    with stored(papers.pdf(*["Hello."] * 500)) as file:
        task = asyncio.create_task(FileReader(LIMITS).read(file, "pdf"))

        def looked() -> bool:
            for child in readers():
                seen.update(child.environ())
            return "PYTHONPATH" in seen

        await until(looked)
        await task
    assert "OPENAI_API_KEY" not in seen


def test_nothing_of_a_file_is_logged_or_written_to_the_terminal() -> None:
    data = papers.pdf("Hello.") + b"garbage secret"
    command = [
        sys.executable,
        "-m",
        "recollect.memory.providers.reading.child",
        "pdf",
        "5",
        "100",
        "1000",
        "512000000",
        "30",
    ]
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        ended = subprocess.run(command, stdin=file, capture_output=True, check=True)
    assert ended.stdout.startswith(b'{"pages":')
    assert ended.stderr == b""


async def test_text_is_read_without_a_process() -> None:
    text = "Zürich, neun Uhr.\r\nEnde."
    for data in (text.encode(), text.encode("utf-8-sig"), text.encode("utf-16")):
        with stored(data) as file:
            assert (await FileReader(LIMITS).read(file, "markdown")).pages == ["Zürich, neun Uhr.\nEnde."]
            file.seek(0)  # it is still open
    assert "UTF-8" in await refused(b"\xff", "text", LIMITS)
    assert "5 characters" in await refused(b"123456", "text", ReadingLimits(1, 5, 1_000))


async def test_a_title_and_pages_are_told() -> None:
    with stored(b"<title>Hours\n of &amp; sea</title><p>Nine.</p>") as file:
        read = await FileReader(LIMITS).read(file, "html")
    assert (read.title, read.pages, read.is_paged) == ("Hours of & sea", ["Nine."], False)
    with stored(papers.pdf("One.", "Two.")) as file:
        read = await FileReader(LIMITS).read(file, "pdf")
    assert (read.title, read.pages, read.is_paged) == (None, ["One.", "Two."], True)
