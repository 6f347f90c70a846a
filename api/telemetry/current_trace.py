"""Tells which trace the current work belongs to, for logs and turns. It loads OpenTelemetry only where traces do."""

import sys


def current_trace_id() -> str | None:
    """Return the id of the current span's trace, 32 hexadecimal digits, or None outside a trace."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}" if context.is_valid else None
