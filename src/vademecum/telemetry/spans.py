"""Spans of what Vademecum does, by OpenTelemetry over OTLP/HTTP; nothing at all while off.

    with span("search", database.backend, query=text) as found:
        found.set(results_count=3)

gives `neon.search` on Neon and `postgresql.search` elsewhere. OpenTelemetry is imported when
tracing is begun, not before.
"""

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from vademecum.errors import BadSetting

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

EXPORT_SECONDS = 5
"""How long a batch of spans is offered to a collector, in the background."""

END_SECONDS = 1
"""How long a collector that does not answer may hold up the end of the process."""

KINDS = {"complete": "CHAT_MODEL", "embed": "EMBEDDING", "search": "RETRIEVER"}
"""MLflow's span types; anything else is a TOOL."""

Value = str | int | float | bool
_tracer: "Tracer | None" = None


class _Nothing:
    """The span of tracing that is off."""

    recording = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    def set(self, **attributes: Value) -> None: ...


class _Recorded:
    """A span with its attributes and, at its end, `latency_ms`."""

    recording = True

    def __init__(
        self, tracer: "Tracer", operation: str, backend: str, attributes: dict[str, Value]
    ) -> None:
        kind = KINDS.get(operation, "TOOL")
        self._scope = tracer.start_as_current_span(
            f"{backend}.{operation}",
            attributes={"mlflow.spanType": f'"{kind}"', **attributes},
            record_exception=False,
        )
        self._started = time.perf_counter()
        self._span: Span

    def __enter__(self) -> Self:
        self._span = self._scope.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.set(latency_ms=round((time.perf_counter() - self._started) * 1000, 3))
        if kind is not None:
            self.set(**{"error.type": kind.__name__})
        self._scope.__exit__(kind, error, tb)

    def set(self, **attributes: Value) -> None:
        self._span.set_attributes(attributes)


_NOTHING = _Nothing()


def span(operation: str, backend: str, **attributes: Value) -> _Nothing | _Recorded:
    """A context manager around one operation of a backend; its `set` adds attributes."""
    if _tracer is None:
        return _NOTHING
    return _Recorded(_tracer, operation, backend, attributes)


@contextmanager
def tracing(url: str | None, *, experiment: str = "0") -> Iterator[None]:
    """Send the spans made inside to the collector at `url`, such as http://host:5000/v1/traces.

    `experiment` is the id of MLflow's experiment; other collectors pay no heed to it. What is
    in OTEL_EXPORTER_OTLP_HEADERS is sent as well. Raises BadSetting without the extra.
    """
    global _tracer
    if url is None or _tracer is not None:  # an outer one is at work already
        yield
        return
    provider = _provider(url, experiment)
    _tracer = provider.get_tracer("vademecum")
    try:
        yield
    finally:
        _tracer = None
        # Its own time limit is not kept while an export is tried again.
        ending = threading.Thread(target=provider.shutdown, daemon=True)
        ending.start()
        ending.join(END_SECONDS)


def _provider(url: str, experiment: str) -> "TracerProvider":
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.util.re import parse_env_headers
    except ImportError:
        raise BadSetting(
            "VADE_TRACES_URL is set, but OpenTelemetry is not installed",
            hint="Run `pip install 'vademecum[tracing]'`, or unset it.",
        ) from None
    # What cannot be sent is lost; the work it tells of is not, and its output stays as it is.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    headers = parse_env_headers(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""), liberal=True)
    exporter = OTLPSpanExporter(
        endpoint=url,
        headers={**headers, "x-mlflow-experiment-id": experiment},
        timeout=EXPORT_SECONDS,
    )
    provider = TracerProvider(
        resource=Resource.create({"service.name": "vademecum"}), shutdown_on_exit=False
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider
