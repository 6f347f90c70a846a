"""`GET /metrics`: what is counted, from a real service."""

import re
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from recollect.api.telemetry.metrics import Metrics
from recollect.memory.ports.chat_model import Usage
from tests.fakes.openai_server import FakeOpenAI
from tests.service.support.running import Service, model_settings, service, until
from tests.service.support.scripts import post

NODES = ("load_window", "search_memories", "load_facts", "agent", "save_turn", "update_memory")


class Figures:
    """One scrape, by the samples' names and labels."""

    def __init__(self, running: Service) -> None:
        answer = running.http.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain; version=1.0.0")
        self.types = {family.name: family.type for family in text_string_to_metric_families(answer.text)}
        self.values = {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(answer.text)
            for sample in family.samples
        }

    def of(self, name: str, *labels: str) -> float:
        return self.values.get((f"recollect_{name}", *labels), 0.0)

    def of_calls(self, name: str, *labels: str) -> float:
        """Return a figure that is named as OpenTelemetry's GenAI conventions say; labels in alphabetical order."""
        return self.values.get((f"gen_ai_client_{name}", *labels), 0.0)


def test_turns_their_stages_and_their_models_are_counted(tmp_path: Path, fake: FakeOpenAI):
    with service(tmp_path, **model_settings(fake.url, EMBEDDING_MODEL="fake-embed")) as running:
        before = Figures(running)
        assert before.of("turns_total") == 0
        assert before.of("pending_updates") == before.of("pending_update_age_seconds") == 0
        running.settled(running.turn("Hello, my city is Rome.")["turn_id"])
        running.settled(running.turn("And my dog is Rex.")["turn_id"])
        after = Figures(running)
    assert after.of("turns_total") == 2
    assert [after.of("stage_seconds_count", node) for node in NODES] == [2] * len(NODES)
    assert [after.of("stage_seconds_count", step) for step in ("facts", "index")] == [2, 2]
    assert 0 < after.of("stage_seconds_sum", "agent") < 5
    assert after.of("model_calls_total", "fake-chat") == len(fake.chats) + len(fake.extractions)
    asked = [body for body in fake.embeddings if "dimension" not in body["input"]]  # the start asks how long they are
    assert after.of("model_calls_total", "fake-embed") == len(asked)
    assert after.of("model_tokens_total", "input") == 10 * after.of("model_calls_total", "fake-chat")
    assert after.of("model_tokens_total", "output") == 2 * after.of("model_calls_total", "fake-chat")
    assert after.types["recollect_stage_seconds"] == "histogram"
    assert not [name for name, *_ in after.values if name.endswith("_created")]


def test_a_streamed_turn_is_counted_like_a_plain_one(tmp_path: Path, fake: FakeOpenAI):
    with service(tmp_path, **model_settings(fake.url)) as running:
        body = {"user_id": "ada", "thread_id": "t1", "message": "Hello", "stream": True}
        assert "event: done" in running.http.post("/api/agent", json=body).text
        figures = Figures(running)
    assert figures.of("turns_total") == 1
    assert figures.of("model_tokens_total", "input") >= 10


def test_errors_are_counted_by_their_code(tmp_path: Path, fake: FakeOpenAI):
    with service(tmp_path, **model_settings(fake.url)) as running:
        fake.fail(401, times=1, path="/chat/completions")
        assert post(running, "Hello").status_code == 502
        running.turn("Hello", turn_id="one")
        assert post(running, "Something else", turn_id="one").status_code == 409
        assert post(running, "Hello", turn_id="bad id").status_code == 422
        figures = Figures(running)
    assert figures.of("turn_errors_total", "model_unavailable") == 1
    assert figures.of("turn_errors_total", "turn_conflict") == 1
    assert figures.of("turns_total") == 3, "what is refused before it begins is no turn"


def test_a_call_that_fails_is_timed_by_its_errors_type(tmp_path: Path, fake: FakeOpenAI):
    with service(tmp_path, **model_settings(fake.url)) as running:
        running.settled(running.turn("Hello.")["turn_id"])
        fake.fail(401, times=1, path="/chat/completions")
        assert post(running, "Hello again.").status_code == 502
        figures = Figures(running)
    calls = "operation_duration_seconds_count"
    assert figures.of_calls(calls, "", "chat", "openai", "fake-chat") == len(fake.chats) + len(fake.extractions) - 1
    assert figures.of_calls(calls, "ModelUnavailable", "chat", "openai", "fake-chat") == 1
    assert figures.types["gen_ai_client_operation_duration_seconds"] == "histogram"


def test_tokens_that_no_provider_counted_are_no_figure():
    metrics = Metrics()
    with metrics.model_call("chat", "some-model", "openai") as call:
        call.used(Usage(7, 0))
    names = {"gen_ai_operation_name": "chat", "gen_ai_provider_name": "openai", "gen_ai_request_model": "some-model"}
    counted = {
        direction: metrics.registry.get_sample_value(
            "gen_ai_client_token_usage_count", {**names, "gen_ai_token_type": direction}
        )
        for direction in ("input", "output")
    }
    assert counted == {"input": 1, "output": 0}


def test_what_is_pending_is_read_from_the_documents(tmp_path: Path, fake: FakeOpenAI):
    with service(tmp_path, **model_settings(fake.url)) as running:
        # The updates of turns wait for as long as the extraction's model is down.
        fake.on_chat = lambda body: 503 if "tools" in body and len(body["tools"]) == 1 else None
        running.turn("My city is Rome.")
        running.turn("My dog is Rex.", user="bob")
        until(lambda: Figures(running).of("pending_update_age_seconds") > 0.2)
        assert Figures(running).of("pending_updates") == 2
        running.kill()
        running.start()
        assert Figures(running).of("pending_updates") == 2, "those that another process left count too"
        fake.on_chat = None
        until(lambda: Figures(running).of("pending_updates") == 0)
        assert Figures(running).of("pending_update_age_seconds") == 0


def test_the_scrape_goes_on_while_the_documents_are_down(tmp_path: Path):
    settings = {"MONGODB_URL": "mongodb://127.0.0.1:9/?serverSelectionTimeoutMS=200"}
    with service(tmp_path, **settings) as running:
        figures = Figures(running)
        assert ("recollect_turns_total",) in figures.values
        assert ("recollect_pending_updates",) not in figures.values
        assert "action=metrics_incomplete" in running.log


def test_two_services_count_for_themselves(tmp_path: Path):
    (tmp_path / "other").mkdir()
    with service(tmp_path) as one, service(tmp_path / "other") as other:
        one.settled(one.turn("Hello")["turn_id"])  # a turn is counted a moment after its reply
        assert (Figures(one).of("turns_total"), Figures(other).of("turns_total")) == (1, 0)


def test_figures_name_nobody(offline: Service, user: str):
    offline.turn("A sentence that no figure holds.", user=user)
    text = httpx.get(f"{offline.url}/metrics").text
    assert user not in text
    assert not re.search("sentence", text)


def test_a_model_that_a_caller_names_is_no_label(tmp_path: Path, fake: FakeOpenAI):
    fake.models = ("fake-chat", "a-name-of-theirs")
    with service(tmp_path, **model_settings(fake.url)) as running:
        body = {"model": "a-name-of-theirs", "user": "ada", "messages": [{"role": "user", "content": "Hello."}]}
        assert running.http.post("/v1/chat/completions", json=body).status_code == 200
        turn = running.turn("My dog is Rex.", wait_for_memory=True)["turn_id"]
        path = f"/api/turns/{turn}/learn?user_id=ada"
        assert running.http.post(path, json={"model": "a-name-of-theirs"}).status_code in {200, 202}
        running.settled(turn)
        shown = running.http.get("/metrics").text
        figures = Figures(running)
    assert "a-name-of-theirs" not in shown
    assert figures.of("model_calls_total", "other") >= 2
    assert figures.of("model_calls_total", "fake-chat") >= 1
