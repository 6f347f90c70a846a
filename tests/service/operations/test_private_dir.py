"""DATA_DIR=:memory: under a service, and what the memory says of its work at DEBUG."""

import re
from pathlib import Path

from tests.service.support.commands import recollect
from tests.service.support.running import service, until


def test_a_private_folder_goes_with_its_service_or_with_the_next_one(tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    settings = {"DATA_DIR": ":memory:", "TMPDIR": str(folder), "LOG_LEVEL": "DEBUG"}
    with service(tmp_path, **settings) as running:
        (first,) = folder.glob("recollect-memory-*")
        turn = running.turn("My secret place is Zanzibar. I live in Oslo.", turn_id="one", wait_for_memory=True)
        assert turn["memory"]["update"]["status"] == "done"
        asked = running.turn("Where do I live in Zanzibar?", thread="t2", memory={"scope": "user"})
        assert "Oslo" in asked["reply"]
        for action in (
            "turn_accepted",
            "turn_committed",
            "window_read",
            "facts_read",
            "searched",
            "learned",
            "points_made",
        ):
            assert f"action={action}" in running.log, action
        until(lambda: "step=index" in running.log, 10)
        said = [line for line in running.log.splitlines() if "turn_id=one" in line]
        assert any("action=learned" in line and re.search("changes=[1-9]", line) for line in said)
        assert not re.search("Zanzibar|Oslo|secret", running.log)
        ended = recollect(running, "facts", "--user", "ada")
        assert ended.returncode == 2
        assert "--url" in ended.stderr
        running.kill()
        assert first.exists()
        running.start()
        assert not first.exists()
        (second,) = folder.glob("recollect-memory-*")
        assert running.get("/api/users/ada/facts")["facts"] == {}
        assert running.stop() == 0
        assert not second.exists()
        assert not (tmp_path / ":memory:").exists()
