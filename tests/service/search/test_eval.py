"""`recollect eval` and `POST /api/admin/eval`: measures of a user's own memory."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service.support.commands import recollect
from tests.service.support.running import Service, service
from tests.service.support.shapes import refused

TALK = ("I met Beatrice in Lisbon last week.", "My sister plays the cello.", "We ate ramen with Kenji on Friday.")
Json = dict[str, Any]


@pytest.fixture(scope="module")
def talked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Yield a service with a short talk and many messages about nothing in particular."""
    with service(tmp_path_factory.mktemp("eval")) as running:
        for number, text in enumerate(TALK):
            running.turn(text, thread=f"t{number}", turn_id=f"turn{number}", wait_for_memory=True)
        lines = [
            {
                "user_id": "ada",
                "thread_id": f"old{number // 10}",
                "role": "user",
                "content": f"The bus was late, day {number}.",
            }
            | {
                "message_id": f"bus-{number}",
                "timestamp": f"2025-{1 + number // 28:02}-{1 + number % 28:02}T09:00:00Z",
            }
            for number in range(60)
        ]
        body = "\n".join(map(json.dumps, lines))
        answer = running.http.post("/api/import", content=body, headers={"Content-Type": "application/x-ndjson"})
        assert answer.json()["imported"] == len(lines), answer.text
        yield running


def message_of(running: Service, turn: int) -> str:
    found = running.get(f"/api/threads/t{turn}/messages", user_id="ada")["items"]
    return found[0]["id"]


def write(running: Service, *cases: Json | str) -> str:
    path = running.folder / "cases.jsonl"
    path.write_text("".join((case if isinstance(case, str) else json.dumps(case)) + "\n" for case in cases))
    return path.name


def case(running: Service, turn: int = 0, query: str = "Whom did I meet in Lisbon?", **more: Any) -> Json:
    return {"user_id": "ada", "query": query, "expect": [message_of(running, turn)], **more}


def test_what_is_found_counts_by_message_and_by_its_importers_id(talked: Service) -> None:
    by_import = {"user_id": "ada", "query": "late bus day 17", "expect": ["bus-17"]}
    ended = recollect(talked, "eval", write(talked, case(talked), "", by_import), "--json")
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert {name: said[name] for name in ("cases", "R@5", "R@10", "R@25", "misses")} == {
        "cases": 2,
        "R@5": 100.0,
        "R@10": 100.0,
        "R@25": 100.0,
        "misses": [],
    }
    assert said["nDCG"] > 60


def test_unknown_ids_are_missed_and_named_and_a_low_figure_is_exit_code_1(talked: Service) -> None:
    wrong = case(talked, expect=[message_of(talked, 0), "nobody's"])
    foreign = {"user_id": "eve", "query": "Lisbon", "expect": [message_of(talked, 0)]}
    name = write(talked, wrong, "", foreign)
    ended = recollect(talked, "eval", name, "--json", "--fail-under", "25.1")
    assert ended.returncode == 1, ended.stderr
    said = json.loads(ended.stdout)
    assert said["R@10"] == 25
    assert [(one["line"], one["id"]) for one in said["unknown"]] == [(1, "nobody's"), (3, message_of(talked, 0))]
    assert recollect(talked, "eval", name, "--fail-under", "25").returncode == 0
    shown = recollect(talked, "eval", name).stdout
    assert "nobody's" in shown
    assert "unknown" in shown
    many = case(talked, query="late bus", expect=[*(f"bus-{number}" for number in range(60)), "ghost"])
    shown = recollect(talked, "eval", write(talked, *[many] * 2, foreign)).stdout
    assert "ghost" in shown
    assert "more; --json shows them all" in shown


def test_a_miss_says_its_rank_or_its_step(talked: Service) -> None:
    ranked = {"user_id": "ada", "query": "late bus", "expect": [f"bus-{number}" for number in range(60)]}
    dropped = {"user_id": "ada", "query": "late bus", "expect": [message_of(talked, 1)]}
    answer = talked.http.post("/api/admin/eval", json={"cases": [ranked, dropped]})
    misses = answer.json()["misses"]
    assert sorted(miss["rank"] for miss in misses if miss["case"] == 1) == list(range(11, 61))
    (other,) = [miss for miss in misses if miss["case"] == 2]
    assert other["rank"] is None
    assert other["stage"] in {"threshold", "retrieval"}
    assert other["reason"]


def test_a_forgotten_fact_is_unknown_and_one_that_ended_is_gone(talked: Service) -> None:
    boat = talked.http.post("/api/memory", json={"user_id": "hal", "content": "My boat is called Moby."}).json()["id"]
    taught = talked.turn("I work as a pilot.", user="hal", turn_id="job", wait_for_memory=True)
    job = taught["memory"]["update"]["changes"][0]["fact_id"]
    assert talked.http.delete(f"/api/users/hal/facts/{boat}").status_code == 204
    assert talked.http.post("/api/turns/job/undo", params={"user_id": "hal"}).status_code == 200
    asked = {"user_id": "hal", "query": "What is my boat, what my job?", "expect": [boat, job]}
    report = talked.http.post("/api/admin/eval", json={"cases": [asked]}).json()
    assert [(miss["id"], miss["stage"]) for miss in report["misses"]] == [(boat, "unknown"), (job, "gone")]
    assert [one["id"] for one in report["unknown"]] == [boat]


def test_a_text_that_was_said_again_is_found_by_each_of_its_ids(talked: Service) -> None:
    lines = [
        {"user_id": "bob", "thread_id": "t", "role": "user", "content": "My locker is number 41."}
        | {"message_id": f"locker-{day}", "timestamp": f"2025-01-0{day}T09:00:00Z"}
        for day in (1, 2)
    ]
    talked.http.post("/api/import", content="\n".join(map(json.dumps, lines)))
    asked = {"user_id": "bob", "query": "Which number has my locker?", "expect": ["locker-1", "locker-2"]}
    assert talked.http.post("/api/admin/eval", json={"cases": [asked]}).json()["R@5"] == 100


@pytest.mark.parametrize(
    "line",
    [
        '{"user_id": "ada", "query": "Lisbon"}',
        '{"user_id": "ada", "query": "Lisbon", "expect": []}',
        '{"user_id": "ada", "query": "Lisbon", "expect": ["x"], "limit": 3}',
        '{"user_id": "ada", "query": "Lisbon", "expect": ["x"], "now": "soon"}',
        '{"user_id": "ada", "query": "Lisbon", "expect": ["x"], "filter": {"priority": {"about": 2}}}',
        json.dumps({"user_id": "ada", "query": "x" * 200_001, "expect": ["x"]}),
        "[" * 50_000,
        "Lisbon",
    ],
)
def test_a_bad_line_ends_it_with_its_number(talked: Service, line: str) -> None:
    ended = recollect(talked, "eval", write(talked, case(talked), "", line))
    assert ended.returncode == 2
    assert "Line 3 " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_settings_are_compared_side_by_side_and_others_are_refused_by_name(talked: Service) -> None:
    name = write(talked, case(talked), case(talked, 1, "Who plays the cello?"))
    (talked.folder / "b.env").write_text("MEMORY_SCORE_THRESHOLD=0.99\n")
    ended = recollect(talked, "eval", name, "--compare", "b.env", "--json")
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert (said["R@10"], said["compared"]["R@10"]) == (100, 0)
    assert said["difference"]["R@10"] == {"mean": -100, "low": -100, "high": -100}
    assert said["intervals"]["R@10"] == {"low": 100, "high": 100}
    assert "difference" in recollect(talked, "eval", name, "--compare", "b.env").stdout
    (talked.folder / "b.env").write_text("MEMORY_SCORE_THRESHOLD=0.99\nCHAT_MODEL=gpt\nMEMORY_WAIT_SECONDS=3\n")
    ended = recollect(talked, "eval", name, "--compare", "b.env")
    assert ended.returncode == 2
    assert "CHAT_MODEL, MEMORY_WAIT_SECONDS" in ended.stderr
    (talked.folder / "b.env").write_text("MEMORY_SCORE_THRESHOLD=much\n")
    assert "MEMORY_SCORE_THRESHOLD" in recollect(talked, "eval", name, "--compare", "b.env").stderr
    body = {"cases": [case(talked)], "compare": {"chat_model": "gpt"}}
    error = refused(talked.http.post("/api/admin/eval", json=body), 422, "invalid_request")
    assert error["details"][0]["field"] == "compare.chat_model"


def test_a_case_may_have_a_filter(talked: Service) -> None:
    found = [case(talked, filter={"role": role}) for role in ("user", "assistant")]
    answer = talked.http.post("/api/admin/eval", json={"cases": found}).json()
    assert answer["R@25"] == 50
    assert [(miss["case"], miss["stage"]) for miss in answer["misses"]] == [(2, "filter")]
    imported = {"user_id": "ada", "query": "bus", "expect": ["bus-1"], "filter": {"thread_id": "old1"}}
    (miss,) = talked.http.post("/api/admin/eval", json={"cases": [imported]}).json()["misses"]
    assert (miss["id"], miss["stage"]) == ("bus-1", "filter")
    body = {"cases": [case(talked, filter={"role": {"about": 2}})]}
    error = refused(talked.http.post("/api/admin/eval", json=body), 422, "invalid_request")
    assert error["details"][0]["field"].startswith("cases.0.filter")


def test_every_setting_of_recall_can_be_compared(talked: Service) -> None:
    compare = {"memory_recency_weight": 0.9, "memory_mmr_lambda": 0.5, "memory_time": "ignore"}
    compare |= {"memory_coverage": "off", "memory_scope": "user", "memory_timezone": "Europe/Berlin"}
    answer = talked.http.post("/api/admin/eval", json={"cases": [case(talked)], "compare": compare})
    assert answer.status_code == 200, answer.text
    assert set(answer.json()["difference"]) == {"R@5", "R@10", "R@25", "nDCG"}


def test_proposed_cases_come_from_quotes_times_and_names_and_run(talked: Service) -> None:
    ended = recollect(talked, "eval", "--propose", "30", "--user", "ada")
    assert ended.returncode == 0, ended.stderr
    cases = [json.loads(line) for line in ended.stdout.splitlines()]
    assert 3 <= len(cases) <= 30
    asked = {one["query"]: one["expect"] for one in cases}
    assert asked["What did I say about Beatrice?"] == [message_of(talked, 0)]
    assert len(asked["What did I say on March 4, 2025?"]) == 1
    ended = recollect(talked, "eval", write(talked, *ended.stdout.splitlines()), "--fail-under", "80")
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_capitalised_word_that_goes_on_in_digits_is_no_name(talked: Service) -> None:
    line = {
        "user_id": "fay",
        "thread_id": "t",
        "role": "user",
        "content": "We met Olga near Plaza7, for new Glass_ware.",
    }
    talked.http.post("/api/import", content=json.dumps(line | {"timestamp": "2025-01-01T09:00:00Z"}))
    found = talked.get("/api/admin/eval/cases", user_id="fay")["items"]
    assert [one["query"] for one in found if "about" in one["query"]] == ["What did I say about Olga?"]


def test_proposed_days_are_those_of_the_time_zone_in_which_cases_are_searched(tmp_path: Path) -> None:
    with service(tmp_path, MEMORY_TIMEZONE="America/Los_Angeles") as running:
        line = {"user_id": "ada", "thread_id": "t", "role": "user", "content": "the rain never stopped"}
        running.http.post("/api/import", content=json.dumps(line | {"timestamp": "2025-03-02T03:00:00Z"}))
        (found,) = running.get("/api/admin/eval/cases", user_id="ada")["items"]
        assert found["query"] == "What did I say on March 1, 2025?"
        assert running.http.post("/api/admin/eval", json={"cases": [found]}).json()["R@5"] == 100


def test_without_a_service_the_command_opens_the_stores_itself(talked: Service) -> None:
    name = write(talked, case(talked))
    (talked.folder / "b.env").write_text("MEMORY_SCORE_THRESHOLD=0.99\n")
    talked.stop()
    try:
        ended = recollect(talked, "eval", name, "--compare", "b.env", "--json")
        assert ended.returncode == 0, ended.stderr
        assert (json.loads(ended.stdout)["R@10"], json.loads(ended.stdout)["compared"]["R@10"]) == (100, 0)
        assert "Beatrice" in recollect(talked, "eval", "--propose", "30", "--user", "ada").stdout
    finally:
        talked.start()


def test_what_is_asked_for_has_to_be_said_whole(talked: Service) -> None:
    wrong = [[], ["cases.jsonl", "--propose", "3"], ["--propose", "3"], ["missing.jsonl"]]
    wrong += [["--propose", "3", "--user", "ada", *more] for more in (("--fail-under", "9"), ("--compare", "b.env"))]
    for arguments in wrong:
        assert recollect(talked, "eval", *arguments).returncode == 2
    (talked.folder / "empty.jsonl").write_text("\n")
    assert recollect(talked, "eval", "empty.jsonl").returncode == 2


def test_with_the_index_down_nothing_is_measured(tmp_path: Path) -> None:
    with service(tmp_path, QDRANT_URL="http://127.0.0.1:9") as running:
        case = {"user_id": "ada", "query": "tea", "expect": ["m1"]}
        refused(running.http.post("/api/admin/eval", json={"cases": [case]}), 503, "store_unavailable")
