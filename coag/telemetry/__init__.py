"""What an agent does, as OpenTelemetry's spans and metrics: for the tracing tool one has already.

A turn is a span `invoke_agent`, and within it stand its cycles, their phases, the calls of models
(`chat`) and the external actions (`execute_tool`), named by OpenTelemetry's conventions for
generative AI. Decisions are events on the spans of phases: which candidate died of which
constraint, what was selected and by whom, an impasse. All of it is made from the records of the
trace, with their times, so that a live agent (`watch`) and a finished run (`export_run`) give the
same spans.

What was said, prompts, arguments and results are in none of it unless `record_content=True` asks
for them. Nothing global is set, and nothing here raises into a turn.

`opentelemetry` is imported in this package only; `send_run` needs the extra `otel`.
"""

from .export import Exported, export_run
from .otlp import DEFAULT_ENDPOINT, send_run
from .sink import SpanSink, watch
from .span_values import Subject, provider_of

__all__ = [
    "watch",
    "SpanSink",
    "Subject",
    "provider_of",
    "export_run",
    "Exported",
    "send_run",
    "DEFAULT_ENDPOINT",
]
