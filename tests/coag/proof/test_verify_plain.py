"""Runs of agents that call their tools straight away."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from kits.runs import records, with_info
from kits.tampering import Bodies, bodies_of, forge, where

from coag import Verdict
from coag.compat import ConstrainedWorkbench, record
from coag.models import ScriptedModel, scripted_answers
from coag.proof import Rule, examine, verify
from coag.schema import Candidate
from coag.tracing import MemoryTrace, RunFolder

BROKEN = pytest.mark.broken_trace("it lies in the trace")


def push(button: str) -> str:
    """Pushes a button.

    Args:
        button: Its colour.
    """
    return f"{button} is pushed"


def not_red(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    return Verdict.forbid("red") if "red" in candidate.raw_arguments else Verdict.allow()


async def stock_run(logs: Path) -> Path:
    calls = [
        FunctionCall(id=str(n), name="push", arguments=json.dumps({"button": colour}))
        for n, colour in enumerate(("green", "blue"))
    ]
    client = ScriptedModel(scripted_answers([calls, "Pushed.", "Nothing."]), name="tiny")
    agent = record(AssistantAgent, "clerk", client, logs=logs, tools=[push])
    await agent.run(task="Push.")
    await agent.run(task="And now?")
    await agent.close()
    return agent.recorder.folder.path


async def guarded_run(logs: Path) -> Path:
    bench = ConstrainedWorkbench([push], constraints=[not_red], logs=logs)
    for button in ("green", "red", "blue"):
        await bench.call_tool("push", {"button": button})
    folder = bench.folder
    await bench.stop()
    return folder


Lies = dict[str, tuple[Rule, Callable[[Bodies], object]]]


def change(record: str, n: int = 0, **fields: Any) -> Callable[[Bodies], object]:
    return lambda bodies: bodies[where(bodies, record, n=n)].update(fields)


def drop(record: str, **fields: Any) -> Callable[[Bodies], object]:
    return lambda bodies: bodies.pop(where(bodies, record, **fields))


def double(record: str, **fields: Any) -> Callable[[Bodies], object]:
    def doubled(bodies: Bodies) -> None:
        at = where(bodies, record, **fields)
        bodies.insert(at, bodies[at])

    return doubled


def run_twice(bodies: Bodies) -> None:
    intent, receipt = bodies[where(bodies, "intent")], bodies[where(bodies, "receipt")]
    at = where(bodies, "receipt", n=-1) + 1
    bodies[at:at] = [{**intent, "id": "i-9"}, {**receipt, "intent_id": "i-9"}]


def outcome_added(bodies: Bodies) -> None:
    at = bodies[0]["at"]
    bodies.append({"record": "outcome", "phase": "retrieval", "cycle": 1, "at": at, "query": ""})


def verdict_flipped(bodies: Bodies) -> None:
    note = bodies[where(bodies, "note", about="constraint")]
    note["details"]["verdicts"][-1]["allowed"] = False


def of_kind(kind: str, **fields: Any) -> Callable[[Bodies], object]:
    return lambda bodies: bodies[where(bodies, "percept", kind=kind)].update(fields)


STOCK: Lies = {
    "not asked for": (Rule.INTENT, change("intent", arguments={"button": "red"})),
    "run twice": (Rule.INTENT, run_twice),
    "asked by nobody": (Rule.INTENT, change("model_call", tool_calls=[])),
    "intent twice": (Rule.INTENT, double("intent")),
    "no receipt": (Rule.RECEIPT, drop("receipt")),
    "receipt twice": (Rule.RECEIPT, double("receipt")),
    "receipt of another turn": (Rule.RECEIPT, change("receipt", cycle=2)),
    "turn not ended": (Rule.TURN, drop("turn_end")),
    "turn of another number": (Rule.TURN, change("turn_start", n=1, turn=7)),
    "turn ended under another number": (Rule.TURN, change("turn_end", turn=7)),
    "turn ended twice": (Rule.TURN, double("turn_end")),
    "call of a phase": (Rule.MODEL_CALL, change("model_call", phase="reasoning")),
    "call of another turn": (Rule.MODEL_CALL, change("model_call", cycle=2)),
    "an outcome": (Rule.PHASE, outcome_added),
}
GUARDED: Lies = {
    "verdict flipped": (Rule.CONSTRAINT, verdict_flipped),
    "verdicts dropped": (Rule.CONSTRAINT, drop("note", about="constraint")),
    "return changed": (Rule.RECEIPT, of_kind("tool_return", content="gold")),
    "return twice": (Rule.PERCEPT, double("percept", kind="tool_return")),
    "impasse that acts": (Rule.PERCEPT, of_kind("impasse", state_patch={"tool_calls": 9})),
}


@BROKEN
@pytest.mark.parametrize(("make", "lies"), [(stock_run, STOCK), (guarded_run, GUARDED)])
async def test_lies_about_a_plain_run_are_found(
    make: Callable[[Path], Awaitable[Path]], lies: Lies, tmp_path: Path
) -> None:
    run = await make(tmp_path / "honest")
    assert verify(run) == []
    for name, (rule, tell) in lies.items():
        copy = Path(shutil.copytree(run, tmp_path / name / run.name))
        bodies = bodies_of(copy)
        tell(bodies)
        forge(copy, bodies)
        assert rule in {violation.rule for violation in verify(copy)}, name


@BROKEN
async def test_of_a_plain_run_that_stops_in_the_middle_it_is_said_what_is_open(
    tmp_path: Path,
) -> None:
    run = await stock_run(tmp_path)
    bodies = bodies_of(run)
    forge(run, [body for n, body in enumerate(bodies) if n != where(bodies, "turn_end", n=-1)])
    found = examine(run)
    assert found.holds
    assert "The run has ended in the middle of turn 2." in str(found.remarks)
    with_info(RunFolder(run), ended_at=None, seal=None)
    forge(run, bodies[: where(bodies, "intent") + 1])
    found = examine(run)
    assert found.holds
    assert "(push) has no receipt." in str(found.remarks)


async def test_of_a_plain_trace_in_ram_that_is_checked_which_is_there(tmp_path: Path) -> None:
    complete = records(await stock_run(tmp_path))
    for limit in range(1, len(complete)):  # of one whose beginning was dropped, the rest
        short = MemoryTrace(limit)
        for one in complete:
            short.write(one)
        assert verify(short.entries) == []
    bench = ConstrainedWorkbench([push], constraints=[not_red])
    for button in ("red", "green"):
        await bench.call_tool("push", {"button": button})
    assert verify(bench.records) == []
