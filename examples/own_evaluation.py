"""Two agents, the same tasks, ten seeds: which one keeps to the limit? Its model is scripted."""

import random
from functools import partial
from pathlib import Path

from coag import Candidate, CoagAgent, ScriptedModel, Verdict
from coag.evals import AgentTasks, Contender, Task, TaskRun, run_evaluation, write_report


def generous(request: object) -> dict[str, object]:
    """Offers all that is asked for, and the limit in second place."""
    offers = [{"action": "respond", "arguments": {"text": text}} for text in ("all", "50")]
    return {"situation": "They want money back.", "candidates": offers}


def within_limit(candidate: Candidate, state: object, projection: object) -> Verdict:
    """No answer may promise more than the limit."""
    return Verdict.forbid("too much") if "all" in str(candidate.arguments) else Verdict.allow()


def build(folder: Path, model: str, seed: int, *, guarded: bool = False) -> CoagAgent:
    """An agent whose trace goes into the trial's folder, from which it is measured."""
    return CoagAgent(
        "desk",
        ScriptedModel(generous),
        constraints=[within_limit] if guarded else [],
        logs=folder,
        depth="compact",
        proposal="json",
    )


def asks(seed: int) -> str:
    """The customer's message; the amount differs from seed to seed."""
    return f"Refund me {random.Random(seed).randint(60, 90)} euros."


def keeps_limit(attempt: TaskRun) -> bool | str:
    """Whether the answer is the limit; a text says what went wrong."""
    return attempt.answer == "50" or f"promised {attempt.answer!r}"


if __name__ == "__main__":
    agents = [Contender("plain", build), Contender("guarded", partial(build, guarded=True))]
    desk = AgentTasks([Task("refund", asks, keeps_limit)], agents)
    found = run_evaluation(desk, Path("logs/refunds"), seeds=10)
    print({trial.job.contender: trial.outcome for trial in found.trials})
    print(write_report(found.folder).page)
