"""Spans of a live agent."""

from __future__ import annotations

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from coag.agent import CoagAgent
from coag.models import innermost, model_name_of

from ._sink import SpanSink
from ._subject import Subject, provider_of


def watch(
    agent: CoagAgent,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    record_content: bool = False,
) -> SpanSink:
    """Makes spans and metrics of all that an agent does from now on, until it is closed.

    Args:
        agent: The agent. What it does and records stays as it is.
        tracer_provider: Where spans go; None for the global one.
        meter_provider: Where metrics go; None for the global one.
        record_content: Send what was said, prompts, arguments and results, too.

    Returns:
        What makes them; `close` it, or use it in `with`, so that the run's span ends.
    """
    client = innermost(agent.arguments.model_client)
    mind = agent.mind
    subject = Subject(
        agent=agent.name,
        run=mind.deps.run(),
        provider=provider_of(client=client, model=model_name_of(client)),
        kind="coag",
    )
    sink = SpanSink(
        subject,
        tracer_provider=tracer_provider,
        meter_provider=meter_provider,
        record_content=record_content,
    )
    sink.follow(mind.deps.run, agent.watch(sink))
    return sink
