"""`recollect doctor` and `recollect learn --failed`, beside a running service and without one."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.memory.ports.vector_index import Entry, Point, VectorIndex, index_fingerprint
from recollect.memory.providers.lexical import LexicalEmbedder
from recollect.memory.stores.edge.index import open_edge_index
from recollect.memory.values.scope import GLOBAL_USER
from recollect.memory.values.turn import derived_id
from tests.fakes.openai_answers import extraction_tool
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.commands import recollect
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.shapes import ISO_TIME, refused

OWNER = """
import sys
from pathlib import Path
from recollect.memory.stores.data_dir import own_data_dir
with own_data_dir(Path(sys.argv[1]), url=None):
    print("owned", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def talked(tmp_path: Path) -> Iterator[Service]:
    """Yield a running offline service that has learned something of two users."""
    with service(tmp_path) as running:
        running.turn("Hi, I'm Ada.", wait_for_memory=True)
        running.turn("I live in Paris.", wait_for_memory=True)
        running.turn("Hi, I'm Bob.", user="bob", wait_for_memory=True)
        settle(running)
        yield running


def settle(running: Service) -> dict[str, Any]:
    """Return the doctor's report once nothing is pending."""
    until(lambda: not running.get("/api/admin/doctor")["totals"]["pending"])
    return running.get("/api/admin/doctor")


def examined(running: Service, code: int) -> dict[str, Any]:
    """Return what `recollect doctor --json` says, which must end with this exit code."""
    ended = recollect(running, "doctor", "--json")
    assert ended.returncode == code, ended.stdout + ended.stderr
    shown: dict[str, Any] = json.loads(ended.stdout)
    assert shown["healthy"] is (code == 0)
    return shown


def harmed(running: Service, harm: str) -> None:
    """Take a point of the stopped service's index away ("missing"), or add one ("orphaned", "wrong_fingerprint")."""

    async def work() -> None:
        lexical = LexicalEmbedder()
        place = running.data_dir / "index"
        dimension = await lexical.dimension()
        async with open_edge_index(place, base="recollect", model=lexical.model, dimension=dimension) as index:
            (entry, *_) = await index.entries([item for item in await index.ids() if await is_message(index, item)])
            if harm == "missing":
                await index.remove(user_id=entry.user_id, ids=[entry.id])
                return
            (dense,) = await lexical.embed_documents(["Something else."])
            model = "another" if harm == "wrong_fingerprint" else lexical.model
            if harm == "orphaned":
                entry = Entry(derived_id("eve", "t", "user"), "eve", "t1", "t", "episode", "Hi.", entry.created_at)
            made = index_fingerprint(entry, model=model, dimension=dimension)
            await index.upsert([Point(entry, dense, fingerprint=made)])

    asyncio.run(work())


async def is_message(index: VectorIndex, point: str) -> bool:
    return (await index.entries([point]))[0].kind == "episode"


def test_a_healthy_service_is_found_healthy(talked: Service) -> None:
    report = examined(talked, 0)
    assert report == talked.get("/api/admin/doctor")
    found = {user["user_id"]: user for user in report["users"]}
    assert found["ada"]["messages"] == 4
    assert found["ada"]["facts"] >= 1
    assert set(found) >= {"ada", "bob"}
    assert report["totals"]["points"] == sum(user["points"] for user in report["users"])
    assert report["advice"] == []
    ended = recollect(talked, "doctor")
    assert ended.returncode == 0
    assert "healthy" in ended.stdout


@pytest.mark.parametrize("harm", ["missing", "orphaned", "wrong_fingerprint"])
def test_each_difference_is_found_without_a_service_and_with_one(talked: Service, harm: str) -> None:
    talked.stop()
    assert examined(talked, 0)["totals"]["pending"] == 0
    harmed(talked, harm)
    report = examined(talked, 1)
    found = {name: report["totals"][name] for name in ("missing", "orphaned", "wrong_fingerprint", "failed")}
    assert found == {**dict.fromkeys(found, 0), harm: 1}
    ended = recollect(talked, "doctor")
    assert ended.returncode == 1
    assert "recollect reindex" in ended.stdout
    talked.start()
    until(lambda: talked.get("/api/admin/doctor")["healthy"])  # the start heals what counts and the first batch tell
    examined(talked, 0)


def named(name: str) -> dict[str, str]:
    statement, evidence = f"The user's name is {name}.", f"My name is {name}"
    return {"decision": "add", "key": "name", "value": name, "statement": statement, "evidence": evidence}


def test_failed_updates_are_found_and_learned_again(fake: FakeOpenAI, tmp_path: Path) -> None:
    fake.on_chat = lambda body: 400 if extraction_tool(body) or body.get("response_format") else None
    with service(tmp_path, **model_settings(fake.url)) as running:
        turn = running.turn("My name is Ada.")
        other = running.turn("My name is Bob.", user="bob")
        for turn_id, user in ((turn["turn_id"], "ada"), (other["turn_id"], "bob")):
            assert running.settled(turn_id, user=user)["memory"]["update"]["status"] == "failed"
        report = examined(running, 1)
        assert report["totals"]["failed"] == 2
        assert any("recollect learn --failed" in sentence for sentence in report["advice"])
        (delay,) = report["delays"]
        assert (delay["step"], delay["status"], delay["updates"]) == ("facts", "failed", 2)

        fake.on_chat = None
        fake.decide([named("Ada")], [named("Bob")])
        ended = recollect(running, "learn", "--failed")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "Tried 2 failed updates again: 2 done" in ended.stdout
        assert settle(running)["healthy"]
        assert examined(running, 0)["totals"]["facts"] == 2
        assert "Tried 0 failed updates" in recollect(running, "learn", "--failed").stdout


@pytest.mark.slow
def test_failed_updates_are_learned_again_without_a_service(fake: FakeOpenAI, tmp_path: Path) -> None:
    fake.on_chat = lambda body: 400 if extraction_tool(body) or body.get("response_format") else None
    with service(tmp_path, **model_settings(fake.url)) as running:
        turn = running.turn("My name is Ada.")
        running.settled(turn["turn_id"])
        running.stop()
        again = recollect(running, "learn", "--failed")
        assert again.returncode == 1, "five more attempts, which fail"
        assert "1 failed again" in again.stdout
        fake.on_chat = None
        ended = recollect(running, "learn", "--failed")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert "1 done" in ended.stdout
        running.start()
        examined(running, 0)
        assert running.get(f"/api/turns/{turn['turn_id']}", user_id="ada")["memory"]["update"]["status"] == "done"


def test_what_is_pending_is_not_wrong(fake: FakeOpenAI, tmp_path: Path) -> None:
    fake.on_chat = lambda body: 503 if extraction_tool(body) or body.get("response_format") else None
    with service(tmp_path, **model_settings(fake.url)) as running:
        running.turn("My name is Ada.")
        until(lambda: bool(running.get("/api/admin/doctor")["delays"]))
        report = examined(running, 0)
        assert report["totals"]["pending"] == 1
        assert report["totals"]["oldest_pending_seconds"] >= 0
        (delay,) = report["delays"]
        why = "The model's provider is out of order or too busy (503)."
        assert ISO_TIME.fullmatch(delay.pop("next_try_at"))
        assert delay == {"step": "facts", "status": "pending", "reason": why, "updates": 1}
        shown = recollect(running, "doctor").stdout
        assert f"The step facts of 1 update waits for another try: {why}" in shown
        running.kill()
        report = examined(running, 0)
        assert (report["totals"]["pending"], report["delays"][0]["reason"]) == (1, why)


def test_a_process_that_serves_nobody_is_named(tmp_path: Path) -> None:
    stopped = Service(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(stopped.data_dir)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        assert child.stdout.readline() == "owned\n"
        for command in (["doctor"], ["reindex"], ["learn", "--failed"]):
            ended = recollect(stopped, *command)
            assert ended.returncode == 2
            assert f"process {child.pid}" in ended.stderr
            assert "Traceback" not in ended.stderr
        child.communicate("\n")
    stopped.http.close()


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    stopped = Service(tmp_path)
    ended = recollect(stopped, "doctor")
    assert ended.returncode == 2
    assert "does not exist" in ended.stderr
    assert not stopped.data_dir.exists()
    stopped.http.close()


def test_learn_wants_to_be_told_of_failed_ones(tmp_path: Path) -> None:
    stopped = Service(tmp_path)
    ended = recollect(stopped, "learn")
    assert ended.returncode == 2
    assert "--failed" in ended.stderr
    stopped.http.close()


def test_the_routes_refuse_what_they_do_not_know(offline: Service) -> None:
    for path, body in (
        ("/api/admin/learn", {"failed": False}),
        ("/api/admin/learn", {}),
        ("/api/admin/reindex", {"user_id": "a b"}),
        ("/api/admin/reindex", {"user": "ada"}),
    ):
        refused(offline.http.post(path, json=body), 422, "invalid_request")
    assert offline.http.post("/api/admin/reindex", json={"user_id": GLOBAL_USER}).status_code == 200


def test_commands_say_nothing_of_a_traceback_where_the_owner_hangs(tmp_path: Path) -> None:
    with service(tmp_path) as running:
        assert running.process is not None
        lock = json.loads((running.data_dir / "lock").read_text())
        lock["url"] = "http://127.0.0.1:1"
        (running.data_dir / "lock").write_text(json.dumps(lock))
        ended = recollect(running, "doctor")
        assert ended.returncode == 1
        assert str(os.getpid()) not in ended.stderr
        assert f"process {running.process.pid}" in ended.stderr
        assert "Traceback" not in ended.stderr
