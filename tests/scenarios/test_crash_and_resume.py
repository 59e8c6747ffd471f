from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from coag.schema import PHASES, MemoryKind
from coag.store import open_store
from coag.tracing import read_trace
from vacuum_world.client import WorldControl

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent


@pytest.fixture
def served_world(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A world in a process of its own: its address, and the environment with its token."""
    environment = {
        **os.environ,
        "VACUUM_WORLD_CONTROL_TOKEN": secrets.token_urlsafe(24),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(TESTS)]),
    }
    command = [sys.executable, "-m", "vacuum_world", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        address = server.stdout.readline().removeprefix("serving ").strip()
        try:
            yield address, environment
        finally:
            server.terminate()


@pytest.fixture
def cases(served_world: tuple[str, dict[str, str]]) -> Iterator[subprocess.Popen[str]]:
    """The kit, which has a fork of it run each line."""
    with subprocess.Popen(
        [sys.executable, "-m", "kits.killed_case"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=served_world[1],
    ) as kit:
        yield kit
        kit.communicate()


def run_until_killed(cases: subprocess.Popen[str], *line: str | int) -> int:
    assert cases.stdin is not None
    assert cases.stdout is not None
    cases.stdin.write(json.dumps(line) + "\n")
    cases.stdin.flush()
    code = int(cases.stdout.readline())
    assert code in (0, -signal.SIGKILL)
    return code


def bodies(run: Path) -> list[dict[str, Any]]:
    return [
        entry.body.model_dump(mode="json")
        for entry in read_trace(run / "trace.jsonl", lambda problem: None)
    ]


def early_of(records: list[dict[str, Any]], up_to: int) -> list[dict[str, Any]]:
    """The records before the intent that comes after so many."""
    intents = [number for number, r in enumerate(records) if r["record"] == "intent"]
    return records[: intents[up_to]] if up_to < len(intents) else records


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("deadly", "up_to"),
    [
        ("even", 2),
        pytest.param("even", 99, marks=pytest.mark.long),
        pytest.param("odd", 99, marks=pytest.mark.long),
    ],
)
async def test_a_run_killed_at_every_intent_receipt_and_record_repeats_and_loses_nothing(
    served_world: tuple[str, dict[str, str]],
    cases: subprocess.Popen[str],
    tmp_path: Path,
    deadly: str,
    up_to: int,
) -> None:
    address, environment = served_world
    logs = tmp_path / "logs"
    first = ["sudden-wall", "--agent", "coag", "--model", "scripted:stubborn", "--seed", "4"]
    first += ["--episodes", "1", "--world", address, "--logs", str(logs), "--json"]

    kills, code = 0, run_until_killed(cases, deadly, up_to, "run", *first)
    (case,) = logs.iterdir()
    while code != 0 and kills < 60:
        kills += 1
        resumed = ["--resume", str(case), "--logs", str(logs), "--json"]
        code = run_until_killed(cases, deadly, up_to, "run", *resumed)

    assert code == 0
    (run,) = (path.parent for path in case.glob("*/trace.jsonl"))
    records = bodies(run)
    intents = [r["id"] for r in records if r["record"] == "intent"]
    receipts = [r["intent_id"] for r in records if r["record"] == "receipt"]
    written = [r["id"] for r in records if r["record"] == "written" and r["what"] == "record"]
    lost = set(intents) - set(receipts)
    early = early_of(records, up_to)
    answered = {r["intent_id"] for r in early if r["record"] == "receipt"}
    committed = {r["id"] for r in early if r["record"] == "written" and r["what"] == "record"}
    assert kills == len(lost) + len(answered) + len(committed)
    assert lost == set(intents[:up_to][1::2] if deadly == "even" else intents[:up_to][::2])
    assert len(set(intents)) == len(intents)

    async with WorldControl(address, environment["VACUUM_WORLD_CONTROL_TOKEN"]) as control:
        world = await control.world()
    assert not any(line.repeated for line in world.log)
    acting = [r["id"] for r in records if r["record"] == "intent" and r["action"] != "sense"]
    assert [line.action_id for line in world.log] == [i for i in acting if i in receipts]

    unknown = {r["caused_by"] for r in records if r.get("kind") == "unknown_outcome"}
    assert unknown == lost

    outcomes = [r for r in records if r["record"] == "outcome"]
    for _, cycle in groupby(outcomes, key=lambda outcome: outcome["cycle"]):
        assert [outcome["phase"] for outcome in cycle] == [phase.value for phase in PHASES]

    if not written:  # of every other move it is not known how it ended: nothing to remember
        assert deadly == "odd"
        return
    store = open_store(next(case.glob("**/long_term")))
    kept = await store.get(sorted(set(written)))
    assert [record.id for record in kept] == sorted(set(written))
    assert await store.count(MemoryKind.EPISODIC) >= 1
    await store.close()
    result = json.loads((case / "result.json").read_text())
    assert result["measures"]["repeated_action_ids"] == 0
