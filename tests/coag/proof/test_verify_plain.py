"""Runs of agents that call their tools straight away."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from kits.tampering import Bodies, bodies_of, forge, where

from coag import Verdict
from coag.compat import ConstrainedWorkbench, record
from coag.models import ScriptedModel, scripted_answers
from coag.proof import Rule, verify
from coag.schema import Candidate

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


def call_not_asked_for(bodies: Bodies) -> None:
    bodies[where(bodies, "intent")]["arguments"] = {"button": "red"}


def call_run_twice(bodies: Bodies) -> None:
    intent, receipt = bodies[where(bodies, "intent")], bodies[where(bodies, "receipt")]
    at = where(bodies, "receipt", n=-1) + 1
    bodies[at:at] = [{**intent, "id": "i-9"}, {**receipt, "intent_id": "i-9"}]


def model_call_dropped(bodies: Bodies) -> None:
    bodies[where(bodies, "model_call")]["tool_calls"] = []


def receipt_dropped(bodies: Bodies) -> None:
    del bodies[where(bodies, "receipt")]


def receipt_twice(bodies: Bodies) -> None:
    bodies.insert(where(bodies, "receipt"), bodies[where(bodies, "receipt")])


def intent_twice(bodies: Bodies) -> None:
    bodies.insert(where(bodies, "intent"), bodies[where(bodies, "intent")])


def turn_dropped(bodies: Bodies) -> None:
    del bodies[where(bodies, "turn_end")]


def turn_of_another_number(bodies: Bodies) -> None:
    bodies[where(bodies, "turn_start", n=1)]["turn"] = 7


def turn_ended_under_another_number(bodies: Bodies) -> None:
    bodies[where(bodies, "turn_end")]["turn"] = 7


def turn_ended_twice(bodies: Bodies) -> None:
    bodies.insert(where(bodies, "turn_end"), bodies[where(bodies, "turn_end")])


def phase_in_a_plain_run(bodies: Bodies) -> None:
    bodies[where(bodies, "model_call")]["phase"] = "reasoning"


def call_of_another_turn(bodies: Bodies) -> None:
    bodies[where(bodies, "model_call")]["cycle"] = 2


def outcome_in_a_plain_run(bodies: Bodies) -> None:
    at = bodies[0]["at"]
    bodies.append({"record": "outcome", "phase": "retrieval", "cycle": 1, "at": at, "query": ""})


def receipt_of_another_turn(bodies: Bodies) -> None:
    bodies[where(bodies, "receipt")]["cycle"] = 2


STOCK: list[tuple[Rule, Callable[[Bodies], None]]] = [
    (Rule.INTENT, call_not_asked_for),
    (Rule.INTENT, call_run_twice),
    (Rule.INTENT, model_call_dropped),
    (Rule.INTENT, intent_twice),
    (Rule.RECEIPT, receipt_dropped),
    (Rule.RECEIPT, receipt_twice),
    (Rule.RECEIPT, receipt_of_another_turn),
    (Rule.TURN, turn_dropped),
    (Rule.TURN, turn_of_another_number),
    (Rule.TURN, turn_ended_under_another_number),
    (Rule.TURN, turn_ended_twice),
    (Rule.MODEL_CALL, phase_in_a_plain_run),
    (Rule.MODEL_CALL, call_of_another_turn),
    (Rule.PHASE, outcome_in_a_plain_run),
]


def verdict_flipped(bodies: Bodies) -> None:
    note = bodies[where(bodies, "note", about="constraint")]
    note["details"]["verdicts"][-1]["allowed"] = False


def verdicts_dropped(bodies: Bodies) -> None:
    del bodies[where(bodies, "note", about="constraint")]


def return_changed(bodies: Bodies) -> None:
    bodies[where(bodies, "percept", kind="tool_return")]["content"] = "gold"


def return_told_twice(bodies: Bodies) -> None:
    at = where(bodies, "percept", kind="tool_return")
    bodies.insert(at, bodies[at])


def impasse_that_changes_the_state(bodies: Bodies) -> None:
    bodies[where(bodies, "percept", kind="impasse")]["state_patch"] = {"tool_calls": 9}


GUARDED: list[tuple[Rule, Callable[[Bodies], None]]] = [
    (Rule.CONSTRAINT, verdict_flipped),
    (Rule.CONSTRAINT, verdicts_dropped),
    (Rule.RECEIPT, return_changed),
    (Rule.PERCEPT, return_told_twice),
    (Rule.PERCEPT, impasse_that_changes_the_state),
]


@BROKEN
async def test_lies_about_a_stock_agent_are_found(tmp_path: Path) -> None:
    run = await stock_run(tmp_path / "honest")
    assert verify(run) == []
    for rule, tell in STOCK:
        _found(run, tmp_path / tell.__name__, rule, tell)


@BROKEN
async def test_lies_about_a_guarded_workbench_are_found(tmp_path: Path) -> None:
    run = await guarded_run(tmp_path / "honest")
    assert verify(run) == []
    for rule, tell in GUARDED:
        _found(run, tmp_path / tell.__name__, rule, tell)


def _found(run: Path, copy: Path, rule: Rule, tell: Callable[[Bodies], None]) -> None:
    shutil.copytree(run, copy)
    bodies = bodies_of(copy)
    tell(bodies)
    forge(copy, bodies)
    rules = {violation.rule for violation in verify(copy)}
    assert rule in rules, tell.__name__


async def test_plain_traces_in_ram_are_told_apart_by_what_they_hold() -> None:
    bench = ConstrainedWorkbench([push], constraints=[not_red])
    for button in ("red", "green"):
        await bench.call_tool("push", {"button": button})
    assert verify(bench.records) == []
    client = ScriptedModel(scripted_answers(["Hello."]), name="tiny")
    agent = record(AssistantAgent, "clerk", client)
    await agent.run(task="Hello.")
    assert verify(agent.recorder.records) == []
