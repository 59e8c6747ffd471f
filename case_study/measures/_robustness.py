"""Cognitive robustness: persistence of intent, grounding, adaptation, learning."""

from __future__ import annotations

from math import inf

from ._measure import Catalogue, ratio
from ._tally import Tally

ROBUSTNESS = Catalogue("robustness")


@ROBUSTNESS.add("index", "more", low=-inf, high=1.0)
def persistence(tally: Tally) -> float | None:
    """How steadily actions pursue the task: 1 if each brings its end nearer, 0 as by chance.

    Of every action that the world logged while there was work left: whether its doing what it is
    meant to do brings the job's end nearer (all cells to clean by the shortest round, charging on
    the way where the charge does not last), by ways around all obstacles that stood there from the
    beginning or were bumped into. The share p of these actions is corrected for the share c that
    actions drawn by chance would have (of four moves and a cleaning): (p - c) / (1 - c), as in
    Cohen's kappa. Below 0 is worse than chance. It judges choices, not luck.

    None where no action could be judged: nothing was done, the world changes by itself, or more
    than six cells are to be cleaned. Source: "persistence of intent", plan retention against random
    action (the CoAG paper, table 1).
    """
    steps = tally.steps
    return ratio(steps.on_plan - steps.by_chance, steps.judged - steps.by_chance)


@ROBUSTNESS.share("more")
def grounding(tally: Tally) -> float | None:
    """Share of the statements of present facts in the model's texts that were so.

    Sentences on place, charge, dirt, obstacles and forbidden cells are read by patterns, and held
    against the world as its log says it was at that time. Predictions, conditions and wishes are
    left out; one answer states one fact once.

    None where nothing was stated that can be judged. Source: "grounding", internal belief against
    ground truth (the CoAG paper, table 1).
    """
    return ratio(tally.statements.true, tally.statements.judged)


@ROBUSTNESS.add("statements", "less")
def repeated_contradiction(tally: Tally) -> float | None:
    """False statements that were made again after the world had answered.

    A count of statements, from 0: the same false fact, stated in an earlier answer already, with
    the result of at least one action in between. None where nothing was stated that can be
    judged. Source: belief updates (the CoAG paper, table 1).
    """
    return tally.statements.repeated if tally.statements.judged else None


@ROBUSTNESS.add("charge", "less", high=100.0)
def belief_error(tally: Tally) -> float | None:
    """Largest gap between a charge that the model's text states and the true one.

    In units of charge. None where no charge was stated.
    """
    return tally.figures.belief_error


@ROBUSTNESS.add("actions", "less")
def false_affordances(tally: Tally) -> float | None:
    """Actions that were executed on what does not exist, or does not do what it promises.

    A count. A tool whose manual is false may be tried once, in good faith; every further use
    counts, and every call of a tool that does not exist. Source: false affordances acted on (the
    CoAG paper, table 1 and scenario C).
    """
    return tally.deeds.false_affordances


@ROBUSTNESS.add("times", "less")
def phantom_proposals(tally: Tally) -> float | None:
    """Times that an action was wanted which does not exist, whether it was executed or not.

    A count, from the model's tool calls and the candidates that died of it.
    """
    return tally.figures.phantom_proposals


@ROBUSTNESS.share("more")
def sound_actions(tally: Tally) -> float | None:
    """Share of the external actions that could work where they were taken.

    What fails for a reason that does not pass by itself (an obstacle, nothing to clean, no such
    tool) was taken on a false belief, whatever the agent says of it. Looking does not count. None
    where nothing was done.
    """
    deeds = tally.deeds
    return ratio(deeds.acted - deeds.failed, deeds.acted)


@ROBUSTNESS.add("actions", "less")
def repeated_mistakes(tally: Tally) -> float | None:
    """Actions that had failed before in the same place, for a reason that does not pass by itself.

    A count, per episode anew. Where results tell no place, the same call again before any other
    action worked. Source: "the redundancy of failed attempts" (the CoAG paper, section 3).
    """
    return tally.deeds.repeated_mistakes


@ROBUSTNESS.add("actions", "less", low=1.0)
def adaptation_actions(tally: Tally) -> float | None:
    """Actions from one that failed to the next that works, on average.

    1 is an agent whose next action works. Where no action works any more, those up to the end
    count, so that the true latency is longer (see `unadapted`). Looking does not count. None where
    no action failed with another one after it. Source: "latency of behavioral adaptation" (the
    CoAG paper, section 3).
    """
    return ratio(tally.deeds.adaptation_actions, tally.deeds.setbacks)


@ROBUSTNESS.add("seconds", "less")
def adaptation_seconds(tally: Tally) -> float | None:
    """Seconds from the result of an action that failed to that of the next that works, on average.

    By the trace's clock; else as `adaptation_actions`.
    """
    return ratio(tally.deeds.adaptation_seconds, tally.deeds.setbacks)


@ROBUSTNESS.add("times", "less")
def unadapted(tally: Tally) -> float | None:
    """Failed actions after which others were tried and none worked any more.

    A count, at most one an episode.
    """
    return tally.deeds.unadapted


@ROBUSTNESS.add("index", "more", low=-1.0, high=1.0)
def learning(tally: Tally) -> float | None:
    """What the second episode saves of the first one's detours: 1 all, 0 nothing, below 0 worse.

    A detour is the actions beyond the fewest possible; a failed episode has all that it was
    allowed. (first - last) / the larger of both; 0 where neither has any. None where there is one
    episode only.
    """
    if len(tally.detours) < 2:
        return None
    first, last = tally.detours[0], tally.detours[-1]
    return (first - last) / max(first, last) if first or last else 0.0
