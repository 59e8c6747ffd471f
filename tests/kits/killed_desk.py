"""Kills the refund desk at random instants and resumes it, as often as requested.

`python -m kits.killed_desk FOLDER NUMBER SEED [blind]` prints a line of JSON per desk. A blind one
cannot ask what became of a refund, and its database takes the same key twice. Each desk runs in a
fork of this process, which has imported everything, so that a kill costs no start of Python.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import refund_desk
from kits.killing import die, ended, fork

from coag import CoagAgent, tool
from coag.errors import CoagError
from coag.proof import examine
from coag.tracing import list_runs, read_run

LONGEST = 0.6
"""Seconds after which a desk is killed at the latest; a turn takes about half of it."""
PATIENCE = 60.0
"""Seconds that a desk may take that nobody kills, or that kills itself."""
_INSERT = "INSERT OR IGNORE INTO refunds"


def dying(when: str, *, blind: bool) -> type[sqlite3.Connection]:
    """A connection that ends the process right before or after a refund is in the database."""

    class Dying(sqlite3.Connection):
        def execute(self, sql: str, *given: Any) -> sqlite3.Cursor:
            if blind and sql.startswith(_INSERT):
                given = ((uuid.uuid4().hex, *given[0][1:]),)
            if when == "before" and sql.startswith(_INSERT):
                die()
            cursor = super().execute(sql, *given)
            if when == "after" and sql.startswith(_INSERT):
                die()
            return cursor

    return Dying


async def serve(folder: Path) -> None:
    """One turn of the desk, or what is left of it."""
    open_runs = [run for run in list_runs(folder / "logs") if read_run(run.path).ended_at is None]
    if open_runs and open_runs[0].trace_path.exists():
        desk = await CoagAgent.resume(open_runs[0].path)
    else:
        desk = refund_desk.build(str(folder))
    task = None if desk.in_turn else "Please give me back the money for order 17."
    result = await desk.run(task=task)
    (folder / "said.txt").write_text(result.messages[-1].to_text())
    await desk.close()


def blinded(*, reconcile: object = None, **given: Any) -> Any:
    """`coag.tool` without what finds out what became of a call."""
    return tool(**given)


def in_a_fork(folder: Path, when: str, seconds: float, *, blind: bool) -> bool:
    """Serves in a fork of this process; False if it was killed.

    Raises:
        AssertionError: It ended by an error of its own.
    """

    async def served() -> None:
        if blind:
            refund_desk.tool = blinded  # type: ignore[assignment]
        if blind or when in ("before", "after"):
            kind = dying(when, blind=blind)
            real = sqlite3.connect
            refund_desk.sqlite3.connect = lambda *a, **k: real(*a, **{**k, "factory": kind})  # type: ignore[attr-defined]
        await serve(folder)

    over = ended(fork(folder, served()), seconds)
    if (folder / "error.txt").exists():
        raise AssertionError((folder / "error.txt").read_text())
    return over


def killed(folder: Path, source: random.Random, *, blind: bool) -> dict[str, Any]:
    """One desk that is killed once or more, and then left alone."""
    (folder / "logs").mkdir(parents=True)
    kills = 0
    for _ in range(source.choice((1, 1, 2))):
        when = source.choice(("before", "after", "any", "any"))
        seconds = source.uniform(0, LONGEST) if when == "any" else PATIENCE
        kills += not in_a_fork(folder, when, seconds, blind=blind)
    done = in_a_fork(folder, "", PATIENCE, blind=blind)
    with closing(sqlite3.connect(folder / "shop.db")) as shop, shop:
        shop.executescript(refund_desk.TABLES)
        refunds = [amount for (amount,) in shop.execute("SELECT amount FROM refunds")]
    try:
        violations = [v.text for run in list_runs(folder / "logs") for v in examine(run).violations]
    except CoagError as error:
        violations = [str(error)]
    said = folder / "said.txt"
    return {
        "kills": kills,
        "done": done,
        "refunds": refunds,
        "violations": violations,
        "said": said.read_text() if said.exists() else "",
    }


def main(folder: str, number: int, seed: int, blind: str = "") -> None:
    """Kills as many desks as is asked; their memory is in RAM, since this is about the money."""
    refund_desk.CoagAgent = lambda *a, **k: CoagAgent(*a, **{**k, "memory": None})  # type: ignore[misc, assignment]
    source = random.Random(seed)
    for count in range(number):
        print(json.dumps(killed(Path(folder) / str(count), source, blind=bool(blind))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:5])
