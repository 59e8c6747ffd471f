"""`coag replay` at the terminal, where replays are not the same or cannot be made."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.foragers import foraged

from coag.tracing import RunFolder

Say = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return asyncio.run(foraged(tmp_path, depth="compact"))


def change(run: RunFolder, field: str, value: Any) -> int:
    """Changes the first record with a field, behind its hash's back; gives its number."""
    lines = [json.loads(line) for line in run.trace_path.read_text("utf-8").splitlines()]
    place = next(n for n, line in enumerate(lines) if line["body"].get(field))
    lines[place]["body"][field] = value
    run.trace_path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return place


def forget_recipe(run: RunFolder) -> None:
    info = json.loads(run.info_path.read_text("utf-8"))
    run.info_path.write_text(json.dumps({**info, "recipe": None}), "utf-8")


@pytest.mark.broken_trace("it changes what the agent thought")
def test_a_replay_that_differs_says_where_and_in_what_and_exits_with_1(
    run: RunFolder, say: Say
) -> None:
    place = change(run, "situation", "It is \x1b[2Jfull.")
    result = say("replay", "latest")
    assert result.code == 1
    first, recorded, replayed, *rest = result.out.splitlines()
    assert first.startswith(f"{run.path.name}: diverges at record {place + 1} (cycle 1, ")
    assert first.endswith(f"in situation; {place} records before it alike")
    assert recorded.startswith('  recorded: "It is ')
    assert replayed == '  replayed: "It holds 0."'
    assert "  Taken from the trace:" in rest
    assert any(line.startswith("  - ") and "hash" in line for line in rest)
    assert "\x1b" not in result.out


@pytest.mark.broken_trace("it changes what the agent thought")
def test_of_several_runs_each_is_a_line_and_one_that_cannot_be_replayed_stops_none(
    run: RunFolder, say: Say, tmp_path: Path
) -> None:
    odd = asyncio.run(foraged(tmp_path, depth="compact"))
    lost = asyncio.run(foraged(tmp_path, depth="compact"))
    change(odd, "situation", "It is full.")
    forget_recipe(lost)
    result = say("replay", "logs")
    assert result.code == 1
    lines = {line.partition(":")[0]: line for line in result.out.splitlines()}
    assert "no divergence" in lines[run.path.name]
    assert "diverges at record" in lines[odd.path.name]
    assert "not replayed: " in lines[lost.path.name]
    assert "no recipe" in lines[lost.path.name]
    assert result.out.endswith("3 runs, 2 of them not the same\n")


@pytest.mark.broken_trace("it edits run.json")
def test_as_json_a_run_that_cannot_be_replayed_is_an_object_too(
    run: RunFolder, say: Say, tmp_path: Path
) -> None:
    lost = asyncio.run(foraged(tmp_path, depth="compact"))
    forget_recipe(lost)
    result = say("replay", "logs", "--json")
    reports = {one["run"]: one for one in map(json.loads, result.out.splitlines())}
    assert result.code == 1
    assert reports[run.path.name]["same"] is True
    assert reports[lost.path.name]["same"] is False
    assert "no recipe" in reports[lost.path.name]["error"]


@pytest.mark.broken_trace("it edits run.json")
def test_the_only_run_that_cannot_be_replayed_is_a_users_error(run: RunFolder, say: Say) -> None:
    forget_recipe(run)
    result = say("replay", "latest")
    assert (result.code, result.out) == (2, "")
    assert "no recipe" in result.err
