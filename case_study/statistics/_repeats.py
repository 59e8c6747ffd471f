"""What an agent is worth that is asked several times: its best, and its worst."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb


def pass_at_k(successes: int, n: int, k: int) -> float:
    """Probability that at least one of k trials succeeds: what an agent can do.

    Estimated without bias from n trials, of which k are drawn without putting back.

    Raises:
        ValueError: It is not 0 <= successes <= n and 1 <= k <= n.

    Source: M. Chen et al., Evaluating Large Language Models Trained on Code (2021).
    """
    _check(successes, n, k)
    return 1 - comb(n - successes, k) / comb(n, k)


def worst_of_k(successes: int, n: int, k: int) -> float:
    """Probability that all of k trials succeed: what can be relied on.

    Estimated without bias from n trials, of which k are drawn without putting back.

    Raises:
        ValueError: It is not 0 <= successes <= n and 1 <= k <= n.

    Source: pass^k of S. Yao et al., tau-bench (2024).
    """
    _check(successes, n, k)
    return comb(successes, k) / comb(n, k)


def expected_worst(values: Sequence[float], k: int, *, more_is_better: bool = True) -> float:
    """The mean of the worst of k values that are drawn without putting back.

    Raises:
        ValueError: It is not 1 <= k <= the number of values.
    """
    n = len(values)
    _check(0, n, k)
    worst_first = sorted(values, reverse=not more_is_better)
    weights = [comb(n - 1 - place, k - 1) for place in range(n)]
    return sum(w * v for w, v in zip(weights, worst_first, strict=True)) / comb(n, k)


def _check(successes: int, n: int, k: int) -> None:
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be from 0 to n, got {successes!r} of n = {n!r}")
    if not 1 <= k <= n:
        raise ValueError(f"k must be from 1 to n = {n!r}, got {k!r}")
