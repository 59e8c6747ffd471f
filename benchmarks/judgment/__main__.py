"""What judgment earns: the paper's experiments, routing, a cut of the context, procedures, speed.

    python -m benchmarks.judgment paper [--seeds 3] [--steps 1000] [--json]
    python -m benchmarks.judgment world [--seeds 40] [--first 0] [--tasks 300] [--json]
    python -m benchmarks.judgment scenarios [--seeds 10] [--first 0] [--rounds 5] [--json]
    python -m benchmarks.judgment compaction [--model URL#NAME] [--seeds 20] [-o FOLDER]
    python -m benchmarks.judgment procedures [--model URL#NAME] [--episodes 36] [-o FOLDER]
    python -m benchmarks.judgment speed [--repeats 200] [--json]

All but speed is the same for the same seeds. The exit code is 0 in any case.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import paper, speed, world

ARMS = ("summary", "judgment", "both")


_SEEDS = {"paper": 3, "world": 40, "scenarios": 10, "compaction": 20, "procedures": 0, "speed": 0}
"""How many seeds each kind takes if not given."""


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judgment", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    kinds = parser.add_subparsers(dest="kind", required=True)
    for name, seeds in _SEEDS.items():
        one = kinds.add_parser(name)
        if name not in ("compaction", "procedures"):
            one.add_argument("--json", action="store_true", help="one JSON object")
        if seeds:
            one.add_argument("--seeds", type=int, default=seeds, help="how many")
            one.add_argument("--first", type=int, default=0, help="the first of them")
    kinds.choices["paper"].add_argument("--steps", type=int, default=1000, help="of each walk")
    kinds.choices["world"].add_argument("--tasks", type=int, default=300, help="of each world")
    kinds.choices["scenarios"].add_argument(
        "--rounds", type=int, default=5, help="how often each scenario is met"
    )
    cut = kinds.choices["compaction"]
    cut.add_argument("--depth", choices=["compact", "full", "auto"], default="compact")
    cut.add_argument("--arms", default=",".join(ARMS), help="of summary, judgment, both")
    for name in ("compaction", "procedures"):
        one, where = kinds.choices[name], Path("logs", name)
        one.add_argument(
            "--model", metavar="URL#NAME", help="a real model (default: a scripted one)"
        )
        one.add_argument("-o", "--output", type=Path, default=where, help="where runs are kept")
    kinds.choices["procedures"].add_argument(
        "--episodes", type=int, default=36, help="of the search, at most; the check is not counted"
    )
    kinds.choices["speed"].add_argument("--repeats", type=int, default=200, help="of each call")
    options = parser.parse_args(arguments)
    for name in ("seeds", "steps", "tasks", "rounds", "repeats", "episodes"):
        if (given := getattr(options, name, 1)) < 1:
            parser.error(f"--{name} must be at least 1, got {given}")
    if unknown := set(getattr(options, "arms", "").split(",")) - {"", *ARMS}:
        parser.error(f"--arms takes {', '.join(ARMS)}, not {', '.join(sorted(unknown))}")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints."""
    options = parse(arguments)
    commands = {"paper": _paper, "world": _world, "scenarios": _scenarios, "speed": _speed}
    commands |= {"compaction": _compaction, "procedures": _procedures}
    commands[options.kind](options)


def _seeds(options: argparse.Namespace) -> range:
    return range(options.first, options.first + options.seeds)


def _paper(options: argparse.Namespace) -> None:
    by_seed = {seed: paper.experiments(seed, options.steps) for seed in _seeds(options)}
    if options.json:
        print(json.dumps(by_seed))
        return
    for rows in zip(*by_seed.values(), strict=True):
        name, what, theirs, _ = rows[0]
        print(f"{name}: {what}\n  the paper: {theirs}")
        for seed, row in zip(by_seed, rows, strict=True):
            print(f"  ours, seed {seed}: {row[3]}")


def _world(options: argparse.Namespace) -> None:
    seeds, found = _seeds(options), dict[str, Any]()
    for kind in world.WORLDS:
        found[kind] = world.compare(kind, seeds, options.tasks)
        if not options.json:
            print(f"\n{kind} ({len(seeds)} seeds, {options.tasks} tasks)")
            _print_routers(found[kind])
    found["off-policy"] = world.judged(seeds, options.tasks)
    if options.json:
        print(json.dumps(found))
        return
    print("\na policy judged by another one's choices (world: tasks)")
    for name, row in found["off-policy"].items():
        print(f"{name:14} " + ", ".join(f"{key} {value:.3f}" for key, value in row.items()))


def _print_routers(rows: Sequence[dict[str, Any]]) -> None:
    print(f"{'router':26} regret success  regret less than edges' / than edges + words'")
    for row in rows:
        parts = [f"{row['router']:26} {row['regret']:.3f}  {row['success']:.1%} "]
        for base in ("edges", "edges + words"):
            gap = row[f"against {base}"]
            parts.append(
                "-" if gap is None else "{:+.3f} [{:+.3f}, {:+.3f}]".format(*gap["regret"])
            )
        print("  ".join(parts))


def _scenarios(options: argparse.Namespace) -> None:
    from . import scenarios  # it needs the case study

    found = scenarios.compare(_seeds(options), options.rounds)
    if options.json:
        print(json.dumps(found))
        return
    for follower, rows in found.items():
        print(f"\n{follower} ({options.seeds} seeds, {10 * options.rounds} episodes each)")
        for row in rows:
            print(f"{row['router']:30} regret {row['regret']:.3f}  success {row['success']:.1%}")
            for what in (name for name in row if " against " in name):
                print("  {:32} {:+.3f} [{:+.3f}, {:+.3f}]".format(what, *row[what]))


def _compaction(options: argparse.Namespace) -> None:
    from . import compaction

    arms = options.arms.split(",")
    compaction.main(options.output, options.model, options.depth, _seeds(options), arms)


def _procedures(options: argparse.Namespace) -> None:
    from . import procedures  # it needs the extra gepa

    found = procedures.search(options.model, options.episodes, options.output)
    print(f"{found['model']}: {found['reason']}\n{found['episodes']} episodes, ", end="")
    print(f"{found['tokens']:,} tokens")
    for reason in found["refused"]:
        print(f"refused: {reason}")
    for name, text in found["texts"].items():
        print(f"\n{name}, as it was found:\n{text}")


def _speed(options: argparse.Namespace) -> None:
    rows = speed.measure(options.repeats)
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        print(f"{row['graph']} ({row['edges']:,} edges), milliseconds")
        for what, value in row.items():
            if isinstance(value, float):
                print(f"  {what:20} {value:.3f}")


if __name__ == "__main__":
    main()
