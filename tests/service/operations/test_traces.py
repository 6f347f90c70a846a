"""Traces, as a collector receives them from a real service."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from typing_extensions import override

from recollect.api.telemetry.traces import QuietExporter
from tests.fakes.collector import FakeCollector
from tests.fakes.openai_server import FakeOpenAI, call
from tests.service.support.running import PROJECT, Service, free_port, model_settings, service, until
from tests.service.support.scripts import post

FETCHES = {"load_window", "search_memories", "load_facts"}
CALLER = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector() as running:
        yield running


def stopped(running: Service) -> None:
    """Stop the service, which sends what is left."""
    assert running.stop() == 0


def test_a_turn_is_one_trace(tmp_path: Path, collector: FakeCollector, fake: FakeOpenAI):
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    with service(tmp_path, **settings) as running:
        for said in ("Hello, my city is Rome.", "And my dog is Rex."):
            running.settled(running.turn(said)["turn_id"])
        fake.script(call("search_memory", query="city"))
        turn_id = running.turn("Where do I live?", memory={"window": 1})["turn_id"]
        running.settled(turn_id)
        shown = running.get(f"/api/turns/{turn_id}", user_id="ada")
        stopped(running)
    (turn,) = [span for span in collector.named("turn") if span.attributes["recollect.turn_id"] == turn_id]
    spans = {span.id: span for span in collector.spans if span.trace == turn.trace}
    assert spans[turn.parent].name == "POST /api/agent"
    assert spans[turn.parent].attributes["http.response.status_code"] == "200"
    operations = {span.name: span.attributes.get("gen_ai.operation.name") for span in spans.values()}
    assert (operations["turn"], operations["search_memory"]) == ("invoke_agent", "search_memory")
    assert operations["update.facts"] == "upsert_memory"
    answered = next(span for span in spans.values() if span.name == "chat fake-chat")
    assert {name: value for name, value in answered.attributes.items() if name != "gen_ai.usage.input_tokens"} == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "fake-chat",
        "gen_ai.usage.output_tokens": answered.attributes["gen_ai.usage.output_tokens"],
    }
    assert shown["trace_id"] == turn.trace
    nodes = collector.children(turn)
    assert {*FETCHES, "agent", "tools", "save_turn", "update_memory"} <= set(nodes)
    assert nodes.count("agent") == 2
    assert "conversations.accept" in nodes
    assert "queue.turn" in nodes
    calls = {(spans[span.parent].name, span.name) for span in spans.values() if span.parent in spans}
    # The window is read once, by the one of its two nodes that comes first.
    assert len({("load_window", "conversations.recent"), ("search_memory", "conversations.recent")} & calls) == 1
    assert {
        ("search_memories", "search_memory"),
        ("tools", "search_memory"),
        ("search_memory", "index.rank"),
        ("search_memory", "embeddings fake-embed"),
        ("load_facts", "facts.living"),
        ("agent", "chat fake-chat"),
        ("save_turn", "conversations.commit"),
        ("update.facts", "chat fake-chat"),
        ("update.index", "index.upsert"),
    } <= calls
    assert {spans[span.parent].name for span in spans.values() if span.name.startswith("update.")} == {"turn"}
    assert not [span for span in spans.values() if span.has_failed]


def test_every_store_call_of_a_request_is_a_span(tmp_path: Path, collector: FakeCollector):
    with service(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as running:
        running.get("/api/users/ada/facts")
        stopped(running)
    (request,) = collector.named("GET /api/users/{user_id}/facts")
    assert collector.children(request) == ["facts.page", "facts.page"]
    assert not [span for span in collector.spans if not span.parent and "." in span.name], "sweeps make no traces"


def test_a_search_is_an_operation_on_memory_at_each_door(tmp_path: Path, collector: FakeCollector, fake: FakeOpenAI):
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    doors = {"/api/memory/search": {"query": "city"}, "/api/context": {"thread_id": "t2", "message": "Which city?"}}
    with service(tmp_path, **settings) as running:
        running.settled(running.turn("Hello, my city is Rome.")["turn_id"])
        for path, body in doors.items():
            assert running.http.post(path, json={"user_id": "ada", **body}).status_code == 200
        fake.fail(401, times=-1, path="/embeddings")
        body = {"user_id": "ada", "query": "What else is there?"}
        assert running.http.post("/api/memory/search", json=body).status_code == 502
        figures = running.http.get("/metrics").text
        stopped(running)
    requests = {span.id: span.name for span in collector.spans if span.name.startswith("POST")}
    searches = collector.named("search_memory")
    parents = [requests[span.parent] for span in searches if span.parent in requests]
    assert parents == ["POST /api/memory/search", "POST /api/context", "POST /api/memory/search"]
    assert all(span.attributes["gen_ai.operation.name"] == "search_memory" for span in searches)
    assert [span.attributes.get("error.type") for span in searches] == [None, None, None, "ModelUnavailable"]
    assert re.search(r'operation_duration_seconds_count{.*"search_memory",.*} 3\.0', figures)


def test_the_callers_trace_goes_on(tmp_path: Path, collector: FakeCollector):
    with service(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as running:
        headers = {"traceparent": f"00-{CALLER}-b7ad6b7169203331-01"}
        body = {"user_id": "ada", "thread_id": "t1", "message": "Hello"}
        assert running.http.post("/api/agent", json=body, headers=headers).status_code == 200
        unsampled = {"traceparent": f"00-{CALLER[::-1]}-b7ad6b7169203331-00"}
        assert running.http.post("/api/agent", json=body, headers=unsampled).status_code == 200
        assert running.http.post("/api/agent", json=body, headers={"traceparent": "nonsense"}).status_code == 200
        stopped(running)
    first, second = collector.named("turn")
    assert first.trace == CALLER
    assert second.trace not in (CALLER, CALLER[::-1])
    (request,) = [span for span in collector.named("POST /api/agent") if span.trace == CALLER]
    assert request.parent == "b7ad6b7169203331"


def test_each_line_of_a_request_names_its_trace(tmp_path: Path, collector: FakeCollector):
    with service(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as running:
        headers = {"traceparent": f"00-{CALLER}-b7ad6b7169203331-01"}
        assert running.http.get("/api/turns/none?user_id=ada", headers=headers).status_code == 404
        assert running.http.get("/api/nowhere", headers=headers).status_code == 404
        stopped(running)
    asked = [line for line in running.log.splitlines() if "action=request" in line and "/health" not in line]
    assert len(asked) == 2
    assert all(f"trace_id={CALLER}" in line for line in asked)


def test_an_error_is_a_type_alone(tmp_path: Path, collector: FakeCollector, fake: FakeOpenAI):
    with service(tmp_path, **model_settings(fake.url, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)) as running:
        fake.fail(401, times=1, path="/chat/completions")
        assert post(running, "Hello", user="carla").status_code == 502
        stopped(running)
    (turn,) = collector.named("turn")
    assert turn.has_failed
    assert turn.attributes["error.type"] == "model_unavailable"
    (failed,) = [span for span in collector.named("chat fake-chat") if span.has_failed]
    assert failed.attributes["error.type"] == "ModelUnavailable"


def test_no_text_and_no_user_goes_out(tmp_path: Path, collector: FakeCollector, fake: FakeOpenAI):
    settings = model_settings(fake.url, EMBEDDING_MODEL="fake-embed", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    with service(tmp_path, **settings) as running:
        turn_id = running.turn("Hello, my city is Zanzibar.", user="carla", thread="holiday")["turn_id"]
        running.settled(turn_id, user="carla")
        running.http.get("/api/memory", params={"user_id": "carla", "tag": "zanzibar"})
        fake.fail(500, times=-1)
        assert post(running, "Zanzibar again", user="carla", thread="holiday").status_code == 502
        stopped(running)
    assert collector.named("turn")
    assert {name for span in collector.spans for name in span.attributes} == {
        *("http.request.method", "http.route", "http.response.status_code", "error.type"),
        *("recollect.turn_id", "gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.provider.name"),
        *("gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    }
    sent = b"".join(collector.bodies).lower()
    assert not re.search(b"zanzibar|carla|holiday|127.0.0.1", sent)


def test_a_collector_that_is_down_costs_one_line(tmp_path: Path, fake: FakeOpenAI):
    settings = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}", "OTEL_BSP_SCHEDULE_DELAY": "50"}
    with service(tmp_path, **model_settings(fake.url, **settings)) as running:
        for number in range(3):
            running.turn(f"Hello {number}")
        until(lambda: "action=traces_dropped" in running.log)
        running.turn("Hello again")
        stopped(running)
        assert running.log.count("action=traces_dropped") == 1
        assert "opentelemetry" not in running.log


class Collecting(SpanExporter):
    """Refuses the first `refusals` batches."""

    def __init__(self, refusals: int) -> None:
        self.asked = 0
        self._refusals = refusals

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked += 1
        return SpanExportResult.FAILURE if self.asked <= self._refusals else SpanExportResult.SUCCESS


def test_after_a_pause_the_collector_is_tried_again(caplog: pytest.LogCaptureFixture):
    collecting = Collecting(refusals=2)
    exporter = QuietExporter(collecting, pause_seconds=0.0)
    assert [exporter.export([]).name for _ in range(3)] == ["FAILURE", "FAILURE", "SUCCESS"]
    assert len(caplog.records) == 1


def test_while_it_is_down_nobody_asks_it():
    collecting = Collecting(refusals=1)
    exporter = QuietExporter(collecting, pause_seconds=60.0)
    assert [exporter.export([]).name for _ in range(3)] == ["FAILURE"] * 3
    assert collecting.asked == 1


def test_what_is_left_when_the_time_to_close_is_over_is_dropped():
    collecting = Collecting(refusals=0)
    exporter = QuietExporter(collecting)
    exporter.close_by(time.monotonic() + 60)
    assert exporter.export([]) is SpanExportResult.SUCCESS
    exporter.close_by(time.monotonic())
    assert exporter.export([]) is SpanExportResult.FAILURE


OPENED = """
import asyncio, sys
from recollect.api.app import create_app
from recollect.settings import load_settings

async def main():
    app = create_app(load_settings())
    async with app.router.lifespan_context(app):
        print(*({"opentelemetry.exporter", "mcp"} & set(sys.modules)))

asyncio.run(main())
"""


@pytest.mark.parametrize(("endpoint", "imported"), [("", ""), ("http://127.0.0.1:9", "opentelemetry.exporter")])
def test_only_an_endpoint_imports_it(tmp_path: Path, endpoint: str, imported: str):
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
    child = [sys.executable, "-c", OPENED]
    said = subprocess.run(child, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert said.strip() == imported
