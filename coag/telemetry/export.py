"""Spans of a finished run, from its folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from opentelemetry.trace import TracerProvider

from coag.tracing import RunFolder, RunInfo, TraceProblem, read_run, read_trace

from .span_values import Content, Subject, provider_of
from .spans import Teller


@dataclass(frozen=True, slots=True)
class Exported:
    """What was made of a run."""

    run: str
    """The run's id."""
    records: int
    """How many records of its trace were told of."""


def export_run(
    run: RunFolder | Path | str,
    *,
    tracer_provider: TracerProvider | None = None,
    record_content: bool = False,
    on_problem: Callable[[TraceProblem], None] | None = None,
) -> Exported:
    """Makes the spans of a run from its folder, with the times at which things happened.

    All of a run is one trace. Metrics are not made: they would carry the time of the export.
    A provider that sends in batches drops spans where its queue is full; `send_run` does not.

    Args:
        run: The run's folder.
        tracer_provider: Where spans go; None for the global one.
        record_content: Send what was said, prompts, arguments and results, too.
        on_problem: Is told of a truncated last line and of hashes that do not fit; None to have
            them raised.

    Raises:
        TraceError: There is no run, or its trace cannot be read; the spans before stay made.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder(Path(run))
    info = read_run(folder.path)
    teller = Teller(
        _subject(info),
        tracer_provider=tracer_provider,
        meters=None,
        content=Content() if record_content else None,
        surrounded=False,
    )
    records = 0
    try:
        for entry in read_trace(folder.trace_path, on_problem):
            teller.take(entry.body)
            records += 1
    finally:
        teller.close()
    return Exported(info.id, records)


def _subject(info: RunInfo) -> Subject:
    return Subject(
        agent=info.agent,
        run=info.id,
        provider=provider_of(model=info.model),
        kind=info.kind,
        parent=None if info.parent is None else info.parent.run,
    )
