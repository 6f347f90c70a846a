"""The benchmark of several processes runs on what is there, kills one, and finds nothing lost."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_one_embedded_process_is_measured_and_killed(tmp_path: Path) -> None:
    written = measured(tmp_path / "scale.json")
    assert "one process is measured" in written["figures"]["backends"]
    assert written["figures"]["1 with kills"]["kills"] >= 1
    assert written["figures"]["1 process"]["latencies"]
    assert what_is_wrong(written) == ["0, 0, 0, 0"] * 2


def test_processes_share_the_server_that_is_named(tmp_path: Path, mongodb_url: str) -> None:
    written = measured(tmp_path / "scale.json", MONGODB_URL=mongodb_url)
    assert what_is_wrong(written) == ["0, 0, 0, 0"] * 3


def measured(file: Path, **servers: str) -> dict[str, Any]:
    """Run the benchmark for a short time on `servers` alone, and return what it has written."""
    unset = {"MONGODB_URL", "QDRANT_URL"}
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "--quick", "--json", str(file)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in unset} | servers,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(file.read_text(encoding="utf-8"))


def what_is_wrong(written: dict[str, Any]) -> list[str]:
    """Return of each load what was lost, there twice, out of order and not learned from."""
    return [row["figure"] for row in written["rows"] if "lost" in row["what"]]
