"""Lives side by side: what each memory did on average, and where two of them differ.

Differences are paired over lives, with a bootstrap interval; where it holds 0, no effect was shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from coag.evals import PairedComparison, compare, with_holm

from ._contenders import chosen, finders
from ._life import PLAIN, WHOLE, WITHOUT, Life, LifeContender, all_lives, our_lives
from ._metrics import mean
from ._printing import machine, print_absent, print_table
from ._year import Sort

_OTHERS = ("ChromaDBVectorMemory", "mem0 (infer=False)", "LangMem's store")
_RATES = ("hit", "stale", "planted", "junk")
_HITS = (
    f"hit, {Sort.FACT}s",
    f"hit, {Sort.READING}s",
    f"hit, {Sort.EVENT}s",
    "hit, up to 180 days old",
    "hit, older than 180 days",
)
_COMPARED = (*_RATES, "tokens", "notes", "disk MB")


def measure_lives(
    seeds: range,
    days: int,
    processes: int,
    only: Sequence[str],
    as_json: bool,
    *,
    held_out: bool = False,
) -> None:
    """Measures and prints."""
    wanted, absent = _contenders(only)
    lived = list(all_lives(wanted, seeds, days, processes, held_out=held_out))
    lives = len(seeds)
    names = [one.name for one in wanted]
    if as_json:
        context = {"machine": machine(), "lives": lives, "days": days, "absent": absent}
        print(json.dumps(context | {"results": [asdict(life) for life in lived]}, indent=2))
        return
    print(f"{lives} lives of {days} days; {machine()}\n")
    _print_means(lived, [one for one in names if WITHOUT not in one])
    for reference in (PLAIN, WHOLE):
        others = [
            one for one in names if one != reference and (WITHOUT in one) != (reference == PLAIN)
        ]
        if reference in names and others:
            _print_differences(lived, reference, others)
    print_absent(absent)


def _contenders(only: Sequence[str]) -> tuple[list[LifeContender], list[str]]:
    """Who lives, and who is not installed."""
    others = [one for one in finders() if one.name in _OTHERS]
    mine = [one for one in our_lives() if any(word in one.name for word in only)]
    taken = chosen(others, only)
    present = [LifeContender(name=one.name, other=one) for one in taken if one.make is not None]
    return [*mine, *present], [one.name for one in taken if one.make is None]


def _print_means(lived: Sequence[Life], names: Sequence[str]) -> None:
    heads = (
        "memory",
        *(f"{name} %" for name in _RATES),
        "tokens",
        "notes left",
        "disk MB",
        "s a life",
    )
    rows: list[tuple[str, ...]] = []
    for name in names:
        of = _measures(lived, name)
        numbers = [f"{of['tokens']:.0f}", f"{of['notes']:,.0f}", f"{of['disk MB']:.1f}"]
        rates = [_percent(of, one) for one in _RATES]
        rows.append((name, *rates, *numbers, f"{of['seconds']:.0f}"))
    print_table(heads, rows)
    print()
    hits = [(name, *(_percent(_measures(lived, name), one) for one in _HITS)) for name in names]
    print_table(("memory", *(f"{name} %" for name in _HITS)), hits)


def _percent(of: Mapping[str, float], name: str) -> str:
    return f"{100 * of[name]:.1f}" if name in of else "-"


def _measures(lived: Sequence[Life], name: str) -> dict[str, float]:
    """The means over the lives of one memory."""
    mine = [life.measures for life in lived if life.memory == name]
    measures = {measure: None for one in mine for measure in one}
    return {name: mean([one[name] for one in mine if name in one]) for name in measures}


def _print_differences(lived: Sequence[Life], reference: str, others: Sequence[str]) -> None:
    print(
        f"\nLess {reference}, paired over lives; 95 % intervals, `no effect` where they hold 0.\n"
    )
    found = with_holm(
        {
            (other, measure): compare(
                _by_life(lived, reference, measure), _by_life(lived, other, measure)
            )
            for other in others
            for measure in _COMPARED
        }
    )
    rows = [(other, *(_shown(found[other, one], one) for one in _COMPARED)) for other in others]
    heads = [f"{name}, points" if name in _RATES else name for name in _COMPARED]
    print_table(("memory", *heads), rows)


def _by_life(lived: Sequence[Life], name: str, measure: str) -> dict[int, float | None]:
    return {life.seed: life.measures.get(measure) for life in lived if life.memory == name}


def _shown(found: PairedComparison, measure: str) -> str:
    """A difference with its interval; rates in points."""
    if found.difference is None:
        return "-"
    scale = 100.0 if measure in _RATES else 1.0
    difference = f"{scale * found.difference:+.1f}"
    if found.interval is None:
        return f"{difference} (too few lives)"
    if found.interval.includes_zero:
        return f"no effect ({difference})"
    low, high = scale * found.interval.low, scale * found.interval.high
    return f"{difference} ({low:+.1f} to {high:+.1f})"
