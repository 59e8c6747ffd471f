"""The causes that a failure can have, one per part of the architecture."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from coag.schema import HtmlTable, Phase, html_card


class Cause(StrEnum):
    """The part of the architecture that a failure comes from."""

    MISPERCEPTION = "misperception"
    """A sensor or a tool's return told what was not so."""
    MISSED_RETRIEVAL = "missed retrieval"
    """Memory holds a record that fits, and it was not recalled."""
    WRONG_FACT = "wrong recalled fact"
    """What was recalled is not so."""
    FAULTY_REASONING = "faulty reasoning"
    """The situation as it was worked out contradicts what was perceived."""
    INVALID_PROPOSAL = "invalid proposal"
    """What was proposed cannot or must not be done."""
    FAULTY_EVALUATION = "faulty evaluation"
    """The scores contradict what the candidates are predicted to bring."""
    BAD_SELECTION = "bad selection"
    """A worse candidate was chosen than the scores say."""
    FAILED_EXECUTION = "failed execution"
    """A sound action did not work: a tool raised, gave no answer, or did nothing."""
    CHANGED_ENVIRONMENT = "changed environment"
    """The world changed, and the agent had no part in it."""
    UNUSABLE_ANSWER = "model answer unusable"
    """A model gave nothing that could be read, or none could be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One record that a diagnosis rests on."""

    seq: int
    """Number of the record, from 0."""
    cycle: int
    phase: Phase | None
    """The phase it belongs to; None for what was perceived, and in plain runs."""
    text: str
    """What it shows, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One failure and where it comes from."""

    cycle: int
    """The cycle in which it can first be seen; of a plain run the turn."""
    failure: str
    """What went wrong, as a sentence."""
    cause: Cause | None
    """The one part of the architecture that it comes from; None where the trace cannot tell."""
    reason: str
    """Why this is the cause, as a sentence."""
    evidence: tuple[Evidence, ...]
    """The records that show it, the earliest first; never empty."""
    fact: str = ""
    """The fact of which a wrong value was perceived in this very cycle; empty for none."""
    follows: int | None = None
    """An earlier cycle in whose misperception it may have its only ground; None for none."""

    def __str__(self) -> str:
        cause = self.cause or "not attributable"
        return f"cycle {self.cycle}: {cause}: {self.failure} {self.reason}"

    def _repr_html_(self) -> str:
        rows = [(one.seq, one.cycle, one.phase, one.text) for one in self.evidence]
        return html_card(
            f"Cycle {self.cycle}: {self.cause or 'not attributable'}",
            facts=[("failure", self.failure), ("why", self.reason)],
            table=HtmlTable(columns=("record", "cycle", "phase", "evidence"), rows=rows),
        )
