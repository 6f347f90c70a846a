"""Names what OpenTelemetry's GenAI conventions have names for. They are still in development; see docs/doors.md."""

from collections.abc import Mapping

from recollect.memory.ports.observing import MemoryOperation

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
AGENT: Mapping[str, str] = {OPERATION: "invoke_agent", "gen_ai.agent.name": "recollect"}
"""The attributes of a turn."""
MEMORY_STEPS: Mapping[str, MemoryOperation] = {"facts": "upsert_memory"}
"""The operation of each step of an update that is one on the memory."""
CALL_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Bounds in seconds that the conventions advise."""
TOKEN_BUCKETS = (1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864)
"""Bounds in tokens that the conventions advise."""
