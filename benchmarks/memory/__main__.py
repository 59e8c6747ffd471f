"""How well and how fast memories find what is asked for, and whether they keep facts straight.

    python -m benchmarks.memory locomo --data FILE [--conversation NAME ...] [--only WORD ...]
    python -m benchmarks.memory scale [--records 10000] [--queries 200] [--only WORD ...]
    python -m benchmarks.memory stream [--facts 10000] [--seed 0] [--questions 1000] [--only WORD]
    python -m benchmarks.memory two-hops [--persons 200] [--questions 200] [--seed 0]
    python -m benchmarks.memory dynamics [--records 10000] [--queries 200] [--disk]
    python -m benchmarks.memory sleep [--records 100000] [--preset companion]
    python -m benchmarks.memory life [--lives 20] [--first 0] [--days 365] [--held-out]
    python -m benchmarks.memory outdated

`--json` prints one JSON object. `README.md` in the folder above says what is measured and how.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from ._contenders import chosen, finders, keepers
from ._dialogues import read_dialogues
from ._dynamics_cost import measure_cost
from ._finding import measure_finding
from ._life import measure_lives
from ._others import embedder_named
from ._outdated import measure_outdated
from ._scale import CONTENDERS, measure_scale
from ._sleeping import measure_sleep
from ._stream import measure_stream
from ._two_hops import measure_two_hops

_COMMANDS: Mapping[str, tuple[str, Mapping[str, int]]] = {
    "locomo": ("recall of evidence", {}),
    "scale": ("speed and size", {"records": 10_000, "queries": 200, "seed": 0}),
    "stream": ("a changing world", {"facts": 10_000, "questions": 1_000, "seed": 0}),
    "two-hops": ("questions that need two facts", {"persons": 200, "questions": 200, "seed": 0}),
    "dynamics": ("what dynamics cost", {"records": 10_000, "queries": 200, "seed": 0}),
    "sleep": ("rate and memory of a sleep", {"records": 100_000, "seed": 0}),
    "life": ("a simulated year", {"lives": 20, "days": 365, "first": 0, "processes": 1}),
    "outdated": ("which notes replace others", {}),
}
"""What each measures, and its numbers where they are not given."""


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--only", nargs="*", default=[""], help="contenders with such a word")
    common.add_argument("--json", action="store_true", help="one JSON object")
    common.add_argument("--embedder", help="package.module:callable; wordllama unless given")
    made = {
        name: commands.add_parser(name, parents=[common], help=text)
        for name, (text, _) in _COMMANDS.items()
    }
    for name, (_, numbers) in _COMMANDS.items():
        for option, usual in numbers.items():
            made[name].add_argument(f"--{option}", type=int, default=usual)
    made["locomo"].add_argument("--data", type=Path, required=True, help="in LoCoMo's format")
    made["locomo"].add_argument("--conversation", nargs="*", help="only these, by their sample_id")
    made["dynamics"].add_argument("--disk", action="store_true", help="in a Chroma folder")
    made["sleep"].add_argument("--preset", default="companion")
    made["life"].add_argument("--held-out", action="store_true", help="worded otherwise")
    asked = parser.parse_args(words)
    least = {**_COMMANDS[asked.command][1], "seed": 0, "first": 0}
    for option in (name for name, usual in least.items() if usual and getattr(asked, name) < 1):
        parser.error(f"--{option} must be at least 1, got {getattr(asked, option)}")
    return asked


def main() -> None:
    """Measures and prints."""
    asked = parse()
    embedder = embedder_named(asked.embedder)
    if asked.command == "locomo":
        dialogues = read_dialogues(asked.data)
        if asked.conversation:
            dialogues = [one for one in dialogues if one.name in asked.conversation]
        measure_finding(chosen(finders(embedder), asked.only), dialogues, asked.json)
    elif asked.command == "scale":
        names = [name for name in CONTENDERS if any(word in name for word in asked.only)]
        measure_scale(names, asked.records, asked.queries, asked.seed, asked.embedder, asked.json)
    elif asked.command == "two-hops":
        measure_two_hops(asked.persons, asked.questions, asked.seed, embedder, asked.json)
    elif asked.command == "dynamics":
        measure_cost(
            asked.records,
            asked.queries,
            asked.seed,
            asked.only,
            on_disk=asked.disk,
            as_json=asked.json,
        )
    elif asked.command == "sleep":
        measure_sleep(asked.records, asked.seed, asked.preset, as_json=asked.json)
    elif asked.command == "life":
        measure_lives(
            range(asked.first, asked.first + asked.lives),
            asked.days,
            asked.processes,
            asked.only,
            asked.json,
            held_out=asked.held_out,
        )
    elif asked.command == "outdated":
        measure_outdated(asked.json)
    else:
        measure_stream(
            chosen(keepers(embedder), asked.only),
            asked.facts,
            asked.seed,
            asked.questions,
            asked.json,
        )


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main()
