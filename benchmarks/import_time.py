"""What `import coag` costs, next to `import autogen_agentchat.agents`.

The face of `coag` is lazy, so what a first use costs, `from coag import CoagAgent`, is shown as
well; it is not held against the target.

Each import runs in a fresh interpreter, all of them alternately, so that other work of the machine
affects all alike. `python benchmarks/import_time.py [RUNS]`; exit code 1 where the ratio of the
medians is above the target or something heavy was imported.
"""

import argparse
import json
import subprocess
import sys
from statistics import median

OURS, THEIRS = "import coag", "import autogen_agentchat.agents"
FIRST_USE = "from coag import CoagAgent"
TARGET = 1.1
HEAVY = ("chromadb", "wordllama")

_SCRIPT = """
import json, sys, time
start = time.perf_counter()
{statement}
seconds = time.perf_counter() - start
print(json.dumps([seconds, [name for name in {heavy!r} if name in sys.modules]]))
"""


def measure(statement: str) -> tuple[float, list[str]]:
    """Seconds that an import takes in a fresh interpreter, and which heavy packages it brought."""
    script = _SCRIPT.format(statement=statement, heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    seconds, heavy = json.loads(done.stdout)
    return float(seconds), list(heavy)


def main(runs: int) -> int:
    """Measures, prints a table, and returns the exit code."""
    times: dict[str, list[float]] = {THEIRS: [], OURS: [], FIRST_USE: []}
    brought: dict[str, set[str]] = {statement: set() for statement in times}
    for statement in times:
        measure(statement)  # compiles what is not compiled yet, and warms the file cache
    for _ in range(runs):
        for statement, measured in times.items():
            seconds, heavy = measure(statement)
            measured.append(seconds)
            brought[statement].update(heavy)
    theirs = median(times[THEIRS])
    print(
        f"{'statement':<34} {'median':>8} {'min':>8} {'max':>8} {'ratio':>7}  of {', '.join(HEAVY)}"
    )
    for statement, measured in times.items():
        middle = median(measured)
        print(
            f"{statement:<34} {middle:7.3f}s {min(measured):7.3f}s {max(measured):7.3f}s "
            f"{middle / theirs:7.3f}  {', '.join(sorted(brought[statement])) or 'none'}"
        )
    ratio = median(times[OURS]) / theirs
    print(f"{runs} runs each; `{OURS}` costs {ratio:.3f} of `{THEIRS}` (target: at most {TARGET}).")
    return 0 if ratio <= TARGET and not brought[OURS] else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How long the imports of coag and AutoGen take.")
    parser.add_argument("runs", type=int, nargs="?", default=15, help="of each (default: 15)")
    sys.exit(main(parser.parse_args().runs))
