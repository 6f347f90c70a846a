"""The benchmark of several processes runs on what is there, kills one, and finds nothing lost."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_one_embedded_process_is_measured_and_killed(tmp_path: Path) -> None:
    file = tmp_path / "scale.json"
    unset = {"MONGODB_URL", "QDRANT_URL"}
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "--quick", "--json", str(file)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in unset},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    written = json.loads(file.read_text(encoding="utf-8"))
    assert "one process is measured" in written["figures"]["backends"]
    assert written["figures"]["1 with kills"]["kills"] >= 1
    assert written["figures"]["1 process"]["latencies"]
    found = {row["what"]: row["figure"] for row in written["rows"] if "lost" in row["what"]}
    assert found == dict.fromkeys(found, "0, 0, 0, 0")
    assert len(found) == 2


def test_processes_share_the_server_that_is_named(tmp_path: Path, mongodb_url: str) -> None:
    file = tmp_path / "scale.json"
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "--quick", "--json", str(file)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "QDRANT_URL"} | {"MONGODB_URL": mongodb_url},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    written = json.loads(file.read_text(encoding="utf-8"))
    found = {row["what"]: row["figure"] for row in written["rows"] if "lost" in row["what"]}
    assert len(found) == 3
    assert found == dict.fromkeys(found, "0, 0, 0, 0")
