"""Results of a run: rates with intervals, and arms compared case by case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from case_study.bench.protocol import Benchmark
from case_study.pages import markdown_table
from coag.evals import PairedComparison, Trial, compare, wilson, with_holm, worst_of_k


def of_arm(results: Iterable[Trial], arm: str) -> list[Trial]:
    """The results of one arm that are evidence."""
    return [one for one in results if one.job.contender == arm and one.counts]


def figures(results: Sequence[Trial], metrics: Mapping[str, str]) -> dict[str, Any]:
    """The mean of each metric over the cases that measure it, with counts and costs."""
    found: dict[str, Any] = {}
    for name in metrics:
        values = _values(results, name)
        found[name] = round(fmean(values), 4) if values else None
    return {
        **found,
        "cases": len(results),
        "calls": int(sum(_values(results, "calls"))),
        "tokens": int(sum(_values(results, "tokens"))),
        "seconds": round(sum(_values(results, "seconds")), 1),
        "unfinished": sum(bool(one.problem) for one in results),
    }


def comparisons(
    results: Sequence[Trial], arms: Sequence[str], metrics: Mapping[str, str]
) -> dict[tuple[str, str], PairedComparison]:
    """Every arm but the first with the first, case by case; p-values adjusted for all of them."""
    table: dict[tuple[str, str], PairedComparison] = {}
    for name in metrics:
        reference = _by_case(of_arm(results, arms[0]), name)
        for arm in arms[1:]:
            if reference:
                table[arm, name] = compare(reference, _by_case(of_arm(results, arm), name))
    return with_holm(table)


def _values(results: Iterable[Trial], name: str) -> list[float]:
    """What was measured, in the order of the results."""
    return [value for one in results if (value := one.measures.get(name)) is not None]


def _by_case(results: Sequence[Trial], name: str) -> dict[tuple[str, int], bool | float]:
    values = {
        (one.job.scenario, one.job.seed): value
        for one in results
        if (value := one.measures.get(name)) is not None
    }
    rates = all(value in (0, 1) for value in values.values())
    return {key: bool(value) if rates else value for key, value in values.items()}


def _part(trial: Trial, what: str) -> str:
    """The trial's `suite` or `kind`; empty where it has none."""
    marks = (one.partition(": ") for one in trial.measures)
    return next((name for begin, _, name in marks if begin == what and name), "")


def reliability(results: Sequence[Trial], name: str) -> dict[int, float]:
    """pass^k of a metric by k: the share of cases that succeed in all of k trials.

    Estimated without bias from the trials of each case, as tau-bench does. Empty where a case was
    played once only. All cases have to have the same number of trials to be counted for the
    highest k; those with fewer count for the lower ones.
    """
    trials: dict[str, list[bool]] = {}
    for one in results:
        if (value := one.measures.get(name)) is not None:
            trials.setdefault(one.job.scenario, []).append(value == 1)
    most = max(map(len, trials.values()), default=0)
    if most < 2:
        return {}
    return {
        k: fmean(worst_of_k(sum(one), len(one), k) for one in trials.values() if len(one) >= k)
        for k in range(1, most + 1)
    }


def as_json(
    benchmark: Benchmark, policy: str, results: Sequence[Trial], arms: Sequence[str]
) -> dict[str, Any]:
    """The result for programs; with one arm, its figures stand at the top."""
    head: dict[str, Any] = {"benchmark": benchmark.name, "policy": policy, **benchmark.settings}
    rows = [
        {
            "agent": arm,
            **figures(of_arm(results, arm), benchmark.metrics),
            "pass^k": {
                name: {str(k): round(value, 4) for k, value in found.items()}
                for name in benchmark.metrics
                if (found := reliability(of_arm(results, arm), name))
            },
            **{
                f"{part}s": {
                    name: figures(
                        [one for one in of_arm(results, arm) if _part(one, part) == name],
                        benchmark.metrics,
                    )
                    for name in dict.fromkeys(_part(one, part) for one in results)
                    if name
                }
                for part in ("suite", "kind")
            },
        }
        for arm in arms
    ]
    head["broken"] = sum(not one.counts for one in results)
    if len(arms) == 1:
        return {**head, **rows[0]}
    compared = comparisons(results, arms, benchmark.metrics)
    return {
        **head,
        "agents": rows,
        "comparisons": [
            {"agent": arm, "with": arms[0], "metric": name, **one.model_dump(mode="json")}
            for (arm, name), one in compared.items()
        ],
    }


def as_markdown(benchmark: Benchmark, results: Sequence[Trial], arms: Sequence[str]) -> str:
    """The tables of a run: suites and arms, then each arm compared with the first."""
    names = list(benchmark.metrics)
    rows: list[list[str]] = []
    for title, group in _groups(results).items():
        for arm in arms:
            own = of_arm(group, arm)
            cells = [_rate(_values(own, name)) for name in names]
            rows.append([title, arm, str(len(own)), *cells, str(int(sum(_values(own, "calls"))))])
    text = markdown_table(
        ["cases of", "agent", "cases", *(_words(name) for name in names), "calls"],
        rows,
        "llr" + "r" * (len(names) + 1),
    )
    text += _all_of_k(results, arms, names[0])
    compared = comparisons(results, arms, benchmark.metrics)
    if compared:
        lines = [
            [f"{arm} - {arms[0]}", _words(name), str(one.pairs), _difference(one), _p(one)]
            for (arm, name), one in compared.items()
        ]
        head = ["compared", "metric", "pairs", "difference (95 %)", "p (Holm)"]
        text += "\n\n" + markdown_table(head, lines, "llrrr")
    broken = sum(not one.counts for one in results)
    return text + (f"\n\nBroken and not counted: {broken}.\n" if broken else "\n")


def _all_of_k(results: Sequence[Trial], arms: Sequence[str], name: str) -> str:
    """A table of pass^k of a metric, where cases were played more than once."""
    found = {arm: reliability(of_arm(results, arm), name) for arm in arms}
    most = max(map(len, found.values()), default=0)
    if most < 2:
        return ""
    rows = [
        [arm, *(f"{values[k]:.3f}" if k in values else "-" for k in range(1, most + 1))]
        for arm, values in found.items()
    ]
    head = [f"{_words(name)}: agent", *(f"pass^{k}" for k in range(1, most + 1))]
    return "\n\n" + markdown_table(head, rows, "l" + "r" * most)


def _groups(results: Sequence[Trial]) -> dict[str, list[Trial]]:
    """The results by suite, by kind and all; what is the same as a larger group is left out."""
    groups: dict[str, list[Trial]] = {}
    for one in results:
        groups.setdefault(_part(one, "suite"), []).append(one)
    for one in results:
        if kind := _part(one, "kind"):
            groups.setdefault(f"kind: {kind}", []).append(one)
    parts = {title: group for title, group in groups.items() if len(group) < len(results)}
    return {**parts, "all": list(results)} if parts else groups


def _rate(values: Sequence[float]) -> str:
    """The mean; of yes and no, with its interval."""
    if not values:
        return "-"
    mean = fmean(values)
    if any(value not in (0, 1) for value in values):
        return f"{mean:.3f}"
    interval = wilson(round(sum(values)), len(values))
    return f"{mean:.3f} ({interval.low:.2f} to {interval.high:.2f})"


def _difference(one: PairedComparison) -> str:
    if one.difference is None:
        return "-"
    between = f" ({one.interval.low:+.3f} to {one.interval.high:+.3f})" if one.interval else ""
    return f"{one.difference:+.3f}{between}"


def _p(one: PairedComparison) -> str:
    if one.adjusted_p is None:
        return "-"
    return "< 0.001" if one.adjusted_p < 0.001 else f"{one.adjusted_p:.3f}"


def _words(name: str) -> str:
    return name.replace("_", " ")
