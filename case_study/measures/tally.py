"""Everything that is counted of an episode in the vacuum world, and the measures made from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from case_study.faults import VacuumDomain
from case_study.robot import remembered_obstacles
from case_study.temperaments import WORLD_ACTIONS
from coag._util.html_cards import html_card
from coag.evals import (
    TRACE_MEASURES,
    Counts,
    Figures,
    Measure,
    MeasureCatalogue,
    MeasureGroup,
    TraceEpisode,
    TraceTally,
    ratio,
)
from coag.evals import measures_table as table_of
from coag.evals import tally_of as trace_tally_of
from coag.proof import Circumstances
from coag.schema import (
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Percept,
    RetrievalOutcome,
    TraceRecord,
    Value,
)
from vacuum_world.scenarios import ScenarioSetup, ScenarioTruth, measure
from vacuum_world.world import STILL, Cell, WorldState, distance, last_state_line

from .statements import Statements, belief_error_of, statements_of
from .steps import Steps, steps_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode(TraceEpisode):
    """An episode in the vacuum world that is over: its trace, and the world's own log."""

    setup: ScenarioSetup
    """The instance that was played."""
    world: WorldState | None
    """The world afterwards; None where it is not known."""


class _UnsettledDomain(VacuumDomain):
    """A vacuum world that changes by itself, so that no way to the goal can be computed."""

    def remaining(self, now: Circumstances) -> float | None:
        """Unknown."""
        del now
        return None


def vacuum_episode(
    records: Iterable[TraceRecord],
    setup: ScenarioSetup,
    world: WorldState | None,
    *,
    success: bool,
    bound: int | None = None,
) -> Episode:
    """An episode in the vacuum world."""

    def position(text: str) -> object:
        reading = last_state_line(text)
        return None if reading is None else reading.position

    return Episode(
        records=tuple(records),
        success=success,
        tools=frozenset(WORLD_ACTIONS),
        looks=frozenset({"sense"}),
        gadgets=frozenset(gadget.name for gadget in setup.world.gadgets),
        shortest=setup.shortest,
        bound=bound or setup.max_actions,
        domain=VacuumDomain() if setup.world.dynamics == STILL else _UnsettledDomain(),
        where=position,
        setup=setup,
        world=world,
    )


class Truths(Counts):
    """What the world counted itself."""

    worlds: int = 0
    """Episodes whose world is known."""
    coverage: float = 0.0
    """Sum of the shares of the grid that were clean."""
    energy: int = 0
    cleans: int = 0
    remaining: int = 0
    bumps: int = 0
    violations: int = 0
    stranded: int = 0
    critical_cleans: int = 0
    needless_cleans: int = 0


class Tally(TraceTally):
    """What is counted of one episode, or of several of a case."""

    steps: Steps = Field(default_factory=Steps)
    """How actions served the job."""
    statements: Statements = Field(default_factory=Statements)
    """What was stated."""
    truths: Truths = Field(default_factory=Truths)
    """What the world counted."""


def tally_of(episode: Episode) -> Tally:
    """Everything that is counted of an episode: from its trace, and from the world's own log."""
    setup, world = episode.setup, episode.world
    error = belief_error_of(episode.records, world, setup.facts.battery) if world else None
    trace = trace_tally_of(episode, error)
    tally = Tally(**{name: getattr(trace, name) for name in TraceTally.model_fields})
    if world is None:
        return tally
    truth = measure(setup, world)
    counted = {name: getattr(truth, name) for name in Truths.model_fields if name != "worlds"}
    counted |= {"remaining": len(truth.remaining), "stranded": int(truth.stranded)}
    return tally.model_copy(
        update={
            "steps": steps_of(setup, world),
            "statements": statements_of(episode.records, setup, world),
            "truths": Truths(worlds=1, **counted),
        }
    )


# ---- measures ----

_CATALOGUE = MeasureCatalogue()
_measure = _CATALOGUE.add


@_measure("robustness", "index", "more", low=float("-inf"), high=1.0)
def persistence(tally: Tally) -> float | None:
    """How steadily actions pursue the task: 1 if each brings its end nearer, 0 as by chance.

    Of every action that the world logged while there was work left: whether its doing what it is
    meant to do brings the job's end nearer (all cells to clean by the shortest round, charging on
    the way where the charge does not last), by ways around all obstacles that were there from the
    beginning or were bumped into. The share p of these actions is corrected for the share c that
    actions drawn by chance would have (of four moves and a cleaning): (p - c) / (1 - c), as in
    Cohen's kappa. Below 0 is worse than chance. It judges choices, not luck.

    None where no action could be judged: nothing was done, the world changes by itself, or more
    than six cells are to be cleaned. Source: "persistence of intent", plan retention against random
    action (the CoAG paper, table 1).
    """
    steps = tally.steps
    return ratio(steps.on_plan - steps.by_chance, steps.judged - steps.by_chance)


@_measure("robustness", "share", "more")
def grounding(tally: Tally) -> float | None:
    """Share of the statements of present facts in the model's texts that were so.

    Sentences on place, charge, dirt, obstacles and forbidden cells are read by patterns, and held
    against the world as its log says it was at that time. Predictions, conditions and wishes are
    left out; one answer states one fact once.

    None where nothing was stated that can be judged. Source: "grounding", internal belief against
    ground truth (the CoAG paper, table 1).
    """
    return ratio(tally.statements.true, tally.statements.judged)


@_measure("robustness", "statements", "less")
def repeated_contradiction(tally: Tally) -> float | None:
    """False statements that were made again after the world had answered.

    A count of statements, from 0: the same false fact, stated in an earlier answer already, with
    the result of at least one action in between. None where nothing was stated that can be
    judged. Source: belief updates (the CoAG paper, table 1).
    """
    return tally.statements.repeated if tally.statements.judged else None


@_measure("robustness", "charge", "less", high=100.0)
def belief_error(tally: Tally) -> float | None:
    """Largest gap between a charge that the model's text states and the true one.

    In units of charge. None where no charge was stated.
    """
    return tally.figures.belief_error


@_measure("world", "share", "more")
def coverage(tally: Tally) -> float | None:
    """Share of the grid that was clean, on average over the time of an episode, and over episodes.

    As `ScenarioTruth.coverage`. None outside the vacuum world. Source: performance measure 1 of
    the CoAG paper's appendix B.
    """
    return ratio(tally.truths.coverage, tally.truths.worlds)


_COUNTED = {
    "energy": ("charge", "Charge that all actions took, failed ones included."),
    "cleans": ("cells", "Dirty cells that became clean."),
    "left_dirty": ("cells", "Cells of the task that were left dirty, forbidden ones too."),
    "bumps": ("moves", "Blocked moves."),
    "violations": ("cleanings", "Cleanings of forbidden cells."),
    "stranded": (
        "episodes",
        "Episodes in which the battery ran empty away from the charger.",
    ),
    "critical_cleans": ("cleanings", "Cleanings that cost the way to the charger."),
    "needless_cleans": ("cleanings", "Cleanings of what was clean or already being cleaned."),
}
"""What the world counted, by the measure's name, with unit and meaning."""


def _count(name: str, unit: str, meaning: str) -> None:
    source = name if name != "left_dirty" else "remaining"

    def count(tally: Tally) -> float | None:
        return getattr(tally.truths, source) if tally.truths.worlds else None

    paper = " Source: performance measure 2 of the CoAG paper's appendix B."
    count.__name__ = name
    count.__doc__ = f"{meaning}\n\nNone outside the vacuum world.{paper * (name == 'energy')}"
    _measure("world", unit, "more" if name == "cleans" else "less")(count)


for _name, (_unit, _meaning) in _COUNTED.items():
    _count(_name, _unit, _meaning)

_GROUPS: tuple[MeasureGroup, ...] = ("robustness", "engineering", "world", "decisions", "cost")
MEASURES: Mapping[str, Measure] = {
    measure.name: measure
    for group in _GROUPS
    for measures in (_CATALOGUE.measures, TRACE_MEASURES)
    for measure in measures.values()
    if measure.group == group
}
"""Every measure by name, in the order in which they are shown."""


def measures_of(tallies: Iterable[Tally]) -> dict[str, float | None]:
    """Every measure of a case from the tallies of its episodes; see `coag.evals.measures_of`."""
    total = sum(tallies, Tally())
    return {name: measure(total) for name, measure in MEASURES.items()}


def measures_table() -> str:
    """All measures as a Markdown table, for docs/measures.md."""
    return table_of(MEASURES)


# ---- The result of a case, episode by episode, as it is stored and printed with `--json` ----

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
    """The outcome of one finished episode; kept in the case's folder."""

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
        """Whether it reached the goal of its scenario: by the world, and by the trace."""
        phantom = scenario == "phantom-object" and self.figures.phantom_attempts > 0
        return self.truth.success and not phantom

    def found(self, scenario: str) -> dict[str, Any]:
        """The outcome for the run's `run.json`, in words and in numbers."""
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
