"""`coag verify`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.shops import open_shop
from kits.tampering import bodies_of, edit, forge, honest_run

from coag.compat import Recorder
from coag.proof import examine
from coag.tracing import Recipe

Say = Callable[..., Any]
BROKEN = pytest.mark.broken_trace("it lies in the trace")


async def test_a_sound_run_is_verified_and_its_head_is_printed(say: Say, tmp_path: Path) -> None:
    run = await honest_run(tmp_path / "logs")
    head = examine(run).head
    result = say("verify", "latest")
    assert result.code == 0
    assert result.out == f"{run.name}: verified, {len(bodies_of(run))} records, head {head}\n"
    assert say("verify", "--head", head).code == 0
    result = say("verify", run.name, "--head", "0" * 64)
    assert result.code == 1
    assert "was to end with the hash" in result.out


@BROKEN
async def test_each_violation_is_a_sentence_and_the_exit_code_is_1(
    say: Say, tmp_path: Path
) -> None:
    run = await honest_run(tmp_path / "logs")
    edit(run, lambda lines: lines[:-2])
    result = say("verify", str(run))
    assert result.code == 1
    first, *rest = result.out.splitlines()
    assert "violations in" in first
    assert any("seal: run.json seals" in line for line in rest)


@BROKEN
async def test_all_runs_of_a_folder_are_verified(say: Say, tmp_path: Path) -> None:
    run = await honest_run(tmp_path / "logs")
    await honest_run(tmp_path / "logs")
    assert say("verify", "logs").out.endswith("2 runs verified\n")
    assert "name it" in say("verify", "logs", "--head", "0" * 64).err
    edit(run, lambda lines: lines[:-2])
    result = say("verify", "logs")
    assert result.code == 1
    assert result.out.endswith("1 of 2 runs do not hold\n")
    (run / "run.json").write_text("{}")
    assert "describes no run" in say("verify", "logs").out


@BROKEN
async def test_a_hostile_trace_cannot_steer_the_terminal(say: Say, tmp_path: Path) -> None:
    run = await honest_run(tmp_path / "logs")
    bodies = bodies_of(run)
    for body in bodies:
        if body["record"] == "receipt":
            body["content"] = "\x1b]0;title\x07\x1b[2J\u202e[bold]" * 1_000
            body["intent_id"] = "\x1b[31mred"
    forge(run, bodies)
    result = say("verify", "latest")
    assert result.code == 1
    assert "\x1b" not in result.out
    assert "\u202e" not in result.out
    assert max(map(len, result.out.splitlines())) < 1_200


def test_a_missing_run_is_reported_in_a_line(say: Say, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    result = say("verify", "nothing")
    assert result.code == 2
    assert result.err.count("\n") == 1


@pytest.mark.broken_trace("it edits run.json")
def test_with_hooks_the_runs_own_code_computes_the_changes_again(say: Say, tmp_path: Path) -> None:
    orders = str(tmp_path / "orders.txt")
    recipe = Recipe(factory="kits.shops:open_shop", arguments={"orders": orders})

    async def shop() -> Path:
        agent = open_shop(orders, logs=tmp_path / "logs", recipe=recipe)
        await agent.run(task="Please order.")
        folder = agent.run_folder
        await agent.close()
        assert folder is not None
        return folder.path

    run = asyncio.run(shop())
    ordered = Path(orders).read_text()
    result = say("verify", "latest", "--hooks")
    assert result.code == 0, result.out
    assert Path(orders).read_text() == ordered
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "recipe": None}))
    result = say("verify", "latest", "--hooks")
    assert result.code == 2
    assert "no recipe" in result.err


@BROKEN
async def test_the_only_run_that_cannot_be_read_is_a_users_error(say: Say, tmp_path: Path) -> None:
    run = await honest_run(tmp_path / "logs")
    (run / "run.json").write_text("{}")
    result = say("verify", run.name)
    assert (result.code, result.out) == (2, "")
    assert "describes no run" in result.err


@BROKEN
async def test_of_very_many_violations_the_first_100_are_shown(say: Say, tmp_path: Path) -> None:
    run = await honest_run(tmp_path / "logs")
    edit(run, lambda lines: [b"rubbish\n"] * 300)
    first, *rest = say("verify", "latest").out.splitlines()
    count = int(first.split()[1])
    assert count >= 300
    lines = [line for line in rest if not line.startswith("  …")]
    assert f"  … and {count - 100} more" in rest
    assert len(lines) == 100


def test_hooks_of_a_plain_run_are_reported_as_absent(say: Say, tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "logs", agent="plain")
    recorder.begin_turn()
    recorder.end_turn("respond", "Done.")
    recorder.close()
    result = say("verify", "latest", "--hooks")
    assert result.code == 0
    first, second = result.out.splitlines()
    assert "verified, " in first
    assert "--hooks did nothing here: a plain agent's run names no factory" in second
