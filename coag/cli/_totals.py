"""What a run cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from coag.schema import ExecutionOutcome, Intent, ModelCall, TokenUsage, TraceRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over the records of a run."""

    cycles: int = 0
    """How many cycles came to their end. Those of a plain run leave no record of it; there,
    count the cycles that records are of."""
    actions: int = 0
    """External actions begun."""
    model_calls: int = 0
    """Requests to models, failed ones included."""
    usage: TokenUsage = field(default_factory=TokenUsage)

    def with_record(self, record: TraceRecord) -> Totals:
        """The sums with one more record."""
        if isinstance(record, ModelCall):
            return replace(self, model_calls=self.model_calls + 1, usage=self.usage + record.usage)
        if isinstance(record, Intent):
            return replace(self, actions=self.actions + 1)
        if isinstance(record, ExecutionOutcome):
            return replace(self, cycles=self.cycles + 1)
        return self

    def sentence(self) -> str:
        """The sums of a whole run for a person."""
        return (
            f"{_count(self.cycles, 'cycle')}, {_count(self.actions, 'external action')}, "
            f"{_count(self.model_calls, 'model call')}, {self._tokens()}"
        )

    def shown(self) -> str:
        """The sums of a part of a run: what it does not hold is left out, as it says nothing."""
        told = [_count(self.cycles, "cycle")]
        told += [_count(self.actions, "external action")] if self.actions else []
        if self.model_calls:
            told += [_count(self.model_calls, "model call"), self._tokens()]
        return ", ".join(told)

    def _tokens(self) -> str:
        usage = self.usage
        return (
            f"{usage.prompt_tokens:,} prompt tokens ({usage.cached_tokens:,} cached), "
            f"{usage.completion_tokens:,} completion tokens"
        )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
