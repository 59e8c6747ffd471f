"""The result of a case, episode by episode, as it is stored and printed with `--json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import Field

from case_study.robot import remembered_obstacles
from coag.evals import Figures
from coag.schema import (
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Percept,
    RetrievalOutcome,
    TraceRecord,
    Value,
    html_card,
)
from vacuum_world.scenarios import ScenarioTruth
from vacuum_world.world import Cell, distance, last_state_line

from .tally import Tally, measures_of

_WRITING = "tool_update_"
_SHORT = 8
"""Characters of a record's id by which predictions name it."""


class Recollection(Value):
    """What a CoAG agent recalled in one episode, counted from its trace."""

    noted: int = 0
    """Times that it wrote to its long-term memory, or to a procedure."""
    recalled: int = 0
    """Cycles that recalled a record of an earlier episode."""
    beside: int = 0
    """Those in which such a record tells that a cell next to the robot is blocked: there it bears
    on what can be done next."""
    refused: int = 0
    """Candidates that were rejected for what such a record tells. Where the model heeds what is
    recalled, or is not offered what it rules out, nothing needs to be rejected."""


def recollection_of(records: Iterable[TraceRecord], run: str, start: Cell) -> Recollection:
    """What an agent had of earlier episodes.

    Args:
        records: The episode's trace, in order.
        run: The id of the episode's run: records that were made in others are of earlier episodes.
        start: The cell on which the robot began.
    """
    here, earlier = start, set[str]()
    counts: Counter[str] = Counter()
    for record in records:
        match record:
            case Percept():
                reading = last_state_line(record.content)
                here = here if reading is None else reading.position
            case RetrievalOutcome():
                old = [hit for hit in record.records if hit.record.provenance.run != run]
                earlier = {hit.record.id[:_SHORT] for hit in old}
                counts["recalled"] += bool(old)
                cells = remembered_obstacles(old)
                counts["beside"] += any(distance(here, cell) == 1 for cell in cells)
            case EvaluationOutcome():
                died = [each.rejected_by.reason for each in record.evaluations if each.rejected_by]
                counts["refused"] += sum(any(name in why for name in earlier) for why in died)
            case ExecutionOutcome():
                counts["noted"] += sum(
                    done.internal
                    and done.action.startswith(_WRITING)
                    and done.status is ExecutionStatus.DONE
                    for done in record.executed
                )
            case _:
                pass
    return Recollection(**counts)


class EpisodeRecord(Value):
    """What one finished episode came to; kept in the case's folder."""

    episode: int = Field(ge=1)
    run: str
    """Name of the run's folder within the case's folder."""
    max_actions: int
    """The bound that was in force."""
    truth: ScenarioTruth
    """What truly happened, by the world's own log."""
    figures: Figures
    """What the trace says."""
    tally: Tally | None = None
    """What is counted for the measures; None in cases that were played before there was any."""

    def succeeded(self, scenario: str) -> bool:
        """Whether it came to what its scenario is about: by the world, and by the trace."""
        phantom = scenario == "phantom-object" and self.figures.phantom_attempts > 0
        return self.truth.success and not phantom

    def found(self, scenario: str) -> dict[str, Any]:
        """What is noted in the run's `run.json`: what it came to, in words and in numbers."""
        return {
            "success": self.succeeded(scenario),
            "summary": self._summary(),
            "scenario": scenario,
            "episode": self.episode,
            "truth": self.truth.model_dump(mode="json"),
        }

    def _summary(self) -> str:
        truth = self.truth
        counted = [
            (truth.actions, "action", "actions"),
            (truth.bumps, "bump", "bumps"),
            (len(truth.remaining), "cell left dirty", "cells left dirty"),
            (truth.violations, "forbidden cleaning", "forbidden cleanings"),
            (self.figures.phantom_attempts, "phantom tool tried", "phantom tools tried"),
        ]
        parts = [f"{count} {one if count == 1 else many}" for count, one, many in counted if count]
        return ", ".join([*(["stranded"] if truth.stranded else []), *parts]) or "nothing done"


class CaseResult(Value):
    """One agent, one scenario, one seed."""

    scenario: str
    agent: str
    model: str
    """The model as it was named; scripted ones begin with `scripted:`."""
    seed: int
    success: bool
    run: str
    """The case's folder, in which every episode's run has its own."""
    measures: dict[str, Any]
    """See `docs/case-study.md`, and `docs/measures.md` for those of `MEASURES`."""

    def _repr_html_(self) -> str:
        facts = [(name, value) for name, value in self.measures.items() if value not in (None, {})]
        return html_card(
            f"{self.scenario}, {self.agent}: {'success' if self.success else 'no success'}",
            facts=[("model", self.model), ("seed", self.seed), ("case", self.run), *facts],
        )


def result_of(scenario: str, episodes: Sequence[EpisodeRecord], **named: Any) -> CaseResult:
    """The result of a case from its episodes.

    Args:
        scenario: The scenario's name.
        episodes: All episodes, in order.
        **named: The other fields of a `CaseResult`; `measures` are further ones.
    """
    figures = sum((each.figures for each in episodes), Figures())
    truths = [each.truth for each in episodes]
    further: dict[str, Any] = named.pop("measures", {})
    success = all(each.succeeded(scenario) for each in episodes)
    tallies = [each.tally for each in episodes if each.tally is not None]
    measures: dict[str, Any] = {
        **(measures_of(tallies) if len(tallies) == len(episodes) else {}),
        "actions": figures.actions,
        "model_calls": figures.model_calls,
        "questions": figures.questions,
        "unusable_answers": figures.unusable_answers,
        "prompt_tokens": figures.prompt_tokens,
        "completion_tokens": figures.completion_tokens,
        "cached_tokens": figures.cached_tokens,
        "seconds": figures.seconds,
        "decided_by": figures.decided_by(),
        "rejected_by": figures.rejections,
        "repeated_action_ids": sum(truth.repeated_action_ids for truth in truths),
        "episodes": len(episodes),
        **_special(scenario, truths, figures),
        **further,
    }
    return CaseResult(scenario=scenario, success=success, measures=measures, **named)


def _special(scenario: str, truths: Sequence[ScenarioTruth], figures: Figures) -> dict[str, Any]:
    """What only this scenario is about."""
    match scenario:
        case "sudden-wall":
            return {
                "repeated_bumps": sum(truth.repeated_bumps for truth in truths),
                "second_episode_bumps": truths[1].wall_bumps if len(truths) > 1 else None,
            }
        case "energy-dilemma":
            return {
                "stranded": any(truth.stranded for truth in truths),
                "critical_cleans": sum(truth.critical_cleans for truth in truths),
            }
        case "phantom-object":
            return {
                "phantom_proposals": figures.phantom_proposals,
                "phantom_attempts": figures.phantom_attempts,
                "belief_error": figures.belief_error,
            }
        case "evolution":
            return {"violations": sum(truth.violations for truth in truths)}
        case _:
            return {}
