import asyncio
from pathlib import Path
from uuid import uuid4

from pymongo import MongoClient

from tests.contracts.store.suite.cut_off import cut_off
from tests.fakes.openai_answers import Answer, Body, extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings


async def test_a_document_store_lost_after_the_models_call_leaves_a_repeatable_turn(
    mongodb_url: str, tmp_path: Path
) -> None:
    """503 with the turn_id; the message is there, no reply; the repeat finishes the same turn."""
    database = f"lost_{uuid4().hex[:12]}"
    loop = asyncio.get_running_loop()
    body = {"user_id": "ada", "thread_id": "t1", "turn_id": "lost", "message": "I live in Oslo."}
    async with cut_off(mongodb_url) as proxy:
        with FakeOpenAI() as model:

            def answer(request: Body) -> Answer | None:
                """Answer the first call when the store has just gone."""
                if extraction_tool(request) is None and len(model.chats) == 1:
                    loop.call_soon_threadsafe(proxy.cut)
                return None

            model.on_chat = answer
            settings = model_settings(model.url, MONGODB_DATABASE=database)
            running = Service(tmp_path, MONGODB_URL=f"mongodb://127.0.0.1:{proxy.port}", **settings)
            await asyncio.to_thread(running.start)
            try:
                lost = await asyncio.to_thread(running.http.post, "/api/agent", json=body)
                assert lost.status_code == 503, lost.text
                assert (lost.json()["error"]["code"], lost.json()["error"]["turn_id"]) == ("store_unavailable", "lost")
                proxy.restore()
                stored = await asyncio.to_thread(running.get, "/api/turns/lost", user_id="ada")
                assert (stored["state"], stored["reply"]) == ("unfinished", None)
                again = await asyncio.to_thread(running.http.post, "/api/agent", json=body)
                assert again.status_code == 200, again.text
                listed = await asyncio.to_thread(running.get, "/api/threads/t1/messages", user_id="ada")
                assert [item["role"] for item in listed["items"]] == ["user", "assistant"]
            finally:
                await asyncio.to_thread(running.__exit__, None, None, None)
    with MongoClient[dict[str, object]](mongodb_url) as client:
        client.drop_database(database)
