"""Sends OpenTelemetry traces to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names. Imported only with one.

Each request has one trace: the request, the turn, its nodes, the calls of stores and models, and after the reply the
steps of its update. Spans carry names, the turn's id, and errors' types: no text, no user, no address.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from types import TracebackType
from typing import Self

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers
from starlette.types import Scope
from typing_extensions import override

from recollect.api.telemetry.conventions import (
    AGENT,
    INPUT_TOKENS,
    MEMORY_STEPS,
    MODEL,
    OPERATION,
    OUTPUT_TOKENS,
    PROVIDER,
)
from recollect.api.telemetry.current_trace import current_trace_id
from recollect.api.telemetry.watched_store import WatchedStore, watched_index
from recollect.api.version import VERSION
from recollect.memory.ports.chat_model import Usage
from recollect.memory.ports.observing import MemoryOperation, ModelCall, ModelOperation, Observer, Watched
from recollect.memory.ports.store import Store
from recollect.memory.ports.vector_index import VectorIndex
from recollect.memory.values.turn import Turn

logger = logging.getLogger(__name__)

EXPORT_SECONDS = 3.0
"""The time limit for sending one batch."""
CLOSE_SECONDS = 2.0
"""The time that a stop waits for the collector; spans left after it are dropped."""
PAUSE_SECONDS = 30.0
"""The pause after the collector could not be reached, in which spans are dropped unsent."""
MOST_TURNS = 1_000
"""The most turns whose trace is remembered, so that the steps of their updates join it."""
TURN_ID = "recollect.turn_id"
_PROPAGATOR = TraceContextTextMapPropagator()


@asynccontextmanager
async def open_traces(endpoint: str, counting: Observer) -> "AsyncGenerator[TraceExporter]":
    """Traces that go to the collector at `endpoint`; at the end what is left is sent, for `CLOSE_SECONDS` at most."""
    exporter = QuietExporter(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces", timeout=EXPORT_SECONDS))
    resource = Resource.create({SERVICE_NAME: "recollect", SERVICE_VERSION: VERSION})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    try:
        yield TraceExporter(provider.get_tracer("recollect", VERSION), counting)
    finally:
        exporter.close_by(time.monotonic() + CLOSE_SECONDS)
        await asyncio.to_thread(provider.shutdown)


class TraceExporter(Observer):
    """The observer that traces, and passes each event on to the one that counts."""

    def __init__(self, tracer: Tracer, counting: Observer) -> None:
        self._tracer = tracer
        self._counting = counting
        self._turns: OrderedDict[tuple[str, str], SpanContext] = OrderedDict()

    def request(self, scope: Scope, route: str) -> "RequestSpan":
        """Open the span of an HTTP request; a W3C `traceparent` makes it part of the caller's trace."""
        headers = Headers(scope=scope)
        given = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        return RequestSpan(self._tracer, scope["method"], route, parent=_PROPAGATOR.extract(given, Context()))

    @override
    def turn(self, user_id: str, turn_id: str) -> Watched:
        """Open the span of a turn, until its reply."""
        span = _Active(self._tracer, "turn", attributes={TURN_ID: turn_id, **AGENT})
        self._turns[user_id, turn_id] = span.span.get_span_context()
        if len(self._turns) > MOST_TURNS:
            self._turns.popitem(last=False)
        return span

    @override
    def turn_ended(self, code: str | None) -> None:
        """Record on the turn's span how it ended."""
        self._counting.turn_ended(code)
        if code is not None:
            _failed(trace.get_current_span(), code)

    @override
    def stage(self, name: str) -> Watched:
        """Open the span of a node."""
        return _Active(self._tracer, name, inner=self._counting.stage(name))

    @override
    def step(self, name: str, turn: Turn) -> Watched:
        """Open the span of an update's step, in its turn's trace while that is remembered."""
        known = self._turns.get((turn.message.user_id, turn.message.turn_id))
        parent = trace.set_span_in_context(NonRecordingSpan(known), Context()) if known else Context()
        attributes = {TURN_ID: turn.message.turn_id}
        if name in MEMORY_STEPS:
            attributes[OPERATION] = MEMORY_STEPS[name]
        inner = self._counting.step(name, turn)
        return _Active(self._tracer, f"update.{name}", parent=parent, attributes=attributes, inner=inner)

    @override
    def memory_call(self, operation: MemoryOperation) -> Watched:
        """Open the span of an operation on the memory."""
        inner = self._counting.memory_call(operation)
        return _Active(self._tracer, operation, attributes={OPERATION: operation}, inner=inner)

    @override
    def model_call(self, operation: ModelOperation, model: str, provider: str) -> ModelCall:
        """Open the span of a model's call."""
        inner = self._counting.model_call(operation, model, provider)
        attributes = {OPERATION: operation, PROVIDER: provider, MODEL: model}
        return _ModelSpan(self._tracer, f"{operation} {model}", attributes, inner)

    @override
    def trace_id(self) -> str | None:
        """Return the id of the current span's trace."""
        return current_trace_id()

    @override
    def store(self, store: Store) -> Store:
        """Wrap the store so that each call has a span. Calls outside any trace (the sweeps') have none."""
        return WatchedStore(self._counting.store(store), self._call)

    @override
    def index(self, index: VectorIndex) -> VectorIndex:
        """Wrap the index likewise."""
        return watched_index(self._counting.index(index), self._call)

    def _call(self, name: str) -> "_Leaf | None":
        if not trace.get_current_span().get_span_context().is_valid:
            return None
        return _Leaf(self._tracer, name)


class _Active:
    """A span that becomes the parent of the spans within it. It begins when it is made."""

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        *,
        parent: Context | None = None,
        attributes: Mapping[str, str] | None = None,
        inner: Watched | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        self.span = tracer.start_span(name, context=parent, attributes=attributes, kind=kind)
        self._inner = inner

    def __enter__(self) -> Self:
        self._token = attach(trace.set_span_in_context(self.span))
        if self._inner is not None:
            self._inner.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._inner is not None:
            self._inner.__exit__(kind, error, at)
        if kind is not None:
            _failed(self.span, kind.__name__)
        detach(self._token)
        self.span.end()


class RequestSpan(_Active):
    """The span of an HTTP request."""

    def __init__(self, tracer: Tracer, method: str, route: str, *, parent: Context) -> None:
        attributes = {"http.request.method": method, "http.route": route}
        super().__init__(tracer, f"{method} {route}", parent=parent, attributes=attributes, kind=SpanKind.SERVER)

    def answered(self, status: int) -> None:
        """Record the status of the answer."""
        self.span.set_attribute("http.response.status_code", status)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            _failed(self.span, str(status))


class _Leaf:
    """The span of one call. It parents no span, because a generator may be left in the middle of it, in any context."""

    __slots__ = ("_inner", "_span")

    def __init__(
        self, tracer: Tracer, name: str, attributes: Mapping[str, str] | None = None, inner: Watched | None = None
    ) -> None:
        self._span = tracer.start_span(name, attributes=attributes, kind=SpanKind.CLIENT)
        self._inner = inner

    def __enter__(self) -> Self:
        if self._inner is not None:
            self._inner.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._inner is not None:
            self._inner.__exit__(kind, error, at)
        if kind is not None and kind is not GeneratorExit:
            _failed(self._span, kind.__name__)
        self._span.end()


class _ModelSpan(_Leaf, ModelCall):
    """The span of a model's call, with the tokens that it took."""

    __slots__ = ("_counted",)

    def __init__(self, tracer: Tracer, name: str, attributes: Mapping[str, str], inner: ModelCall) -> None:
        super().__init__(tracer, name, attributes, inner)
        self._counted = inner

    @override
    def used(self, usage: Usage) -> None:
        """Record the tokens on the span, and count them."""
        for name, tokens in ((INPUT_TOKENS, usage.input_tokens), (OUTPUT_TOKENS, usage.output_tokens)):
            if tokens:  # 0: the provider has not counted them
                self._span.set_attribute(name, tokens)
        self._counted.used(usage)


def _failed(span: Span, kind: str) -> None:
    """Record an error's type alone: its text may quote a user."""
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)


class QuietExporter(SpanExporter):
    """Sends spans while the collector can be reached, and drops them while it cannot: it warns once for each outage."""

    def __init__(self, exporter: SpanExporter, *, pause_seconds: float = PAUSE_SECONDS) -> None:
        self._exporter = exporter
        self._pause_seconds = pause_seconds
        self._is_down = False
        self._paused_until = 0.0
        self._close_by: float | None = None

    def close_by(self, deadline: float) -> None:
        """Send the remaining spans, and nothing after `deadline` (of `time.monotonic`)."""
        self._close_by = deadline

    @override
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the spans, or drop them."""
        now = time.monotonic()
        if now < self._paused_until or (self._close_by is not None and now >= self._close_by):
            return SpanExportResult.FAILURE
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._is_down = False
            return result
        self._paused_until = time.monotonic() + self._pause_seconds
        if not self._is_down:
            self._is_down = True
            logger.warning("traces cannot be sent; spans are dropped", extra={"action": "traces_dropped"})
        return result

    @override
    def shutdown(self) -> None:
        """Close the exporter."""
        self._exporter.shutdown()
