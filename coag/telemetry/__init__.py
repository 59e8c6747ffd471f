"""What an agent does, as OpenTelemetry's spans and metrics: for the tracing tool one has already.

A turn is a span `invoke_agent`; in it are its cycles, their phases, the calls of models (`chat`)
and the external actions (`execute_tool`), named by OpenTelemetry's conventions for generative AI.
Decisions are events on the spans of phases: which candidate was rejected by which constraint, what
was selected and by whom, an impasse. `SpanBuilder` makes all of it from the records of the trace,
with their times, so that a live agent (`watch`) and a finished run (`export_run`, `send_run`) give
the same spans.

Messages, prompts, arguments and results are sent only with `record_content=True`. Nothing global
is set, and nothing here raises into a turn.

`opentelemetry` is imported in this package only; `send_run` needs the extra `otel`.
"""

from .attributes import Subject
from .export import export_run, send_run
from .watch import SpanSink, watch

__all__ = [
    "watch",
    "SpanSink",
    "Subject",
    "export_run",
    "send_run",
]
