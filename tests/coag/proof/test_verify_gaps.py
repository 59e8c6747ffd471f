"""Where records are missing, that is told, and what hung on them is not held against the run."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from kits.tampering import Bodies, bodies_of, forge, honest_run, where

from coag.compat import record
from coag.models import ScriptedModel, scripted_answers
from coag.proof import Rule, examine, verify
from coag.schema import PHASES, Phase
from coag.tracing import MemoryTrace, RunFolder, read_trace

pytestmark = pytest.mark.broken_trace("records are taken out of it")
V1 = Path(__file__).parents[1] / "tracing" / "data" / "v1"


def push(button: str) -> str:
    """Pushes a button."""
    return f"{button} is pushed"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def honest(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    yield await honest_run(tmp_path_factory.mktemp("honest"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pushed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """A stock agent's run of a turn with one call."""
    call = FunctionCall(id="1", name="push", arguments='{"button": "green"}')
    client = ScriptedModel(scripted_answers([[call], "Pushed."]), name="tiny")
    logs = tmp_path_factory.mktemp("pushed")
    agent = record(AssistantAgent, "clerk", client, logs=logs, tools=[push])
    await agent.run(task="Push.")
    await agent.close()
    yield agent.recorder.folder.path


@pytest.fixture
def copy_of(tmp_path: Path) -> Callable[[Path], Path]:
    def copied(run: Path) -> Path:
        return Path(shutil.copytree(run, tmp_path / run.name))

    return copied


def unfinished(run: Path, bodies: Bodies) -> None:
    """Leaves these records of a run, which was killed then."""
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "ended_at": None, "seal": None}))
    forge(run, bodies)


def told(run: Path) -> str:
    found = examine(run)
    assert found.violations == ()
    return " ".join(map(str, found.remarks))


def test_of_a_killed_run_it_is_said_that_its_last_action_may_have_acted(
    honest: Path, copy_of: Callable[[Path], Path]
) -> None:
    run = copy_of(honest)
    bodies = bodies_of(run)
    unfinished(run, bodies[: where(bodies, "intent") + 1])
    assert "(fetch) is the last that is known: whether it had its effect, is not." in told(run)


def test_of_a_killed_plain_run_it_is_said_that_its_last_action_has_no_receipt(
    pushed: Path, copy_of: Callable[[Path], Path]
) -> None:
    run = copy_of(pushed)
    bodies = bodies_of(run)
    unfinished(run, bodies[: where(bodies, "intent") + 1])
    assert "(push) has no receipt." in told(run)


def test_a_plain_run_that_ended_within_a_turn_is_said_to_have_done_so(
    pushed: Path, copy_of: Callable[[Path], Path]
) -> None:
    run = copy_of(pushed)
    bodies = bodies_of(run)
    del bodies[where(bodies, "turn_end")]
    forge(run, bodies)
    assert "The run has ended in the middle of turn 1." in told(run)


def test_of_a_plain_trace_whose_beginning_was_dropped_the_rest_is_checked(pushed: Path) -> None:
    whole = [entry.body for entry in read_trace(RunFolder(pushed).trace_path)]
    for limit in range(1, len(whole)):
        short = MemoryTrace(limit)
        for one in whole:
            short.write(one)
        assert verify(short.entries) == []


@pytest.mark.parametrize("phase", PHASES)
def test_a_phase_that_is_missing_is_told(
    phase: Phase, honest: Path, copy_of: Callable[[Path], Path]
) -> None:
    run = copy_of(honest)
    bodies = bodies_of(run)
    del bodies[where(bodies, "outcome", phase=phase, cycle=1)]
    forge(run, bodies)
    rules = {violation.rule for violation in verify(run)}
    assert (Rule.EXECUTION if phase is Phase.EXECUTION else Rule.PHASE) in rules
    assert (Rule.INTENT in rules) is (phase is Phase.SELECTION)
    assert Rule.RECEIPT not in rules


def test_a_cycle_that_is_missing_is_told_as_that_and_the_next_ones_are_checked(
    honest: Path, copy_of: Callable[[Path], Path]
) -> None:
    run = copy_of(honest)
    bodies = bodies_of(run)
    first = where(bodies, "outcome", phase="retrieval", cycle=2)
    del bodies[first : where(bodies, "outcome", phase="proposal", cycle=3)]
    receipt = bodies[where(bodies, "receipt", n=-1)]
    receipt["content"] = "gold"
    forge(run, bodies)
    found = verify(run)
    told = next(violation for violation in found if violation.rule is Rule.PHASE)
    assert "proposal of cycle 3 is recorded where retrieval of cycle 2 must come next" in told.text
    assert (Rule.RECEIPT, receipt["cycle"]) in {
        (violation.rule, violation.cycle) for violation in found
    }


# ---- version 1 ----


def changed_v1(to: Path, change: Callable[[Bodies], None]) -> Path:
    """A run of version 1 with its records changed; no hash tells of it."""
    (run,) = [run for run in V1.iterdir() if "desk" in run.name]
    to = Path(shutil.copytree(run, to / run.name))
    lines = [json.loads(line) for line in (to / "trace.jsonl").read_text("utf-8").splitlines()]
    bodies: Bodies = [line["body"] for line in lines]
    change(bodies)
    numbered = [{**lines[0], "seq": seq, "body": body} for seq, body in enumerate(bodies)]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in numbered)
    (to / "trace.jsonl").write_text(text, "utf-8")
    return to


def asked_twice(attempt: int) -> Callable[[Bodies], None]:
    def change(bodies: Bodies) -> None:
        place = where(bodies, "model_call", phase="reasoning")
        again = {**bodies[place], "id": "call-again"}
        bodies[place]["usage"] = {**bodies[place]["usage"], "prompt_tokens": 999}
        bodies.insert(place + 1, {**again, "attempt": attempt})

    return change


def test_a_phase_of_version_1_that_was_begun_again_after_a_crash_is_no_violation(
    tmp_path: Path,
) -> None:
    run = changed_v1(tmp_path, asked_twice(1))
    assert "1 model calls of reasoning in cycle 1 are in no outcome" in told(run)


def test_a_second_attempt_of_version_1_belongs_to_what_was_used(tmp_path: Path) -> None:
    run = changed_v1(tmp_path, asked_twice(2))
    assert Rule.USAGE in {violation.rule for violation in verify(run)}


def test_an_answer_of_version_1_may_not_name_the_action_that_gave_it(tmp_path: Path) -> None:
    def unnamed(bodies: Bodies) -> None:
        for body in bodies:
            body.pop("ended_by", None)

    assert "not chained" in told(changed_v1(tmp_path, unnamed))


def test_memory_of_version_1_may_lack_what_came_later(tmp_path: Path) -> None:
    def old(bodies: Bodies) -> None:
        memories: list[dict[str, Any]] = [
            body["working_memory"] for body in bodies if body["record"] == "snapshot"
        ]
        for memory in memories:
            memory.pop("queued", None)

    assert "not chained" in told(changed_v1(tmp_path, old))
