"""Mutates places of `coag`, one at a time, and counts how many the tests notice.

    make mutants [ARGUMENTS="--places 200 --seed 1 --processes 2"]

Each mutant is tried in a copy of the tree, with the tests of its room: `tests/coag/ROOM` and what
`ALSO` names. cosmic-ray makes the mutants. Annotations and docstrings are left alone.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast_from_path  # type: ignore[import-untyped]
from cosmic_ray.mutating import mutate_code  # type: ignore[import-untyped]
from cosmic_ray.plugins import get_operator, operator_names  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
UNWANTED = re.compile(r"BitOr|RemoveDecorator|VariableReplacer|VariableInserter")
ALSO = {
    "cycle": ["tests/coag/agent"],
    "context": ["tests/coag/agent"],
    "schema": ["tests/coag/tracing"],
}
"""Further tests of a room, tried where its own tests pass."""
LEFT_OUT = {".git", ".venv", "build", "logs", "__pycache__", ".hypothesis", ".pytest_cache"}


def places(tree: Path, count: int, seed: int) -> Iterator[tuple[Path, str, int, int]]:
    """Distinct places: file, operator, occurrence and line; files by their lines."""
    chance = random.Random(seed)
    files = [path for path in sorted((tree / "coag").rglob("*.py")) if path.name != "__init__.py"]
    weights = [len(path.read_text(encoding="utf-8").splitlines()) for path in files]
    operators = {
        name: found()
        for name in operator_names()
        if not UNWANTED.search(name) and not (found := get_operator(name)).arguments()
    }
    seen: set[tuple[Path, str, int]] = set()
    while len(seen) < count:
        (path,) = chance.choices(files, weights)
        nodes = list(ast_nodes(get_ast_from_path(path)))
        found = [
            (path.relative_to(tree), name, occurrence, start[0])
            for name, operator in operators.items()
            for occurrence, (start, _) in enumerate(
                position for node in nodes for position in operator.mutation_positions(node)
            )
        ]
        one = chance.choice(found) if found else None
        if one and one[:3] not in seen and is_other_code(path, one[1], one[2]):
            seen.add(one[:3])
            yield one


def is_other_code(path: Path, operator: str, occurrence: int) -> bool:
    """Whether the mutant is valid Python that means something else."""
    before = path.read_text(encoding="utf-8")
    after = mutate_code(before, get_operator(operator)(), occurrence)
    try:
        return after is not None and ast.dump(ast.parse(after)) != ast.dump(ast.parse(before))
    except SyntaxError:
        return False


def tests_of(tree: Path, path: Path) -> list[list[str]]:
    """The tests to try for a file, one run after the other."""
    room = path.parts[1].removesuffix(".py")
    own = f"tests/coag/{room}"
    first = [own] if (tree / own).exists() else ["tests/drop_in", "tests/coag/agent"]
    return [first, *([one] for one in ALSO.get(room, []) if (tree / one).exists())]


def noticed(copy: Path, python: str, runs: list[list[str]], seconds: float) -> bool:
    """True if a run of the tests fails or takes too long."""
    for tests in runs:
        command = [python, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider",
                   "-m", "not model and not long and not browser and not dist", *tests]  # fmt: skip
        try:
            done = subprocess.run(
                command, cwd=copy, capture_output=True, timeout=seconds, check=False,
                env={**os.environ, "PYTHONPATH": str(copy)},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return True
        if done.returncode:
            return True
    return False


def main() -> None:
    """Tries the mutants side by side and prints those that survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--places", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=300, help="of one run of tests")
    parser.add_argument("--tree", type=Path, default=ROOT, help="another checkout to mutate")
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"))
    arguments = parser.parse_args()
    tree = arguments.tree.resolve()
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(arguments.processes):
            copy = Path(folder) / f"tree-{number}"
            shutil.copytree(tree, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
            copies.put(copy)

        def attempt(place: tuple[Path, str, int, int]) -> dict[str, Any]:
            path, operator, occurrence, line = place
            copy = copies.get()
            target = copy / path
            before = target.read_text(encoding="utf-8")
            try:
                after = mutate_code(before, get_operator(operator)(), occurrence)
                target.write_text(after or before, encoding="utf-8")
                killed = noticed(copy, arguments.python, tests_of(tree, path), arguments.seconds)
            finally:
                target.write_text(before, encoding="utf-8")
                copies.put(copy)
            mutant = {"file": str(path), "line": line, "operator": operator, "killed": killed}
            sys.stdout.write(json.dumps(mutant) + "\n")
            sys.stdout.flush()
            return mutant

        with ThreadPoolExecutor(arguments.processes) as pool:
            tried = list(pool.map(attempt, places(tree, arguments.places, arguments.seed)))
    killed = sum(mutant["killed"] for mutant in tried)
    sys.stdout.write(f"{killed} of {len(tried)} mutants noticed\n")


if __name__ == "__main__":
    main()
