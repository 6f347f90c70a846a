"""The learning benchmark reaches its targets: an imperfect model teaches every truth once, and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.mark.slow
def test_every_target_is_reached(tmp_path: Path) -> None:
    file = tmp_path / "learning.json"
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.learning", "--json", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip().splitlines()[-1] == "Every target was reached."
    figures = json.loads(file.read_text(encoding="utf-8"))["figures"]
    for learned in figures.values():
        wrong = (learned["junk"], learned["missing"], learned["wrong_deletes"], learned["planted"])
        assert wrong == ([], [], [], [])
    assert figures["learn every 4"]["calls"]["extraction"] < figures["learn every 1"]["calls"]["extraction"] / 3
