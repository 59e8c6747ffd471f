"""A backend in memory for spans and metrics, and an agent to make some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from coag import CoagAgent
from coag.models import ScriptedModel, ScriptedRequest

SECRET_CUP = "the golden cup of aunt Agatha"
"""The contents of these tests: no span has it unless contents are recorded."""


@dataclass(frozen=True)
class MemoryBackend:
    """OpenTelemetry's SDK with exporters in memory."""

    exporter: InMemorySpanExporter
    tracers: TracerProvider
    reader: InMemoryMetricReader
    meters: MeterProvider

    @property
    def spans(self) -> list[ReadableSpan]:
        """The ended spans in the order in which they began, outer ones first."""
        ended = self.exporter.get_finished_spans()
        by_id = {span.context.span_id: span for span in ended if span.context}

        def depth(span: ReadableSpan) -> int:
            parent = by_id.get(span.parent.span_id) if span.parent else None
            return 0 if parent is None else 1 + depth(parent)

        return sorted(ended, key=lambda span: (span.start_time or 0, depth(span)))

    def named(self, name: str) -> list[ReadableSpan]:
        """The spans of this name, in order."""
        return [span for span in self.spans if span.name == name]

    def tree(self) -> list[str]:
        """The names of all spans, each after its parent's."""
        names = {span.context.span_id: span.name for span in self.spans if span.context}
        return [
            f"{names.get(span.parent.span_id, '?')} > {span.name}" if span.parent else span.name
            for span in self.spans
        ]

    def everything(self) -> str:
        """All that was sent, as text."""
        return "\n".join(span.to_json() for span in self.spans)

    def points(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """Of each metric its points: attributes, and the value or, of a histogram, the count."""
        found: dict[str, list[tuple[dict[str, Any], float]]] = {}
        collected = self.reader.get_metrics_data()
        for resource in collected.resource_metrics if collected else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found[metric.name] = [
                        (dict(point.attributes or {}), _number(point))
                        for point in metric.data.data_points
                    ]
        return found


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryBackend]:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "false")
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider([reader], shutdown_on_exit=False)
    yield MemoryBackend(exporter, tracers, reader, meters)
    tracers.shutdown()
    meters.shutdown()


def _think(request: ScriptedRequest) -> Mapping[str, Any]:
    seen = "is here" in request.text
    wish = ("respond", {"text": f"Here: {SECRET_CUP}."}) if seen else ("fetch", {"thing": "cup"})
    candidates: list[dict[str, Any]] = [
        {"action": wish[0], "arguments": wish[1], "score": 0.9},
        {"action": f"steal {SECRET_CUP}", "arguments": {}, "score": 0.1},
    ]
    return {"situation": f"Wanted: {SECRET_CUP}.", "candidates": candidates}


async def fetch(thing: str) -> str:
    """Fetches a thing."""
    return f"The {thing} is here: {SECRET_CUP}."


def _number(point: Any) -> float:
    """What a counter counted, or how often a histogram was recorded."""
    return getattr(point, "value", None) or point.count


MakeButler = Callable[..., CoagAgent]


@pytest.fixture
def make_butler() -> MakeButler:
    """Makes an agent that fetches a cup in one cycle and answers in the next."""

    def make(logs: Path | None = None, think: Any = _think, **options: Any) -> CoagAgent:
        options = {"tools": [fetch], "depth": "compact", "proposal": "json", **options}
        return CoagAgent("butler", ScriptedModel(think), logs=logs, **options)

    return make
