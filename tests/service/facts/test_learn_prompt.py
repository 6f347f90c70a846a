"""`recollect learn --dry-run`: the prompt of a turn's extraction, beside a service and without one."""

import json
from pathlib import Path

from tests.service.support.commands import recollect
from tests.service.support.running import service
from tests.service.support.shapes import refused

RULES = "Since {today} learn {shoes} from:\n{message}\nKnown: {known}"
SAID = "I live in Rome. [bold]{known}[/]"


def test_the_prompt_is_shown_and_nobody_is_asked(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text(RULES, encoding="utf-8")
    with service(tmp_path, EXTRACTION_PROMPT_FILE=str(tmp_path / "rules.txt")) as running:
        turn = running.turn(SAID, user="ada", wait_for_memory=True)
        shown = ("learn", "--dry-run", "--user", "ada", "--turn", turn["turn_id"])
        beside = recollect(running, *shown)
        assert beside.returncode == 0, beside.stderr
        system, _, data = beside.stdout.partition("[user]\n")
        quoted = json.dumps(SAID, ensure_ascii=False)
        assert system.startswith("[system]\nSince ")
        assert f"learn {{shoes}} from:\n{quoted}\nKnown: 1: " in system
        assert data.endswith(f"User's message: {quoted}\n")
        path = f"/api/admin/turns/{turn['turn_id']}/prompt"
        answer = running.get(path, user_id="ada")
        assert [message["role"] for message in answer["messages"]] == ["system", "user"]
        refused(running.http.get(path, params={"user_id": "eve"}), 404, "not_found")
        no_such = recollect(running, *shown[:-1], "other")
        assert (no_such.returncode, "no such turn" in no_such.stderr) == (1, True)
        half = recollect(running, *shown[:4])
        assert (half.returncode, "--turn" in half.stderr) == (2, True)
    alone = recollect(running, *shown)
    assert (alone.returncode, alone.stdout) == (0, beside.stdout)
