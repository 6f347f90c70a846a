"""Old conversations that are imported beside newer ones override nothing, and are learned with their own dates."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from pymongo import MongoClient

from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.lessons import add, teach
from tests.service.support.running import Service, service, until
from tests.service.support.scripts import facts


@pytest.fixture(params=["sqlite", pytest.param("mongodb", marks=pytest.mark.server)])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Service]:
    """Yield a service without a configured model, on either document store."""
    if request.param == "sqlite":
        with service(tmp_path) as made:
            yield made
        return
    url, name = request.getfixturevalue("mongodb_url"), f"test_{uuid4().hex[:12]}"
    with MongoClient[dict[str, object]](url) as client:
        try:
            with service(tmp_path, MONGODB_URL=url, MONGODB_DATABASE=name) as made:
                yield made
        finally:
            client.drop_database(name)


def line(content: str, day: str, *, user: str = "ada", thread: str) -> bytes:
    said = {"user_id": user, "thread_id": thread, "role": "user", "content": content, "timestamp": f"{day}T12:00:00Z"}
    return json.dumps(said).encode() + b"\n"


def learn_from(running: Service, *lines: bytes) -> None:
    answer = running.http.post("/api/import", content=b"".join(lines), params={"learn": "true"})
    assert answer.json()["imported"] == len(lines), answer.text
    until(lambda: running.get("/api/admin/doctor")["totals"]["pending"] == 0)


def known(running: Service, day: str) -> dict[str, str]:
    """Return what held on that day."""
    found: dict[str, str] = running.get("/api/users/ada/facts", as_of=f"{day}T00:00:00Z")["facts"]
    return found


def test_an_old_line_overrides_nothing_that_is_newer(running: Service) -> None:
    running.turn("I live in Paris.", user="ada", wait_for_memory=True)
    learn_from(
        running,
        line("I live in Oslo.", "2021-05-15", thread="newer"),
        line("I moved to Rome last month.", "2020-05-15", thread="older"),
    )
    assert facts(running, user="ada") == {"location": "Paris"}
    held = {
        day: known(running, day).get("location") for day in ("2020-03-31", "2020-04-01", "2021-05-16", "2025-01-01")
    }
    assert held == {"2020-03-31": None, "2020-04-01": "Rome", "2021-05-16": "Oslo", "2025-01-01": "Oslo"}


def test_each_message_of_the_prompt_carries_when_it_was_said(served: Service, model: FakeOpenAI, user: str) -> None:
    teach(model, {"I moved to Rome last month.": [add("Rome", key="city")]})
    learn_from(served, line("I moved to Rome last month.", "2020-05-15", user=user, thread="old"))
    (asked,) = [one for one in model.extractions if "Rome last month" in str(one["messages"][-1])]
    data = str(asked["messages"][-1]["content"])
    assert "was said on: Friday, 2020-05-15\n" in data
    assert f"Today: {datetime.now(UTC):%A, %Y-%m-%d}" in data
