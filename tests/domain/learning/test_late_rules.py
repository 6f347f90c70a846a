"""The offline rules beside a model: nobody imports them before they are asked, and then they read as ever."""

import subprocess
import sys
from datetime import UTC, datetime

from recollect.memory.opening.late_rules import LateRules
from recollect.memory.ports.extractor import ExtractionRequest, Said
from recollect.memory.providers.offline import OfflineExtractor

PROGRAM = """
import asyncio, sys
from recollect.memory.opening.late_rules import LateRules
RULES = "recollect.memory.providers.offline"
late = LateRules()
assert RULES not in sys.modules
assert asyncio.run(late.may_ask("offline"))
assert RULES in sys.modules
"""


async def test_late_rules_propose_what_the_offline_extractor_does():
    request = ExtractionRequest(
        turns=[Said("My name is Ada and I live in Paris.", "Noted.")], known=[], now=datetime.now(UTC)
    )
    extraction = await LateRules().extract(request)
    assert {proposal.key for proposal in extraction.proposals} >= {"name", "location"}
    assert extraction == await OfflineExtractor().extract(request)


def test_a_start_with_a_model_does_without_them():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
