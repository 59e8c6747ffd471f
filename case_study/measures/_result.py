"""The result of a case, as it is printed with `--json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from coag.schema import Value, html_card
from vacuum_world.scenarios import ScenarioTruth

from ._figures import Figures
from ._measures import measures_of
from ._tally import Tally


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
        told = [f"{count} {one if count == 1 else many}" for count, one, many in counted if count]
        return ", ".join([*(["stranded"] if truth.stranded else []), *told]) or "nothing done"


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
