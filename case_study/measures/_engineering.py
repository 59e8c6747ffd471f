"""What engineers see: whether failures can be traced to a cause, and who decided."""

from __future__ import annotations

from ._measure import Catalogue, ratio
from ._tally import Tally

ENGINEERING = Catalogue("engineering")
DECISIONS = Catalogue("decisions")


@ENGINEERING.add("failures", "less")
def failures(tally: Tally) -> float | None:
    """Failures that a diagnosis of the traces finds, and failed runs in which it finds none.

    A count. A failure need not cost success: a failed action is one.
    """
    return tally.blame.failures


@ENGINEERING.share("more")
def failures_attributed(tally: Tally) -> float | None:
    """Share of the failures that the trace attributes to exactly one architectural cause.

    By `coag.proof.diagnose`, which is right about the cause in the cases that docs/diagnosis.md
    measures; a failed run without any failure found counts as not attributed. A plain agent's
    trace is diagnosed in the same way. None where nothing failed. Source: "inspection of failure",
    whether errors can be uniquely mapped to architectural causes (the CoAG paper, table 1).
    """
    return ratio(tally.blame.attributed, tally.blame.failures)


@ENGINEERING.add("questions", "less")
def unusable_answers(tally: Tally) -> float | None:
    """Questions whose answer stayed unusable, so that a phase fell back.

    A count; 0 for a plain agent, who is not asked for a form.
    """
    return tally.figures.unusable_answers


def _decided(tally: Tally, who: str) -> float | None:
    decisions = tally.figures.decisions
    return ratio(decisions.get(who, 0), sum(decisions.values()))


@DECISIONS.share("neither")
def share_model(tally: Tally) -> float | None:
    """Share of the decisions that the model made; None where nothing was decided."""
    return _decided(tally, "model")


@DECISIONS.share("neither")
def share_rank(tally: Tally) -> float | None:
    """Share of the decisions that the ranking by score made; None where nothing was decided."""
    return _decided(tally, "rank")


@DECISIONS.share("neither")
def share_only_survivor(tally: Tally) -> float | None:
    """Share of the decisions where one candidate was left and nobody had to choose.

    None where nothing was decided.
    """
    return _decided(tally, "only_survivor")


@DECISIONS.add("candidates", "neither")
def rejections(tally: Tally) -> float | None:
    """Candidates that a check or a constraint rejected; a count, 0 for a plain agent."""
    return sum(tally.figures.rejections.values())
