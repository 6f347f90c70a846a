"""Checks that a start leaves libraries unimported that take a second of CPU and forty megabytes."""

import json
import subprocess
import sys
from pathlib import Path

from tests.fakes.openai_server import FakeOpenAI

ASK = """
import asyncio, json, sys
from pathlib import Path
from recollect.memory.opening.opening import open_memory
from recollect.memory.ports.chat_model import ChatRequest
from recollect.memory.values.mem_config import MemoryConfig

async def main(url, folder):
    config = MemoryConfig(data_dir=Path(folder), base_url=url, chat_model="fake-chat", embedding_model="fake-embed")
    async with open_memory(config) as memory:
        at_start = sorted(sys.modules)
        request = ChatRequest([{"role": "user", "content": "Hello"}])
        reply = await memory.chat.complete(request)
        pieces = [item async for item in memory.chat.stream(request)]
    print(json.dumps([at_start, sorted(sys.modules), reply.text, len(pieces)]))

asyncio.run(main(*sys.argv[1:]))
"""
NEVER = {
    "langchain_core",
    "langchain_openai",
    "langgraph",
    "langsmith",
    "openai",
    "pymongo",
    "qdrant_client",
    "tiktoken",
}


def test_a_remote_model_is_asked_without_its_sdk(tmp_path: Path) -> None:
    with FakeOpenAI() as fake:
        done = subprocess.run(
            [sys.executable, "-c", ASK, fake.url, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    at_start, at_last, text, pieces = json.loads(done.stdout)
    assert (text, pieces) == ("All right.", 3)
    assert not {*NEVER, "httpx", "requests"} & set(at_start)
    assert not NEVER & set(at_last)
