"""A made-up assessment: drawn from chances, played by nobody, and saying so in its command."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from coag.evals import NO_MODEL, Assessment, Job, Plan, Trial

SCENARIOS = (
    *("sudden-wall", "energy-dilemma", "phantom-object", "evolution", "sensor-dropout"),
    *("false-manual", "distraction", "poisoned-memory", "contradiction", "delayed-effect"),
    *("open-world-easy", "open-world-medium", "open-world-hard"),
)
WITHOUT_MODEL = ("random", "rules", "oracle")
CHANCES: Mapping[str, tuple[float, float]] = {
    "random": (0.08, 0),
    "rules": (0.66, 0),
    "oracle": (1.0, 0),
    "plain": (0.42, 9),
    "plain-iterations": (0.40, 8),
    "plain-memory": (0.45, 10),
    "plain-guarded": (0.78, 10),
    "coag-compact": (0.90, 14),
    "coag-full": (0.93, 55),
    "coag-compact-grounded": (0.91, 13),
    "coag-full-grounded": (0.94, 44),
    "coag-without-retrieval": (0.88, 52),
    "coag-without-reasoning": (0.93, 41),
    "coag-without-evaluation": (0.90, 38),
    "coag-without-constraints": (0.61, 56),
    "coag-without-rewriting": (0.93, 55),
}
"""By contender: the chance of a success, and about how many calls a trial takes."""
_HARD = {"distraction": -0.6, "phantom-object": 0.05, "open-world-hard": -0.2}
_CAUSES = (
    *("faulty evaluation", "wrong recalled fact", "misperception", "bad selection"),
    *("faulty reasoning", "changed environment", "model answer unusable"),
)


def made_up(
    folder: Path,
    *,
    seeds: int = 8,
    contenders: Sequence[str] = tuple(CHANCES),
    scenarios: Sequence[str] = SCENARIOS[:4],
    models: Sequence[str] = ("scripted:fallible",),
    broken: float = 0.01,
) -> Assessment:
    """An assessment of trials that were drawn, the same for the same arguments.

    Args:
        folder: Where it says that it lies; nothing is written.
        seeds: How many seeds.
        contenders: Names out of `CHANCES`.
        scenarios: Any names.
        models: Any names.
        broken: The share of trials that broke.
    """
    plan = Plan(
        contenders=tuple(contenders),
        scenarios=tuple(scenarios),
        models=tuple(models),
        seeds=tuple(range(seeds)),
        without_model=tuple(name for name in contenders if name in WITHOUT_MODEL),
        versions={"coag": "0.0.0", "python": "3.11", "sources": "made-up"},
        machine="made up: no machine played this",
        command="made-up sample: drawn by chance, played by nobody",
        started_at=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    )
    trials = tuple(drawn(job, broken) for job in plan.jobs())
    return Assessment(folder=folder, plan=plan, trials=trials)


def kept(assessment: Assessment) -> Path:
    """Writes an assessment to its folder, as a sweep leaves it."""
    folder = assessment.folder
    (folder / "trials").mkdir(parents=True)
    (folder / "assessment.json").write_text(assessment.plan.model_dump_json(indent=2))
    lines = "".join(f"{trial.model_dump_json()}\n" for trial in assessment.trials)
    (folder / "trials" / "all.jsonl").write_text(lines)
    return folder


def drawn(job: Job, broken: float = 0.0) -> Trial:
    """What came of a job, by its own dice."""
    dice = random.Random(repr(job))
    if dice.random() < broken:
        return Trial(job=job, outcome="broken", problem="the server closed the connection")
    chance, calls = CHANCES[job.contender]
    hard = _HARD.get(job.scenario, 0.0) if job.contender.startswith("coag") else 0.0
    # One draw an instance is shared, so that trials of a pair go together.
    shared = random.Random(f"{job.scenario} {job.seed}").random()
    won = 0.6 * shared + 0.4 * dice.random() < chance + hard
    actions = dice.randint(6, 15)
    return Trial(
        job=job,
        outcome="success" if won else "failure",
        problem="" if won else "the battery was empty",
        took=0.1,
        measures=_measures(dice, calls, actions, asks=job.model != NO_MODEL, won=won),
        causes={} if won or dice.random() < 0.2 else {dice.choice(_CAUSES): 1},
        decided_by=_decided_by(job.contender, actions),
        case=None if won else f"cases/{job.scenario}-{job.contender}-{job.seed}",
    )


def _measures(
    dice: random.Random, calls: float, actions: int, *, asks: bool, won: bool
) -> dict[str, float | None]:
    asked = round(calls * dice.uniform(0.7, 1.3)) if asks else 0
    prompt = asked * dice.randint(900, 1400)
    adapted = dice.random() < (0.9 if won else 0.3)
    return {
        "actions": actions,
        "model_calls": asked,
        "prompt_tokens": prompt,
        "completion_tokens": asked * 80,
        "tokens": prompt + asked * 80,
        "cached_tokens": round(prompt * dice.uniform(0.5, 0.8)) if asks else 0,
        "cached_share": 0.7 if asks else None,
        "seconds": asked * dice.uniform(0.5, 2.0),
        "persistence": dice.uniform(0.5, 1.0),
        "grounding": dice.uniform(0.6, 1.0) if asks else None,
        "violations": float(dice.randint(0, 1)),
        "coverage": dice.uniform(0.3, 1.0),
        "unadapted": float(not adapted),
        "adaptation_actions": float(dice.randint(0, 9)) if adapted else 9.0,
        "adaptation_seconds": dice.uniform(0.1, 20.0) if adapted else 9.0,
    }


def _decided_by(contender: str, actions: int) -> dict[str, int]:
    if contender in WITHOUT_MODEL:
        return {}
    if not contender.startswith("coag"):
        return {"model": actions}
    alone = actions // 3
    return {"model": actions - alone, "only_survivor": alone}
