"""`GET /metrics`: the figures that Prometheus scrapes, counted by this process since its start."""

from time import perf_counter
from types import TracebackType
from typing import Self

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

from recollect.api.auth.admission import OpenAdmission
from recollect.api.auth.caller import ADMIN_ONLY
from recollect.api.state import OpenMemory
from recollect.api.telemetry.conventions import CALL_BUCKETS, MEMORY_STEPS, TOKEN_BUCKETS
from recollect.api.telemetry.gauges import Evictions, Uncounted, pending_updates
from recollect.memory.ports.chat_model import Usage
from recollect.memory.ports.observing import UNWATCHED, MemoryOperation, ModelCall, ModelOperation, Observer, Watched
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.values.frozen import frozen
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
        self._seconds_of_calls = Histogram(
            "gen_ai_client_operation_duration_seconds",
            "Time taken by calls of models and operations on memory, by OpenTelemetry's GenAI conventions.",
            ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "error_type"],
            buckets=CALL_BUCKETS,
            registry=self.registry,
        )
        self._tokens_of_calls = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of a model's call as its provider counted them, by the same conventions.",
            ["gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model", "gen_ai_token_type"],
            buckets=TOKEN_BUCKETS,
            registry=self.registry,
        )
        tokens = Counter(
            "recollect_model_tokens", "Tokens as providers counted them.", ["direction"], registry=self.registry
        )
        self._input, self._output = tokens.labels("input"), tokens.labels("output")
        # Children are kept here, because finding one by its label takes longer than counting.
        self._stages: dict[str, Histogram] = {}
        self._operations: dict[MemoryOperation, _OperationSeconds] = {}
        self._models: dict[tuple[str, str, str], _Figures] = {}

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
        return _Timed(stage=self._stage_seconds(name))

    @override
    def step(self, name: str, turn: Turn) -> Watched:
        """Time the step."""
        operation = MEMORY_STEPS.get(name)
        seconds = None if operation is None else self._operation_seconds(operation)
        return _Timed(stage=self._stage_seconds(name), operation=seconds)

    @override
    def memory_call(self, operation: MemoryOperation) -> Watched:
        """Time the operation."""
        return _Timed(operation=self._operation_seconds(operation))

    @override
    def model_call(self, operation: ModelOperation, model: str, provider: str) -> ModelCall:
        """Count and time the call, whether it succeeds or fails."""
        figures = self._models.get((operation, model, provider))
        if figures is None:
            label = model if len(self._models) < MOST_MODELS else "other"
            figures = self._figures(operation, label, provider)
            if label == model:
                self._models[operation, model, provider] = figures
        figures.calls.inc()
        return _TimedCall(figures)

    @override
    def trace_id(self) -> str | None:
        """Return None: what is counted belongs to no trace."""
        return None

    def _stage_seconds(self, name: str) -> Histogram:
        seconds = self._stages.get(name)
        if seconds is None:
            seconds = self._stages[name] = self._seconds.labels(name)
        return seconds

    def _operation_seconds(self, operation: MemoryOperation) -> "_OperationSeconds":
        seconds = self._operations.get(operation)
        if seconds is None:
            seconds = _OperationSeconds(self._seconds_of_calls, operation, "recollect", "")
            self._operations[operation] = seconds
        return seconds

    def _figures(self, operation: ModelOperation, model: str, provider: str) -> "_Figures":
        labels = (operation, provider, model)
        return _Figures(
            self._calls.labels(model),
            _OperationSeconds(self._seconds_of_calls, *labels),
            (self._input, self._tokens_of_calls.labels(*labels, "input")),
            (self._output, self._tokens_of_calls.labels(*labels, "output")),
        )

    @override
    def store(self, store: Store) -> Store:
        """Return the store itself: its calls are not counted."""
        return store

    @override
    def index(self, index: VectorIndex) -> VectorIndex:
        """Return the index itself, likewise."""
        return index


class _OperationSeconds:
    """The durations of one operation: where it fails, by the error's type, as the conventions want it."""

    __slots__ = ("_histogram", "_labels", "_succeeded")

    def __init__(self, histogram: Histogram, *labels: str) -> None:
        self._histogram = histogram
        self._labels = labels
        self._succeeded = histogram.labels(*labels, "")

    def observe(self, seconds: float, failed_by: type[BaseException] | None) -> None:
        """Count a duration. A stream that its reader left has not failed."""
        if failed_by is None or failed_by is GeneratorExit:
            self._succeeded.observe(seconds)
        else:
            self._histogram.labels(*self._labels, failed_by.__name__).observe(seconds)


class _Timed:
    """Times a stage, an operation, or a stage that is one; whether it fails or not."""

    __slots__ = ("_operation", "_stage", "_started")

    def __init__(self, *, stage: Histogram | None = None, operation: _OperationSeconds | None = None) -> None:
        self._stage = stage
        self._operation = operation
        self._started = 0.0

    def __enter__(self) -> Self:
        self._started = perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        taken = perf_counter() - self._started
        if self._stage is not None:
            self._stage.observe(taken)
        if self._operation is not None:
            self._operation.observe(taken, kind)


@frozen
class _Figures:
    """What is counted of one model's calls: a counter over all models beside the histogram of its own tokens."""

    calls: Counter
    seconds: _OperationSeconds
    read: tuple[Counter, Histogram]
    written: tuple[Counter, Histogram]


class _TimedCall(_Timed, ModelCall):
    """Times a model's call, and counts its tokens."""

    __slots__ = ("_figures",)

    def __init__(self, figures: _Figures) -> None:
        super().__init__(operation=figures.seconds)
        self._figures = figures

    @override
    def used(self, usage: Usage) -> None:
        """Add the tokens that the provider counted."""
        for (total, histogram), tokens in (
            (self._figures.read, usage.input_tokens),
            (self._figures.written, usage.output_tokens),
        ):
            if tokens:  # 0: the provider has not counted them
                total.inc(tokens)
                histogram.observe(tokens)


@router.get(
    "/metrics",
    response_model=None,
    summary="Figures for Prometheus",
    description="In its text format: what this process has counted since its start, and what is pending now.",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    dependencies=[ADMIN_ONLY],
)
async def get_metrics(request: Request, memory: OpenMemory, admission: OpenAdmission) -> Response:
    """Return what was counted, and what is pending now by the documents (left out while they cannot be asked)."""
    counted: Metrics = request.app.state.metrics
    read = CollectorRegistry()
    read.register(Evictions(memory.operations.evicted))
    read.register(Uncounted(admission.uncounted))
    for gauge in await pending_updates(memory.operations):
        read.register(gauge)
    text = generate_latest(counted.registry) + generate_latest(read)
    return Response(text, headers={"content-type": CONTENT_TYPE_LATEST})
