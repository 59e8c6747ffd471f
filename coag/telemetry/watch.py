"""Spans of a live agent: a trace sink that makes spans of the records that it gets."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import version
from typing import Self

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from coag.agent import CoagAgent
from coag.models import innermost, model_name_of
from coag.schema import LazySink, TraceRecord, TraceSink

from .attributes import Content, Meters, Subject, provider_of
from .spans import SpanBuilder

_LOG = logging.getLogger(__name__)


class SpanSink:
    """Makes spans and metrics of a run as it is recorded; a `TraceSink`.

    Each record is passed to `inner` first, so that a trace that cannot be written still stops the
    run. If making a span then fails, in somebody's span processor for example, that is logged
    once and no more spans are made; the run continues.

    A turn taken within a span of its caller belongs to that span; otherwise to a span of the run,
    which ends with `close`.

    Args:
        subject: Whose run it is.
        inner: Where the records go; None where they are written elsewhere.
        tracer_provider: Where spans go; None for the global one.
        meter_provider: Where metrics go; None for the global one.
        record_content: Send messages, prompts, arguments and results, too; secrets are
            taken out as in logs.
    """

    def __init__(
        self,
        subject: Subject,
        inner: TraceSink | None = None,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        record_content: bool = False,
    ) -> None:
        self._inner = inner
        self._broken = False
        self._stop_watching: Callable[[], None] | None = None
        self._run_name: Callable[[], str] | None = None
        self._builder = SpanBuilder(
            subject,
            tracer_provider=tracer_provider,
            meters=Meters(meter_provider, version("coag")),
            content=Content() if record_content else None,
            in_caller_span=True,
        )

    def follow(self, run_name: Callable[[], str], stop_watching: Callable[[], None]) -> None:
        """Sets what gives the current run's id, and what ends the watching."""
        self._run_name, self._stop_watching = run_name, stop_watching

    def write(self, record: TraceRecord) -> None:
        """Passes a record on and adds it to the spans."""
        if self._inner is not None:
            self._inner.write(record)
        self._guarded(lambda: self._add(record))

    def write_later(self, make: Callable[[], TraceRecord]) -> None:
        """Passes a record on; snapshots, which are made late, give no span."""
        if isinstance(self._inner, LazySink):
            self._inner.write_later(make)
        elif self._inner is not None:
            self._inner.write(make())

    def flush(self) -> None:
        """Flushes `inner`; when spans are sent, the SDK decides."""
        if self._inner is not None:
            self._inner.flush()

    def close(self) -> None:
        """Ends all open spans and stops watching; closing twice does no harm."""
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        self._guarded(self._builder.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _add(self, record: TraceRecord) -> None:
        if self._run_name is not None and record.record == "turn_start":
            self._builder.begin_run(self._run_name())
        self._builder.add(record)

    def _guarded(self, step: Callable[[], None]) -> None:
        if self._broken:
            return
        try:
            step()
        except Exception:  # samplers and span processors are open interfaces; the turn continues
            self._broken = True
            _LOG.exception("No more spans are made of this run; the run itself continues.")


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
        record_content: Send messages, prompts, arguments and results, too.

    Returns:
        The sink; `close` it, or use it in `with`, so that the run's span ends.
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
