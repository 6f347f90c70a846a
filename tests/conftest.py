"""Holds for every test: no paid API can be reached, no developer's settings leak in, servers only where named.

A process that a test starts gets this cleaned environment; start it in a folder of its own (`cwd=tmp_path`), because
the service also reads a `.env` file in its working directory.
"""

import ipaddress
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KEPT = {"EMBEDDING_MODEL_PATH"}  # where files lie, not whom to ask
PROXIES = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"}
SERVER_FIXTURES = {"mongodb_url", "qdrant_url"}
MEMORY_DISK = Path("/dev/shm")
ROOM = 8_000_000_000
"""Bytes that must be free there: a test's stores take some 25 MB, and those of a module stay until the end."""


def pytest_configure() -> None:
    # Whoever runs the tests in the background may have SIGINT ignored, and the commands that they start would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    clear_environment()
    keep_bytecode()
    keep_files_in_memory()
    sys.addaudithook(refuse_public_addresses)


def clear_environment() -> None:
    """Takes every setting, key, proxy and tracing variable away: a test says itself what it wants."""
    example = ROOT / ".env.example"
    text = example.read_text(encoding="utf-8") if example.exists() else ""
    settings = set(re.findall(r"^(?:# ?)?([A-Z][A-Z0-9_]*)=", text, re.MULTILINE)) - KEPT
    for name in list(os.environ):
        upper = name.upper()
        if upper in settings | PROXIES or upper.endswith("_API_KEY") or upper.startswith(("LANGCHAIN_", "LANGSMITH_")):
            del os.environ[name]
    os.environ["LANGSMITH_TRACING"] = "false"


def keep_bytecode() -> None:
    """Let this process and those that tests start write bytecode, whatever the environment says.

    Each of some 300 started services would otherwise compile all libraries again, which doubles its start.
    """
    os.environ["PYTHONDONTWRITEBYTECODE"] = ""
    sys.dont_write_bytecode = False


def keep_files_in_memory() -> None:
    """Give tests their folders in memory, where there is room and nobody has chosen another place.

    A store waits for the disk at each commit, which is two thirds of the time of a test that opens one. A process that
    is killed leaves the same files in memory as on a disk.
    """
    if MEMORY_DISK.is_dir() and os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))


def refuse_public_addresses(event: str, arguments: tuple[object, ...]) -> None:
    """Raise, as an audit hook, where a socket would connect to a public address, in whatever library.

    Private addresses stay open, for the servers that TEST_MONGODB_URL and TEST_QDRANT_URL name.
    """
    if event != "socket.connect":
        return
    address = arguments[1]
    if not isinstance(address, tuple):
        return  # a Unix socket's path
    host = str(address[0])  # pyright: ignore[reportUnknownArgumentType]  # an audit event's arguments have no type
    try:
        public = ipaddress.ip_address(host.partition("%")[0]).is_global
    except ValueError:
        public = host != "localhost"
    if public:
        message = f"a test tried to reach {host}; tests reach this machine and the servers named for them only"
        raise RuntimeError(message)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what asks a server when it is told of one, so that CI can run just that."""
    for item in items:
        fixtures = set(item.fixturenames) if isinstance(item, pytest.Function) else set[str]()
        if fixtures & SERVER_FIXTURES or ROOT / "tests" / "contracts" in item.path.parents:
            item.add_marker("server")


def named_path(variable: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set")
    path = Path(value)
    assert path.exists(), f"{variable} names {path}, which does not exist"
    return path


def named_url(variable: str) -> str:
    url = os.environ.get(variable)
    if not url:
        pytest.skip(f"{variable} is not set")
    return url


@pytest.fixture(scope="session")
def mongodb_url() -> str:
    return named_url("TEST_MONGODB_URL")


@pytest.fixture(scope="session")
def qdrant_url() -> str:
    return named_url("TEST_QDRANT_URL")


@pytest.fixture(scope="session")
def embedding_model_path() -> Path:
    return named_path("EMBEDDING_MODEL_PATH")


@pytest.fixture(scope="session")
def locomo_path() -> Path:
    return named_path("LOCOMO_PATH")
