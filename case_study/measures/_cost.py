"""What a case costs: actions, model calls, tokens, seconds; and what a success costs."""

from __future__ import annotations

from collections.abc import Iterable

from ._measure import Catalogue, ratio
from ._tally import Tally

COST = Catalogue("cost")


@COST.add("actions", "less")
def actions(tally: Tally) -> float | None:
    """External actions that reached Execution, futile ones and looking included."""
    return tally.figures.actions


@COST.add("calls", "less")
def model_calls(tally: Tally) -> float | None:
    """Requests to the model, failed ones included."""
    return tally.figures.model_calls


@COST.add("tokens", "less")
def prompt_tokens(tally: Tally) -> float | None:
    """Tokens that the model read; estimated where the server does not tell, as for scripts."""
    return tally.figures.prompt_tokens


@COST.add("tokens", "less")
def completion_tokens(tally: Tally) -> float | None:
    """Tokens that the model wrote; estimated where the server does not tell."""
    return tally.figures.completion_tokens


@COST.add("tokens", "less")
def tokens(tally: Tally) -> float | None:
    """Tokens that the model read and wrote, cached ones at full price."""
    return tally.figures.prompt_tokens + tally.figures.completion_tokens


@COST.add("tokens", "more")
def cached_tokens(tally: Tally) -> float | None:
    """Prompt tokens that the server took from its cache, where it tells."""
    return tally.figures.cached_tokens


@COST.share("more")
def cached_share(tally: Tally) -> float | None:
    """Share of the prompt tokens that came from the server's cache; None without any."""
    return ratio(tally.figures.cached_tokens, tally.figures.prompt_tokens)


@COST.share("more")
def later_cached_share(tally: Tally) -> float | None:
    """Share of the prompt tokens after a cycle's first call that came from the server's cache.

    None where no cycle (turn, for a plain agent) had a second call.
    """
    return ratio(tally.calls.later_cached_tokens, tally.calls.later_prompt_tokens)


@COST.add("seconds", "less")
def seconds(tally: Tally) -> float | None:
    """Seconds from a turn's start to its end, over all turns, by the trace's clock.

    The time between a run that was broken off and its going on is left out.
    """
    return tally.figures.seconds


@COST.add("seconds", "less")
def model_seconds(tally: Tally) -> float | None:
    """Seconds of these that the model took."""
    return tally.calls.seconds


@COST.add("tokens an action", "less")
def tokens_per_action(tally: Tally) -> float | None:
    """Tokens that the model read and wrote for each external action; None without an action."""
    figures = tally.figures
    return ratio(figures.prompt_tokens + figures.completion_tokens, figures.actions)


def cost_per_success(costs: Iterable[tuple[float, bool]]) -> float | None:
    """What a success costs: the cost of all trials, failed ones too, for each that succeeded.

    Args:
        costs: Of each trial its cost (tokens, seconds, calls) and whether it succeeded.

    Returns:
        The cost in the unit of the costs; None where nothing succeeded, so that no price buys a
        success.
    """
    total, successes = 0.0, 0
    for cost, success in costs:
        total += cost
        successes += success
    return total / successes if successes else None
