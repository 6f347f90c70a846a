"""`GET /metrics`: the figures that Prometheus scrapes, counted by this process since its start."""

from time import perf_counter

from fastapi import APIRouter, Request, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from typing_extensions import override

from recollect.api.auth.caller import ADMIN_ONLY
from recollect.api.state import OpenMemory
from recollect.api.telemetry.gauges import Evictions, pending_updates
from recollect.memory.ports.chat_model import Usage
from recollect.memory.ports.observing import UNWATCHED, Observer, Watched
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.values.turn import Turn

router = APIRouter(tags=["health"])

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Bounds in seconds, from a search in the embedded index to a model's time limit."""
MOST_MODELS = 100
"""The most models with a label of their own; further ones share `other`. Models that callers name always do."""


class Metrics(Observer):
    """The observer that counts. It has a registry of its own, so that two applications in one process do not mix."""

    def __init__(self) -> None:
        disable_created_metrics()
        self.registry = CollectorRegistry()
        self._turns = Counter("recollect_turns", "Turns that have ended, answered or failed.", registry=self.registry)
        self._errors = Counter(
            "recollect_turn_errors", "Turns that ended in an error.", ["code"], registry=self.registry
        )
        self._seconds = Histogram(
            "recollect_stage_seconds",
            "Time taken by the nodes of turns, and by the steps of their updates (facts, index, summary).",
            ["stage"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._calls = Counter(
            "recollect_model_calls", "Calls of chat models and embedders.", ["model"], registry=self.registry
        )
        tokens = Counter(
            "recollect_model_tokens", "Tokens as providers counted them.", ["direction"], registry=self.registry
        )
        self._input, self._output = tokens.labels("input"), tokens.labels("output")
        # Children are kept here, because finding one by its label takes longer than counting.
        self._stages: dict[str, Histogram] = {}
        self._models: dict[str, Counter] = {}

    @override
    def turn(self, user_id: str, turn_id: str) -> Watched:
        """Count nothing yet: a turn is counted when it has ended."""
        return UNWATCHED

    @override
    def turn_ended(self, code: str | None) -> None:
        """Count the turn, and the error that ended it."""
        self._turns.inc()
        if code is not None:
            self._errors.labels(code).inc()

    @override
    def stage(self, name: str) -> Watched:
        """Time the stage."""
        seconds = self._stages.get(name)
        if seconds is None:
            seconds = self._stages[name] = self._seconds.labels(name)
        return _Timed(seconds)

    @override
    def step(self, name: str, turn: Turn) -> Watched:
        """Time the step."""
        return self.stage(name)

    @override
    def model_call(self, name: str, model: str) -> Watched:
        """Count the call, whether it succeeds or fails."""
        calls = self._models.get(model)
        if calls is None:
            label = model if len(self._models) < MOST_MODELS else "other"
            calls = self._calls.labels(label)
            if label == model:
                self._models[model] = calls
        calls.inc()
        return UNWATCHED

    @override
    def tokens(self, usage: Usage) -> None:
        """Add the tokens that the provider counted."""
        self._input.inc(usage.input_tokens)
        self._output.inc(usage.output_tokens)

    @override
    def store(self, store: Store) -> Store:
        """Return the store itself: its calls are not counted."""
        return store

    @override
    def index(self, index: VectorIndex) -> VectorIndex:
        """Return the index itself, likewise."""
        return index


class _Timed:
    """Times one observation of a histogram, whether it fails or not."""

    __slots__ = ("_seconds", "_started")

    def __init__(self, seconds: Histogram) -> None:
        self._seconds = seconds
        self._started = 0.0

    def __enter__(self) -> None:
        self._started = perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds.observe(perf_counter() - self._started)


@router.get(
    "/metrics",
    response_model=None,
    summary="Figures for Prometheus",
    description="In its text format: what this process has counted since its start, and what is pending now.",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    dependencies=[ADMIN_ONLY],
)
async def get_metrics(request: Request, memory: OpenMemory) -> Response:
    """Return what was counted, and what is pending now by the documents (left out while they cannot be asked)."""
    counted: Metrics = request.app.state.metrics
    read = CollectorRegistry()
    read.register(Evictions(memory.operations.evicted))
    for gauge in await pending_updates(memory.operations):
        read.register(gauge)
    text = generate_latest(counted.registry) + generate_latest(read)
    return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})
