"""Send calls and their SQL to an OpenTelemetry collector, as spans. Loaded only where `traces_endpoint` names one; it never fails a call.

Over HTTP, a call's span belongs to the trace of the request's header `traceparent`. Without the header it begins a trace. Attributes are
from the semantic conventions for RPC and for databases, with `user.name`, and `metastore.*` for others. As usual with OpenTelemetry, the
environment sets the rest: `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_BSP_*`.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import metastore
from metastore import log
from metastore.call_time import PARTS, CallTime, here
from metastore.methods.forms.entry import ALL
from metastore.methods.operations.queries import QUERIES
from metastore.service.call.context import Client

SERVICE = "ThriftHiveMetastore"
SYSTEMS = {"sqlite": "sqlite", "postgresql": "postgresql", "mysql": "mysql"}
_TABLE = re.compile(r'\b(?:FROM|INTO|UPDATE|COPY)\s+["`]?(\w+)', re.IGNORECASE)
_LONGEST = 4000
"""Characters of a statement; it holds no values, which are its parameters."""


class _ToLog(logging.Handler):
    """Writes OpenTelemetry's messages, such as one about a collector that does not answer, to the server's own log."""

    def emit(self, record: logging.LogRecord) -> None:
        log.get("metastore.traces").warning("traces", reason=record.getMessage()[:300])


class Traces:
    """Makes the spans of one process."""

    def __init__(self, endpoint: str, ratio: float, database: SplitResult, kind: str) -> None:
        """`endpoint` is the collector's URL; `ratio` the share of traces begun here that are sent."""
        logger = logging.getLogger("opentelemetry")
        logger.handlers, logger.propagate = [_ToLog(logging.WARNING)], False
        resource = Resource.create(
            {"service.name": os.environ.get("OTEL_SERVICE_NAME", "metastore"), "service.version": metastore.__version__}
        )
        self._provider = TracerProvider(resource=resource, sampler=ParentBased(TraceIdRatioBased(ratio)))
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces")))
        self._tracer = self._provider.get_tracer("metastore", metastore.__version__)
        self._propagator = TraceContextTextMapPropagator()
        self._database = {"db.system.name": SYSTEMS[kind]}
        if database.path.strip("/"):
            self._database["db.namespace"] = database.path.strip("/").rpartition("/")[2]
        if database.hostname:
            self._database["server.address"] = database.hostname

    def begin(self, method: str, client: Client) -> TracedCall:
        """Begin the span of a call; the thread's SQL is added below it until it ends."""
        context = self._propagator.extract({"traceparent": client.traceparent}) if client.traceparent else Context()
        address, _, port = client.address.rpartition(":")
        name = f"{SERVICE}/{method}" if method in ALL or method in QUERIES else "_OTHER"
        attributes: dict[str, Any] = {"rpc.system.name": "thrift", "rpc.method": name, "client.address": address}
        if port.isdigit():
            attributes["client.port"] = int(port)
        span = self._tracer.start_span(name, context, SpanKind.SERVER, attributes)
        return TracedCall(span, self, here.time)

    def statement(self, below: Context, text: str, begun: int, seconds: float) -> None:
        """Add the span of a round trip to the database, which began at `begun` in nanoseconds since 1970."""
        name, attributes = _described(text)
        span = self._tracer.start_span(name, below, SpanKind.CLIENT, {**self._database, **attributes}, start_time=begun)
        span.end(begun + int(seconds * 1e9))

    def close(self) -> None:
        """Send the remaining spans: at the end of the process."""
        self._provider.shutdown()


@lru_cache(maxsize=2000)
def _described(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a statement's span and its attributes."""
    operation = text.split(None, 1)[0].upper() if text else "PIPELINE"
    table = _TABLE.search(text)
    summary = f"{operation} {table[1]}" if table else operation
    attributes = {"db.operation.name": operation, "db.query.summary": summary}
    if text:
        attributes["db.query.text"] = text[:_LONGEST]
    if table:
        attributes["db.collection.name"] = table[1]
    return summary, attributes


class TracedCall:
    """A call whose span is open."""

    def __init__(self, span: Span, traces: Traces, spent: CallTime) -> None:
        self._span = span
        self._traces = traces
        self._time = spent
        self._offset = time.time_ns() - int(time.perf_counter() * 1e9)
        if span.is_recording():
            self._below = set_span_in_context(span, Context())
            spent.trace = self._note

    @property
    def trace(self) -> str:
        """The id of the trace, as collectors show it; "" if it is not sent to one."""
        return format_trace_id(self._span.get_span_context().trace_id) if self._span.is_recording() else ""

    def _note(self, text: str, began: float, seconds: float) -> None:
        self._traces.statement(self._below, text, self._offset + int(began * 1e9), seconds)

    def end(self, client: Client, thing: str, result: str, query: str, parts: Sequence[float]) -> None:
        """End the span with the result of the call: its object, "ok" or the error's class, its query, the parts of its time."""
        self._time.trace = None
        span = self._span
        if span.is_recording():
            if client.user is not None:
                span.set_attribute("user.name", client.user)
            if thing:
                span.set_attribute("metastore.object", thing)
            if query:
                span.set_attribute("metastore.query.id", query)
            span.set_attribute("metastore.statements", self._time.statements)
            for part, seconds in zip(PARTS, parts, strict=False):  # a call without SQL has none
                span.set_attribute(f"metastore.{part}_seconds", seconds)
            if result != "ok":
                span.set_attribute("error.type", result)
                span.set_status(Status(StatusCode.ERROR))
        span.end()
