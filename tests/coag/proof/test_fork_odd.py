"""Forks of runs that were killed, changed, told of from outside, or remember elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.foragers import BITTER, Basket, foraged, forager
from kits.porters import TASK, porter
from kits.runs import Bodies, check_same, edited, note, place, records, run_of
from pydantic import BaseModel, ConfigDict

from coag.context import WorkingMemory
from coag.cycle import Ablation
from coag.errors import ConfigurationError, StateError
from coag.proof import Changes, counterfactuals, fork, verify
from coag.proof.boundary import procedure_of
from coag.proof.fork_changes import with_settings
from coag.schema import ModelCall, Note, OutputMode, RetrievalOutcome, SteppingClock, TokenUsage
from coag.tracing import REDACTED, read_run

BROKEN = pytest.mark.broken_trace("it is changed on purpose")


def cut_at(**fields: Any) -> Callable[[Bodies], None]:
    """Kills a run before its first record with these fields."""

    def killed(bodies: Bodies) -> None:
        del bodies[place(bodies, **fields) :]

    return killed


@BROKEN
async def test_where_nothing_was_begun_or_decided_nothing_can_be_done_otherwise(
    tmp_path: Path,
) -> None:
    run = await foraged(tmp_path)
    edited(run, cut_at(record="outcome", phase="selection", cycle=2))
    with pytest.raises(ConfigurationError, match="Nothing was decided in cycle 2 of"):
        await counterfactuals(run, 2)
    edited(run, cut_at(record="turn_start"))
    with pytest.raises(ConfigurationError, match="has no cycle yet"):
        await fork(run, "1")


@BROKEN
async def test_a_percept_that_came_by_itself_is_left_out_of_a_fork_and_that_is_said(
    tmp_path: Path,
) -> None:
    def sensed(bodies: Bodies) -> None:
        at = place(bodies, 1, record="turn_start")
        message = bodies[place(bodies, record="percept", kind="message")]
        signal = {"kind": "signal", "source": "bell", "trust": "untrusted", "content": "Dong."}
        bodies.insert(at, {**message, **signal, "id": "percept-000099", "sets_goal": False})

    report = await fork(edited(await foraged(tmp_path), sensed), "2.retrieval")
    assert "1 percepts that reached the parent on their own are left out." in report.notices


@BROKEN
async def test_where_the_environment_gave_no_state_any_more_nothing_acts_outside(
    tmp_path: Path,
) -> None:
    def forgotten(bodies: Bodies) -> None:
        at = place(bodies, record="outcome", phase="proposal", cycle=2)
        note(bodies, at, "environment", "It gave no state.")

    run = edited(await foraged(tmp_path), forgotten)
    assert (await fork(run, "2.reasoning")).stopped is None
    assert "--live" in str((await fork(run, "2.evaluation")).stopped)


@BROKEN
async def test_within_a_cycle_that_held_a_secret_a_run_cannot_be_forked(tmp_path: Path) -> None:
    def secret(bodies: Bodies) -> None:
        bodies[place(bodies, record="outcome", phase="reasoning", cycle=2)]["situation"] = REDACTED

    run = edited(await foraged(tmp_path), secret)
    with pytest.raises(ConfigurationError, match=r"held a secret .*\(2\.retrieval\)"):
        await fork(run, "2.selection")
    assert (await fork(run, "2.retrieval")).fork_cycles


async def test_a_short_id_must_name_one_record(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    (hit,) = next(one.records for one in records(run) if isinstance(one, RetrievalOutcome))
    assert hit.record.text == BITTER
    changes = Changes(without_records=(hit.record.id[:2],))
    with pytest.raises(ConfigurationError, match=f"characters or more of: {hit.record.id}"):
        await fork(run, "2", changes)


def test_a_text_of_a_procedure_without_a_word_is_refused(tmp_path: Path) -> None:
    (tmp_path / "new.md").write_text(" \n\n")
    with pytest.raises(ConfigurationError, match="is empty, and procedure 'proposal' needs a text"):
        Changes.of(procedures=[f"proposal={tmp_path / 'new.md'}"])


async def test_a_memory_whose_folder_is_gone_is_what_the_trace_shows_of_it(tmp_path: Path) -> None:
    memory = str(tmp_path / "memory")
    run = await foraged(tmp_path, memory=memory)
    shutil.rmtree(memory)
    assert (await fork(run, "2.retrieval")).fork_cycles
    assert not (tmp_path / "memory").exists()


async def test_a_rule_that_was_added_to_the_built_agent_is_in_force_in_a_fork(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await foraged(tmp_path)

    def strict(**arguments: Any) -> Any:
        agent = forager(**arguments)
        agent.constraints.add(nothing_blue)
        return agent

    strict.__module__ = "kits.foragers"
    monkeypatch.setattr("kits.foragers.forager", strict)
    with pytest.raises(ConfigurationError) as missed:
        await fork(run, "2.retrieval", Changes(without_constraints=("nothing_yellow",)))
    assert "nothing_blue" in str(missed.value)


def nothing_blue(candidate: Any, state: Any, projection: Any) -> Any:
    """Never blue."""
    raise AssertionError("It is not asked: the fork is refused before.")


# ---- parts ----


class Loose(BaseModel):
    """A state that drops what it does not know."""

    model_config = ConfigDict(extra="ignore")

    held: int = 0
    inner: dict[str, int] = {}


def test_the_whole_state_may_be_set_at_once() -> None:
    memory = WorkingMemory(activity="main", perceptual_state={"held": 1, "colours": ["red"]})
    whole = {"held": 2, "colours": ["blue"]}
    assert with_settings(memory, Basket, {"perceptual_state": whole}).to_json()[
        "perceptual_state"
    ] == {"held": 2, "colours": ["blue"]}
    with pytest.raises(StateError, match="cannot be 5: Basket"):
        with_settings(memory, Basket, {"perceptual_state": 5})


class Forgetful(BaseModel):
    """A state that keeps nothing within its notes."""

    notes: Loose = Loose()


def test_what_the_state_does_not_keep_cannot_be_set() -> None:
    memory = WorkingMemory(activity="main", perceptual_state={})
    with pytest.raises(StateError, match=r"Forgetful keeps nothing at 'notes\.colour'"):
        with_settings(memory, Forgetful, {"notes.colour": "red"})


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"expected": "DeliberationAnswer", "phase": "reasoning"}, "deliberation"),
        ({"rung": OutputMode.NATIVE, "phase": "proposal"}, "native"),
        ({"phase": "proposal"}, "proposal"),
        ({}, ""),
    ],
)
def test_a_call_tells_by_which_procedure_a_model_was_asked(
    fields: dict[str, Any], name: str
) -> None:
    call = {
        "id": "c",
        "at": SteppingClock().now(),
        "cycle": 1,
        "phase": None,
        "model": "m",
        "rung": OutputMode.PROMPT,
        "attempt": 1,
        "messages": (),
        "raw": "",
        "usage": TokenUsage(),
        "seconds": 0.1,
    }
    assert procedure_of(ModelCall.model_validate({**call, **fields})) == name


# ---- runs with ablations ----


EACH: list[tuple[Ablation, ...]] = [
    ("retrieval",),
    ("reasoning",),
    ("evaluation",),
    ("rewriting",),
    ("retrieval", "reasoning", "evaluation", "rewriting"),
]


@pytest.mark.parametrize("without", EACH)
async def test_a_run_without_parts_is_verified_and_replayed(
    without: tuple[Ablation, ...], tmp_path: Path
) -> None:
    logs = str(tmp_path / "logs")
    run = await run_of(porter(log=str(tmp_path / "calls.txt"), logs=logs, without=without), TASK)
    assert verify(run.path) == []
    assert read_run(run.path).configuration["settings"]["ablations"] == sorted(without)
    await check_same(run)


@pytest.mark.parametrize("at", ["2.retrieval", "2.reasoning", "2.proposal", "2.selection"])
async def test_a_fork_leaves_out_what_its_parent_left_out(at: str, tmp_path: Path) -> None:
    without = EACH[-1]
    run = await foraged(tmp_path, without=without)
    report = await fork(run, at, logs=tmp_path / "forks")
    assert report.fork_cycles == report.parent_cycles
    assert verify(report.run) == []
    notes = [one for one in records(report.run) if isinstance(one, Note)]
    assert set(without) <= {one.details.get("part") for one in notes}
