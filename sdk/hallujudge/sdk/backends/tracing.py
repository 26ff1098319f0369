"""Traces of the calling program go on at the server."""

from __future__ import annotations

import sys

__all__ = ["trace_headers"]


def trace_headers() -> tuple[tuple[str, str], ...]:
    """Return the W3C headers of the active span; none if the program records no traces.

    OpenTelemetry is not loaded for this: a program that has an active span has loaded it.
    """
    if "opentelemetry.trace" not in sys.modules:
        return ()
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return tuple(headers.items())
