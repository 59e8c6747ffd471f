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
from collections.abc import Sequence
from pathlib import Path

from ._contenders import chosen, finders, keepers
from ._dialogues import read_dialogues
from ._dynamics_cost import measure_cost
from ._embedding import embedder_named
from ._finding import measure_finding
from ._lives import measure_lives
from ._outdated import measure_outdated
from ._scale import CONTENDERS, measure_scale
from ._sleeping import measure_sleep
from ._stream import measure_stream
from ._two_hops import measure_two_hops


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--only", nargs="*", default=[""], help="contenders with such a word")
    common.add_argument("--json", action="store_true", help="one JSON object")
    common.add_argument("--embedder", help="package.module:callable; wordllama unless given")
    locomo = commands.add_parser("locomo", parents=[common], help="recall of evidence")
    locomo.add_argument("--data", type=Path, required=True, help="a file in LoCoMo's format")
    locomo.add_argument("--conversation", nargs="*", help="only these, by their sample_id")
    scale = commands.add_parser("scale", parents=[common], help="speed and size")
    scale.add_argument("--records", type=int, default=10_000)
    scale.add_argument("--queries", type=int, default=200)
    scale.add_argument("--seed", type=int, default=0)
    stream = commands.add_parser("stream", parents=[common], help="a changing world")
    stream.add_argument("--facts", type=int, default=10_000)
    stream.add_argument("--questions", type=int, default=1_000)
    stream.add_argument("--seed", type=int, default=0)
    hops = commands.add_parser("two-hops", parents=[common], help="questions that need two facts")
    hops.add_argument("--persons", type=int, default=200)
    hops.add_argument("--questions", type=int, default=200)
    hops.add_argument("--seed", type=int, default=0)
    cost = commands.add_parser("dynamics", parents=[common], help="what dynamics cost")
    cost.add_argument("--records", type=int, default=10_000)
    cost.add_argument("--queries", type=int, default=200)
    cost.add_argument("--seed", type=int, default=0)
    cost.add_argument("--disk", action="store_true", help="in a Chroma folder, not in RAM")
    slept = commands.add_parser("sleep", parents=[common], help="rate and memory of a sleep")
    slept.add_argument("--records", type=int, default=100_000)
    slept.add_argument("--preset", default="companion")
    slept.add_argument("--seed", type=int, default=0)
    life = commands.add_parser("life", parents=[common], help="a simulated year of an agent")
    life.add_argument("--lives", type=int, default=20)
    life.add_argument("--days", type=int, default=365)
    life.add_argument("--first", type=int, default=0, help="the seed of the first life")
    life.add_argument("--processes", type=int, default=1)
    life.add_argument("--held-out", action="store_true", help="told in other words")
    commands.add_parser("outdated", parents=[common], help="which notes replace others")
    asked = parser.parse_args(words)
    numbers = ("records", "queries", "facts", "questions", "persons", "lives", "days", "processes")
    if any(getattr(asked, name, 1) < 1 for name in numbers):
        parser.error(f"{', '.join(numbers)} must be at least 1")
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
