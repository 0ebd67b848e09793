"""``start_tracing``: spans of steps and calls, sent where ``OTEL_EXPORTER_OTLP_ENDPOINT`` says.

OpenTelemetry's own variables set the rest. No span has content: names, numbers, thread and run.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from modeshift.observing import Report, listeners


def start_tracing() -> None:
    """Trace from now on; what is left is sent when the process ends."""
    provider = TracerProvider(resource=Resource.create())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("modeshift")

    @contextmanager
    def listen(kind: str, names: Mapping[str, str], report: Report) -> Iterator[None]:
        attributes = {f"modeshift.{key}": value for key, value in names.items()}
        # An exception's text may be content.
        with tracer.start_as_current_span(
            kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            yield
            span.set_attributes({f"modeshift.{key}": value for key, value in report.items()})

    listeners.append(listen)
