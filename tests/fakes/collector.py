"""An OpenTelemetry collector on a loopback port: it receives traces over HTTP as protobuf, and keeps their spans."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, NamedTuple, Self, cast

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from typing_extensions import override


class Sent(NamedTuple):
    """One span as it came over the wire; ids are hexadecimal, `parent` is "" for a root."""

    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, str]
    has_failed: bool


class FakeCollector:
    """Serves `/v1/traces` in a thread of its own."""

    def __init__(self) -> None:
        self.spans: list[Sent] = []
        self.bodies: list[bytes] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Return the value for OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def named(self, name: str) -> list[Sent]:
        """Return the spans of this name, in the order in which they came."""
        return [span for span in self.spans if span.name == name]

    def children(self, parent: Sent) -> list[str]:
        """Return the names of the span's children."""
        return [span.name for span in self.spans if span.parent == parent.id]

    def _take(self, path: str, body: bytes) -> int:
        if path != "/v1/traces":
            return 404
        self.bodies.append(body)
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans += [_sent(span) for span in scope.spans]
        return 200

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(collector._take(self.path, body))
                self.send_header("Content-Length", "0")
                self.end_headers()

            @override
            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing."""

        return Handler

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _sent(span: Any) -> Sent:
    attributes = {item.key: str(item.value.string_value or item.value.int_value) for item in span.attributes}
    return Sent(
        name=cast(str, span.name),
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        attributes=attributes,
        has_failed=span.status.code == span.status.STATUS_CODE_ERROR,
    )
