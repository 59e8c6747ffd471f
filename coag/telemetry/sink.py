"""Spans of a run while it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Self

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from coag.agent import CoagAgent
from coag.models import innermost, model_name_of
from coag.schema import LazySink, TraceRecord, TraceSink

from .span_values import Content, Subject, provider_of
from .spans import Teller, meters_for

# ---- A trace sink that makes spans of what it is given ----


_LOG = logging.getLogger(__name__)


class SpanSink:
    """Makes spans and metrics of a run as it is recorded; a `TraceSink`.

    What it is given goes on to `inner` first, so that a trace that cannot be written stops the
    run as ever. What then goes wrong here, in somebody's span processor say, is logged once, and
    no more spans are made; the run goes on.

    A turn that is taken within a span of its caller belongs to that span; else to a span of the
    run, which ends with `close`.

    Args:
        subject: Whose run it is.
        inner: Where the records go; None where they are kept elsewhere.
        tracer_provider: Where spans go; None for the global one.
        meter_provider: Where metrics go; None for the global one.
        record_content: Send what was said, prompts, arguments and results, too; secrets are
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
        self._leave: Callable[[], None] | None = None
        self._run_name: Callable[[], str] | None = None
        self._teller = Teller(
            subject,
            tracer_provider=tracer_provider,
            meters=meters_for(meter_provider),
            content=Content() if record_content else None,
            surrounded=True,
        )

    def follow(self, run_name: Callable[[], str], leave: Callable[[], None]) -> None:
        """Learns where to ask for the current run's id, and what ends the watching."""
        self._run_name, self._leave = run_name, leave

    def write(self, record: TraceRecord) -> None:
        """Passes a record on and tells of it."""
        if self._inner is not None:
            self._inner.write(record)
        self._guarded(lambda: self._tell(record))

    def write_later(self, make: Callable[[], TraceRecord]) -> None:
        """Passes a record on; those that are made late, snapshots, are nothing to tell."""
        if isinstance(self._inner, LazySink):
            self._inner.write_later(make)
        elif self._inner is not None:
            self._inner.write(make())

    def flush(self) -> None:
        """Flushes what the records are passed on to; when spans are sent, is the SDK's matter."""
        if self._inner is not None:
            self._inner.flush()

    def close(self) -> None:
        """Ends all spans that are open, and watches no longer; closing twice does no harm."""
        if self._leave is not None:
            self._leave()
            self._leave = None
        self._guarded(self._teller.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _tell(self, record: TraceRecord) -> None:
        if self._run_name is not None and record.record == "turn_start":
            self._teller.begin_run(self._run_name())
        self._teller.take(record)

    def _guarded(self, tell: Callable[[], None]) -> None:
        if self._broken:
            return
        try:
            tell()
        except Exception:  # samplers and span processors are open interfaces; the turn goes on
            self._broken = True
            _LOG.exception("No more spans are made of this run, which goes on without.")


# ---- Spans of a live agent ----


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
