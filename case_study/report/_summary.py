"""From the trials of an assessment to everything that a report tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from case_study.assess import NO_MODEL, Assessment, Trial
from case_study.assess.episodes import is_of_episode
from case_study.temperaments import is_scripted

from ._counts import causes_rows, cost_rows, reliability, success_rows
from ._curves import adaptation_curves, budget_curves
from ._findings import findings, proves, told_first
from ._learning import learning, recalled
from ._paired import compared_by_scenario, compared_overall, contributions, gap, reference_of
from ._sample import Pair, Sample, mean, samples_of
from ._values import AbstractPart, Facts, Gap, MeasureRow, Panel, Summary, TrialLine
from ._wording import counted, number

LISTED = 120
"""Failed trials that are listed, at most; the others are counted."""
_COUNTED_ELSEWHERE = frozenset(
    {
        *(
            "actions",
            "model_calls",
            "prompt_tokens",
            "completion_tokens",
            "cached_tokens",
            "cached_share",
        ),
        *(
            "later_cached_share",
            "tokens",
            "seconds",
            "share_model",
            "share_rank",
            "share_only_survivor",
        ),
    }
)
"""Measures that the table of costs tells, or the shares of who decided."""
_BEHAVIOUR = (
    *("persistence", "grounding", "repeated_contradiction", "false_affordances"),
    *("violations", "coverage", "energy", "learning"),
)
"""Measures that are compared with the reference's, pair by pair."""


def summary_of(assessment: Assessment) -> Summary:
    """Everything that a report of an assessment tells; pure, the same for the same trials."""
    samples = samples_of(assessment)
    panels = tuple(_panel(sample) for sample in samples)
    broken = [trial for trial in assessment.trials if not trial.counts]
    lines, left_out = _failures(samples)
    return Summary(
        facts=_facts(assessment),
        abstract=_abstract(assessment, panels, len(broken)),
        panels=panels,
        broken=tuple(_line(trial) for trial in broken),
        failures=lines,
        failures_left_out=left_out,
    )


def summary_schema() -> dict[str, Any]:
    """The JSON schema of a summary, in which every field says what it means."""
    return Summary.model_json_schema()


def _facts(assessment: Assessment) -> Facts:
    plan = assessment.plan
    return Facts(
        command=plan.command,
        started_at=plan.started_at.isoformat(timespec="minutes"),
        machine=plan.machine,
        versions=dict(sorted(plan.versions.items())),
        place=plan.place,
        episodes=plan.episodes,
        mixed=bool(plan.resumptions),
        token_budget=plan.token_budget,
        planned=sum(1 for _ in plan.jobs()),
        played=len(assessment.trials),
    )


def _panel(sample: Sample) -> Panel:
    reference = reference_of(sample)
    trials = sum(len(sample.of(name)) for name in sample.contenders)
    seeds = {pair[1] for played in sample.by_contender.values() for pair in played}
    panel = Panel(
        domain=sample.domain,
        model=sample.model,
        scripted=is_scripted(sample.model),
        proves=proves(sample.model, asked=sample.model != NO_MODEL),
        scenarios=sample.scenarios,
        contenders=sample.contenders,
        trials=trials,
        seeds=len(seeds),
        reference=reference,
        success=success_rows(sample),
        compared=compared_overall(sample, reference) if reference else (),
        compared_by_scenario=compared_by_scenario(sample, reference) if reference else (),
        contributions=contributions(sample),
        costs=cost_rows(sample),
        budgets=budget_curves(sample),
        reliability=reliability(sample),
        adaptation=adaptation_curves(sample),
        causes=causes_rows(sample),
        measures=tuple(_measures(sample, name, reference) for name in sample.contenders),
        learning=learning(sample),
        recalled=recalled(sample),
        findings=(),
    )
    return panel.model_copy(update={"findings": findings(panel)})


def _measures(sample: Sample, contender: str, reference: str | None) -> MeasureRow:
    trials = sample.of(contender)
    there = {name for trial in trials for name in trial.measures} - _COUNTED_ELSEWHERE
    names = sorted(name for name in there if not is_of_episode(name))
    told = {name: list(sample.values(contender, name).values()) for name in names}
    means = {name: mean(values) for name, values in told.items()}
    return MeasureRow(
        contender=contender,
        means={name: value for name, value in means.items() if value is not None},
        counts={name: len(values) for name, values in told.items() if values},
        gaps=_gaps(sample, contender, reference) if reference != contender else (),
        decided_by=sample.decided_by(contender),
    )


def _gaps(sample: Sample, contender: str, reference: str | None) -> tuple[Gap, ...]:
    if reference is None:
        return ()
    found = (gap(sample, measure, contender, reference) for measure in _BEHAVIOUR)
    return tuple(one for one in found if one.pairs)


def _abstract(
    assessment: Assessment, panels: Sequence[Panel], broken: int
) -> tuple[AbstractPart, ...]:
    """What is missing before all else; real models before scripted ones."""
    parts: list[AbstractPart] = []
    missing = _missing(assessment, broken)
    if missing:
        parts.append(AbstractPart(title="What is to be known first", sentences=missing))
    parts += [told_first(panel, brief=False) for panel in panels if not panel.scripted]
    scripted = [panel for panel in panels if panel.scripted]
    parts += [told_first(panel, brief=len(scripted) > 1) for panel in scripted]
    if scripted:
        sentences = (scripted[0].proves,)
        parts.append(AbstractPart(title="What scripted models prove", sentences=sentences))
    return tuple(parts)


def _missing(assessment: Assessment, broken: int) -> tuple[str, ...]:
    told: list[str] = []
    unplayed = sum(1 for _ in assessment.plan.jobs()) - len(assessment.trials)
    if unplayed:
        told.append(f"The sweep is not finished: {counted(unplayed, 'trial')} were not played.")
    if broken:
        told.append(
            f"{counted(broken, 'trial')} broke, by no fault of the contender, and count "
            "neither for nor against it; they are listed below."
        )
    if assessment.plan.resumptions:
        told.append(
            "The sweep was gone on with by other code or on another machine: its trials are mixed."
        )
    budget = assessment.plan.token_budget
    if budget is not None:
        told.append(
            f"Contenders had equal tokens: a trial ended with the turn in which it reached "
            f"{number(budget)}, so that a dear turn may exceed them."
        )
    return tuple(told)


def _failures(samples: Sequence[Sample]) -> tuple[tuple[TrialLine, ...], int]:
    """Failed trials, each once: first those that the reference won, then those of ours."""
    found: dict[tuple[str, ...], tuple[bool, Trial]] = {}
    for sample in samples:
        reference = reference_of(sample)
        won = sample.successes(reference) if reference else {}
        for trial in _failed(sample):
            pair: Pair = (trial.job.scenario, trial.job.seed)
            key = (trial.job.contender, trial.job.model, pair[0], str(pair[1]))
            found.setdefault(key, (won.get(pair, False), trial))
    ordered = sorted(found.values(), key=_first_to_see)
    lines = tuple(_line(trial, reference_won=lost) for lost, trial in ordered[:LISTED])
    return lines, max(0, len(ordered) - LISTED)


def _failed(sample: Sample) -> list[Trial]:
    return [one for name in sample.contenders for one in sample.of(name) if not one.success]


def _first_to_see(failure: tuple[bool, Trial]) -> tuple[bool, bool, bool]:
    lost, trial = failure
    ours = trial.job.contender.startswith("coag")
    return (not (lost and ours), not ours, trial.case is None)


def _line(trial: Trial, *, reference_won: bool = False) -> TrialLine:
    job = trial.job
    return TrialLine(
        scenario=job.scenario,
        contender=job.contender,
        model=job.model,
        seed=job.seed,
        problem=trial.problem,
        attempts=trial.attempts,
        causes=dict(sorted(trial.causes.items())),
        reference_won=reference_won,
        case=trial.case,
    )
