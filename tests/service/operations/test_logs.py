"""The log: events as text or JSON, requests by their route's template, no user's text, no secret."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from recollect.api.app import create_app
from recollect.api.middleware.access_log import UNMATCHED, Templates
from recollect.api.telemetry.log import EventFormatter, JsonFormatter
from recollect.api.telemetry.masking import MASK, Masking
from recollect.memory.values.errors import ConfigurationError
from recollect.settings import load_settings
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service
from tests.service.support.scripts import post

KEY = "rk_0123456789abcdef_Zk3vT0pQ9sYxW1uR8nM4bV7cX2zL5kJ6hG0fD3sA1qE"
RAISING = """
async def answer(state):
    raise ValueError("cannot answer " + state["message"])
"""


def record(message: str, *args: object, error: BaseException | None = None, **extra: Any) -> logging.LogRecord:
    """Return a record as `logger.error(message, *args, extra=extra)` makes it."""
    info = (type(error), error, error.__traceback__) if error is not None else None
    made = logging.LogRecord("api.somewhere", logging.ERROR, __file__, 1, message, args, info)
    vars(made).update(extra)
    return made


def raised(error: Exception, cause: Exception | None = None) -> Exception:
    """Return the error with a traceback."""
    error.__cause__ = cause
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def json_lines(running: Service) -> list[dict[str, Any]]:
    """Return every line of the log, which must be one JSON object each."""
    return [json.loads(line) for line in running.log.splitlines()]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"key {KEY} was shown", f"key {MASK} was shown"),
        ("Authorization: Bearer abcdefgh.ijkl-mnop", f"Authorization: Bearer {MASK}"),
        ("mongodb://root:hunter2@db.local:27017/x", f"mongodb://{MASK}@db.local:27017/x"),
        ("https://token@host/path?api_key=12345678&n=1", f"https://{MASK}@host/path?api_key={MASK}&n=1"),
        ('{"password": "hunter22", "user": "ada"}', f'{{"password": "{MASK}", "user": "ada"}}'),
        ("sk-proj-abcdefghijklmnopqrstuvwx failed", f"{MASK} failed"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl ended", f"jwt {MASK} ended"),
        ("the secret that was told is tola-tola", f"the secret that was told is {MASK}"),
        ("input_tokens=100 task-force-of-the-union risk-1", "input_tokens=100 task-force-of-the-union risk-1"),
        ("turn 311defc2-f622-4d71-bfa4-cb15510e3d64 at http://127.0.0.1:8000/", None),
    ],
)
def test_secrets_are_masked(text: str, masked: str | None):
    assert Masking(["tola-tola", "no"])(text) == (masked or text)


@pytest.mark.parametrize("formatter", [EventFormatter, JsonFormatter])
def test_they_are_masked_wherever_they_stand(formatter: type[EventFormatter]):
    error = raised(ConfigurationError(f"MONGODB_URL mongodb://u:{KEY}@db is wrong"), ValueError(KEY))
    logged = formatter(Masking(["hunter2"])).format(
        record("calling %s", f"https://u:{KEY}@host", error=error, action="called", given=["hunter2", KEY], n=1)
    )
    assert KEY not in logged
    assert "hunter2" not in logged
    assert "MONGODB_URL" in logged
    assert logged.count(MASK) >= 4


def test_a_json_line_is_one_object_with_the_extra_fields():
    line = JsonFormatter().format(record('said "%s"\n', "so", action="said", turns=2, level="mine", odd=Path("x")))
    said = json.loads(line)
    assert "\n" not in line
    assert list(said)[:4] == ["time", "level", "logger", "message"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", said.pop("time"))
    assert said == {
        "level": "ERROR",
        "logger": "api.somewhere",
        "message": 'said "so"\n',
        "action": "said",
        "turns": 2,
        "odd": "x",
    }


def test_foreign_errors_say_their_type_and_place_alone():
    error = raised(ConfigurationError("HOST is wrong; set another."), ValueError("what Ada said"))
    told = json.loads(JsonFormatter().format(record("broke", error=error)))["exception"]
    assert "what Ada said" not in told
    assert "recollect.memory.values.errors.ConfigurationError: HOST is wrong; set another." in told
    assert "builtins.ValueError\n" in told
    assert Path(__file__).name in told
    assert "what Ada said" in EventFormatter(with_texts=True).format(record("broke", error=error))


def test_each_error_of_a_group_is_told():
    group = raised(ExceptionGroup("unhandled", [raised(ValueError("what Ada said")), raised(OSError("disk full"))]))
    told = EventFormatter().format(record("broke", error=group))
    assert "what Ada said" not in told
    assert "disk full" in told
    assert "builtins.ValueError" in told


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/api/users/ada/facts", "/api/users/{user_id}/facts"),
        ("/api/turns/0b5e", "/api/turns/{turn_id}"),
        ("/api/agent", "/api/agent"),
        ("/metrics", "/metrics"),
        ("/mcp", "/mcp"),
        ("/api/ada", UNMATCHED),
        ("/", "/"),
    ],
)
def test_a_request_is_known_by_its_routes_template(path: str, template: str):
    app = create_app(load_settings())
    app.openapi()  # which adds every route
    templates = Templates([route for route in app.routes if getattr(route, "path", "") != "/"])
    assert templates.of(path) == template


def test_each_request_is_one_event_without_ids_and_queries(tmp_path: Path):
    with service(tmp_path, LOG_FORMAT="json") as running:
        running.turn("A sentence of mine.", user="carla", thread="holiday", turn_id="first")
        running.get("/api/turns/first", user_id="carla")
        running.http.get("/api/users/carla/nowhere")
        running.http.get("/api/users/carla/facts", headers={"Host": "evil.example"})
        running.http.get("/health/ready")
    requests = [line for line in json_lines(running) if line.get("action") == "request"]
    assert [(line["method"], line["route"], line["status"]) for line in requests] == [
        ("POST", "/api/agent", 200),
        ("GET", "/api/turns/{turn_id}", 200),
        ("GET", UNMATCHED, 404),
        ("GET", "/api/users/{user_id}/facts", 421),
    ]
    assert all(0 < line["ms"] < 10_000 and line["level"] == "INFO" for line in requests)
    assert not re.search("carla|holiday|sentence|evil", running.log)


def test_probes_are_logged_at_debug_alone(tmp_path: Path):
    with service(tmp_path, LOG_LEVEL="DEBUG") as running:
        running.http.get("/health/ready")
        running.http.get("/metrics")
    assert "route=/health/ready status=200" in running.log
    assert "route=/metrics status=200" in running.log


def test_a_client_that_leaves_is_logged_too(tmp_path: Path, fake: FakeOpenAI):
    with service(tmp_path, **model_settings(fake.url)) as running:
        fake.hang()
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{running.url}/api/agent",
                json={"user_id": "ada", "thread_id": "t1", "message": "Hello"},
                timeout=0.5,
            )
        fake.release()
        running.turn("Hello again", thread="t2")
    assert running.log.count("route=/api/agent") == 2


def test_no_users_text_is_in_the_log_whatever_fails(tmp_path: Path, fake: FakeOpenAI):
    (tmp_path / "raising.py").write_text(RAISING)
    settings = model_settings(fake.url, LOG_LEVEL="INFO", LOG_FORMAT="json", OPENAI_API_KEY="the-key-of-mine")
    said = "My secret place is Zanzibar."
    with service(tmp_path, **settings) as running:
        for trouble in (400, 401, 500, None):
            if trouble is None:
                fake.garbage(-1)
            else:
                fake.fail(trouble, times=-1)
            assert post(running, said, user="carla").status_code == 502
            fake.recover()
        running.turn(said, user="carla")
        running.http.post(
            "/api/agent", content='{"message": "Zanzibar", ', headers={"content-type": "application/json"}
        )
        running.http.post("/api/agent", json={"user_id": "carla", "Zanzibar": said})
        running.http.put("/api/users/carla/facts/by-key/place", json={"value": "Zanzibar"})
        running.http.post("/api/memory/search", json={"user_id": "carla", "query": "Zanzibar"})
        running.stop()
        running.settings["AGENT"] = "raising:answer"
        running.start()
        assert post(running, said, user="carla").status_code == 502
    lines = json_lines(running)
    assert any(line.get("action") == "agent_failed" and "ValueError" in line["exception"] for line in lines)
    assert "zanzibar" not in running.log.lower()
    assert "the-key-of-mine" not in running.log
