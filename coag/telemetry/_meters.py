"""The metrics: how long things take, tokens, how often constraints and impasses stop an agent."""

from __future__ import annotations

from opentelemetry.metrics import MeterProvider, get_meter_provider

from coag.schema import ModelCall

from . import _names as names
from ._values import Attributes, count

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4**power for power in range(14))
"""Bounds of the histograms' buckets, as OpenTelemetry's conventions advise."""

_DURATIONS = {
    names.OPERATION_DURATION: "Time that a call of a model took.",
    names.TURN_DURATION: "Time that a turn took, from the message to the answer.",
    names.CYCLE_DURATION: "Time that the six phases of a cycle took.",
    names.PHASE_DURATION: "Time that a phase took.",
    names.ACTION_DURATION: "Time that an external action took.",
}
_COUNTERS = {
    names.VETOES: ("{candidate}", "Candidates that a constraint or a check rejected."),
    names.IMPASSES: ("{cycle}", "Cycles in which no candidate survived."),
    names.NOTES: ("{note}", "Repairs, fallbacks, modules left out, and other remarks."),
    names.TOKENS_CACHED: ("{token}", "Input tokens that a server took from its cache."),
}


class Meters:
    """The instruments that a run is measured with.

    Args:
        provider: Where they are registered; None for the global one.
        version: Version of this package.
    """

    def __init__(self, provider: MeterProvider | None, version: str) -> None:
        meter = (provider or get_meter_provider()).get_meter("coag", version)
        self._durations = {
            name: meter.create_histogram(
                name, unit="s", description=text, explicit_bucket_boundaries_advisory=_SECONDS
            )
            for name, text in _DURATIONS.items()
        }
        self._counters = {
            name: meter.create_counter(name, unit=unit, description=text)
            for name, (unit, text) in _COUNTERS.items()
        }
        self._tokens = meter.create_histogram(
            names.TOKEN_USAGE,
            unit="{token}",
            description="Tokens that calls of models used, by their type.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )

    def took(self, what: str, nanoseconds: int, attributes: Attributes) -> None:
        """Measures how long something took; `what` is the metric's name."""
        self._durations[what].record(max(nanoseconds, 0) / 1e9, attributes)

    def add(self, what: str, attributes: Attributes, amount: int = 1) -> None:
        """Counts something; `what` is the metric's name."""
        self._counters[what].add(amount, attributes)

    def used(self, call: ModelCall, attributes: Attributes) -> None:
        """Measures the tokens of a call, unless they were only estimated."""
        if call.usage_estimated:
            return
        usage = call.usage
        for kind, tokens in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
            if tokens > 0:
                self._tokens.record(count(tokens), {**attributes, names.TOKEN_TYPE: kind})
        if usage.cached_tokens > 0:
            self.add(names.TOKENS_CACHED, attributes, count(usage.cached_tokens))
