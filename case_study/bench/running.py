"""Playing a benchmark: one line of JSON a case, and what is there already is not played again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from case_study.bench.protocol import Arm, Benchmark, Case, CaseResult
from coag.errors import CoagError, ConfigurationError, UnknownNameError
from coag.schema import one_line

RESULTS, SETTINGS = "results.jsonl", "bench.json"
BROKEN_IN_A_ROW = 8
"""Broken cases in a row after which a run stops: the fault is then not in the cases."""

Shown = Callable[[str, int, int], None]
"""Follows how far it is: what was played, how many are done, how many there are."""


def chosen(cases: Sequence[Case], limit: int | None) -> list[Case]:
    """At most so many cases of each suite and kind, spread evenly; all without a limit."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.suite, case.kind), []).append(case)
    if limit is None:
        return list(cases)
    kept = {
        group[at * len(group) // min(limit, len(group))].id
        for group in groups.values()
        for at in range(min(limit, len(group)))
    }
    return [case for case in cases if case.id in kept]


async def play(
    benchmark: Benchmark,
    arms: Sequence[Arm],
    policy: str,
    folder: Path,
    *,
    suites: Sequence[str] = (),
    limit: int | None = None,
    seeds: int = 1,
    on_progress: Shown = lambda what, done, total: None,
) -> list[CaseResult]:
    """Plays what the folder lacks, and gives the results that were asked for.

    Case by case, every arm plays before the next case, so that a run that was stopped has pairs.

    Args:
        benchmark: What is played.
        arms: Who plays.
        policy: A scripted policy of the benchmark, or the spec of a model.
        folder: Where results are kept; the same call continues a run that was stopped.
        suites: Which; all if none is named.
        limit: At most so many cases of each suite and kind.
        seeds: How often each case is played.
        on_progress: Is called after each case.

    Raises:
        UnknownNameError: There is no such suite.
        ConfigurationError: The folder holds results of other settings, or is damaged.
        CoagError: Case after case broke.
    """
    for suite in suites:
        if suite not in benchmark.suites:
            raise UnknownNameError("suite", suite, benchmark.suites)
    cases = chosen(benchmark.cases(suites or benchmark.suites), limit)
    path = _begun(folder, {"benchmark": benchmark.name, "policy": policy, **benchmark.settings})
    there: dict[tuple[str, str, int], CaseResult] = {
        _key(one): one for one in results_of(folder) if not one.broken
    }
    wanted: list[tuple[Case, Arm, int]] = [
        (case, arm, seed) for seed in range(seeds) for case in cases for arm in arms
    ]
    broken = 0
    for number, (case, arm, seed) in enumerate(wanted, start=1):
        key = (case.id, arm, seed)
        if key in there:
            continue
        result = await _played(benchmark, case, arm, policy, seed)
        with path.open("a", encoding="utf-8") as file:
            file.write(result.model_dump_json() + "\n")
        there[key] = result
        on_progress(f"{case.id} {arm}", number, len(wanted))
        broken = broken + 1 if result.broken else 0
        if broken == BROKEN_IN_A_ROW:
            raise CoagError(
                f"The last {broken} cases broke; the last one, {case.id}: {result.problem} Nothing "
                "is lost: repair what is broken, and run the same command again."
            )
    keys = {(case.id, arm, seed) for case, arm, seed in wanted}
    return [there[key] for key in there if key in keys]


async def _played(benchmark: Benchmark, case: Case, arm: Arm, policy: str, seed: int) -> CaseResult:
    try:
        return await benchmark.run(case, arm, policy, seed)
    except ConfigurationError:
        raise
    except CoagError as error:
        return case.result(arm, policy, seed, problem=one_line(str(error), 500), broken=True)


def results_of(folder: Path) -> list[CaseResult]:
    """The results in a folder, a later one in place of an earlier one of the same case.

    A last line without an end was cut off by a kill: that case is played again.

    Raises:
        ConfigurationError: A line is damaged.
    """
    return list({_key(one): one for one in _lines(folder / RESULTS)}.values())


def _lines(path: Path) -> Iterator[CaseResult]:
    if not path.is_file():
        return
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            yield CaseResult.model_validate_json(line)
        except ValidationError as error:
            raise ConfigurationError(
                f"{path}, line {number}, is no result of a case ({error.errors()[0]['msg']}): "
                "remove the line, its case is then played again."
            ) from error


def _key(result: CaseResult) -> tuple[str, str, int]:
    return (result.case, result.arm, result.seed)


def _begun(folder: Path, settings: Mapping[str, str]) -> Path:
    """The file of results, after making sure that it is of these settings."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / SETTINGS
    if path.is_file():
        there = json.loads(path.read_text(encoding="utf-8"))
        different = [
            name for name in {**there, **settings} if there.get(name) != settings.get(name)
        ]
        if different:
            named = "; ".join(
                f"{name} there {there.get(name)!r}, asked for {settings.get(name)!r}"
                for name in different
            )
            raise ConfigurationError(
                f"{str(folder)!r} holds results of other settings: {named}. Give another folder."
            )
    else:
        path.write_text(json.dumps(dict(settings), indent=2) + "\n", encoding="utf-8")
    results = folder / RESULTS
    results.touch()
    whole = results.read_bytes()
    if not whole.endswith(b"\n") and whole:
        results.write_bytes(whole[: whole.rfind(b"\n") + 1])
    return results


def of_arm(results: Iterable[CaseResult], arm: str) -> list[CaseResult]:
    """The results of one arm that are evidence."""
    return [one for one in results if one.arm == arm and not one.broken]
