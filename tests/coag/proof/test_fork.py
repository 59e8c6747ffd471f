"""Forks: nothing of the past is repeated, nothing of the parent is touched, each change counts."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.foragers import BITTER, GREEN, Basket, calls, foraged, forager
from kits.porters import TASK, porter, scholar
from kits.runs import Bodies, check_same, edited, note, place, records, run_of, with_info
from kits.tills import refunded, touched
from pydantic import BaseModel, ConfigDict

from coag._util.secrets import REDACTED
from coag.context import WorkingMemory
from coag.cycle import Ablation
from coag.errors import (
    ConfigurationError,
    ProcedureRejected,
    ResumeError,
    StateError,
    UnknownNameError,
)
from coag.memory import seed_procedures
from coag.proof import Boundary, Changes, ForkReport, counterfactuals, fork, replay, verify, why
from coag.proof.fork_changes import with_settings
from coag.schema import (
    PHASES,
    Intent,
    Note,
    Percept,
    Record,
    RetrievalOutcome,
    Snapshot,
    SnapshotReason,
)
from coag.tracing import RunFolder, read_run, read_trace

ENOUGH = "two_are_enough"
BROKEN = pytest.mark.broken_trace("it is changed on purpose")
RED, BLUE, GREENS = (f'pick {{"colour": "{it}"}}' for it in ("red", "blue", "green"))


def digests(folder: Path) -> dict[str, str]:
    """Every file below a folder by its content."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def first_pick(report: ForkReport) -> str:
    return " ".join(str(choice) for choice in report.fork_cycles[0].chosen or ())


def of_kind(run: Path | RunFolder, kind: type[Any]) -> list[Any]:
    return [record for record in records(run) if isinstance(record, kind)]


def recalled(run: Path | RunFolder) -> list[Record]:
    return [hit.record for one in of_kind(run, RetrievalOutcome) for hit in one.records]


def remembered(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "remembered.jsonl").read_text().splitlines()]


def green_text(where: Path) -> Path:
    """A file of a procedure by which green ones are picked."""
    text = where / "text.md"
    text.write_text(seed_procedures()["proposal"].text + f"\n{GREEN}")
    return text


def lazy_model(where: Path) -> str:
    """A component file of a model that never picks anything."""
    done = {"action": "respond", "arguments": '{"text": "I rest."}', "score": 0.9}
    answer = {"situation": "", "risks": [], "goal_status": "open", "candidates": [done]}
    component = {
        "provider": "autogen_ext.models.replay.ReplayChatCompletionClient",
        "component_type": "model",
        "config": {"chat_completions": [json.dumps(answer)] * 5},
    }
    file = where / "lazy.json"
    file.write_text(json.dumps(component))
    return str(file)


@pytest.mark.parametrize(
    "runs", ["berries", pytest.param("compact_berries", marks=pytest.mark.long)]
)
async def test_a_fork_at_any_phase_without_changes_goes_as_its_parent_went(
    runs: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    run: RunFolder = request.getfixturevalue(runs)
    before = digests(run.path)
    for cycle in range(1, 5):
        for phase in PHASES:
            report = await fork(run, f"{cycle}.{phase}", logs=tmp_path)
            assert report.fork_cycles == report.parent_cycles, report.at
            assert (report.stopped, report.fork_end) == (None, "Picked: blue, blue.")
            assert verify(report.run) == []
    assert digests(run.path) == before


async def test_what_was_done_before_the_boundary_is_not_done_again(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    assert calls(tmp_path) == ["blue", "blue"]
    report = await fork(run, "2.reasoning", logs=tmp_path / "forks")
    assert calls(tmp_path) == ["blue", "blue", "blue"]
    assert [intent.cycle for intent in of_kind(report.run, Intent)] == [2]


async def test_a_fork_says_where_it_comes_from(berries: RunFolder, tmp_path: Path) -> None:
    report = await fork(berries, "2.evaluation", Changes(settings={"held": 5}), logs=tmp_path)
    parent = read_run(report.run).parent
    assert parent is not None
    assert (parent.run, parent.cycle, parent.phase) == (berries.path.name, 2, "evaluation")
    assert parent.changes == ("--set held=5",)
    assert (report.run.parent / parent.path).resolve() == berries.path.resolve()
    past = [entry.seq for entry in read_trace(berries.trace_path) if entry.seq < parent.seq]
    assert past[-1] == parent.seq - 1
    assert of_kind(report.run, Snapshot)[0].reason is SnapshotReason.FORKED


def test_a_boundary_is_a_cycle_and_a_phase_and_what_is_none_is_refused() -> None:
    for text, meant in (("3", "3.retrieval"), (" 3.Evaluation ", "3.evaluation")):
        assert str(Boundary.parse(text)) == meant
    for text in ("", "0", "x", "3.", "3.evaluation.1", "-1", "3.nothing"):
        with pytest.raises(ConfigurationError, match=r"CYCLE\.PHASE|There is no phase"):
            Boundary.parse(text)


# ---- changes ----


async def test_without_a_record_it_is_not_recalled_any_more(
    berries: RunFolder, tmp_path: Path
) -> None:
    ((bitter, text),) = {(hit.id, hit.text) for hit in recalled(berries)}
    assert text == BITTER
    report = await fork(berries, "1", Changes(without_records=(bitter[:8],)), logs=tmp_path)
    assert first_pick(report) == RED
    assert recalled(report.run) == []
    late = await fork(berries, "1.proposal", Changes(without_records=(bitter,)), logs=tmp_path)
    assert first_pick(late) == RED
    assert any("had seen it" in notice for notice in late.notices)
    with pytest.raises(ConfigurationError, match=f"characters or more of: {bitter}"):
        await fork(berries, "2", Changes(without_records=(bitter[:2],)))


async def test_a_constraint_of_the_agent_or_of_a_module_can_be_left_out(
    berries: RunFolder, tmp_path: Path
) -> None:
    changes = Changes(without_constraints=(ENOUGH, "nothing_green"))
    for at in ("3", "3.evaluation"):
        report = await fork(berries, at, changes, logs=tmp_path)
        assert first_pick(report) == BLUE
        assert report.fork_cycles[0].deaths == ()
        assert report.parent_cycles[0].deaths[0].constraint == ENOUGH


async def test_a_text_of_a_procedure_is_in_force_from_the_boundary_on(
    berries: RunFolder, tmp_path: Path
) -> None:
    text = f"{seed_procedures()['proposal'].text}\n{GREEN}"
    changes = Changes(procedures={"proposal": text}, without_constraints=("nothing_green",))
    for at in ("1", "1.reasoning", "1.proposal"):
        report = await fork(berries, at, changes, logs=tmp_path)
        assert first_pick(report) == GREENS
        pinned = {one.procedures["proposal"] for one in of_kind(report.run, RetrievalOutcome)}
        assert pinned <= {2}


async def test_a_value_of_the_state_or_of_working_memory_can_be_set(
    berries: RunFolder, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "held": 0,
        "perceptual_state.colours": [],
        "dialogue.0.content": "Eat.",
    }
    report = await fork(berries, "3", Changes(settings=settings), logs=tmp_path)
    memory = of_kind(report.run, Snapshot)[0].working_memory
    assert memory["perceptual_state"] == {"held": 0, "colours": []}
    assert memory["dialogue"][0]["content"] == "Eat."
    assert first_pick(report) == BLUE


async def test_another_model_takes_over(compact_berries: RunFolder, tmp_path: Path) -> None:
    changes = Changes(model=lazy_model(tmp_path))
    report = await fork(compact_berries, "2", changes, logs=tmp_path / "forks")
    assert first_pick(report) == 'respond {"text": "I rest."}'
    with pytest.raises(ConfigurationError, match="not loaded unasked: add --model"):
        await fork(report.run, "2")  # a component file names code, and a run may be a stranger's
    again = await fork(report.run, "2", changes)
    assert first_pick(again) == 'respond {"text": "I rest."}'
    with pytest.raises(ConfigurationError, match=r"openai:NAME.*must take a keyword rebuild"):
        await fork(compact_berries, "1", Changes(model="nothing:known"))
    os.remove(tmp_path / "lazy.json")
    assert (await replay(report.run)).same


async def test_changes_go_together_and_the_command_line_says_them(
    berries: RunFolder, tmp_path: Path
) -> None:
    changes = Changes.of(
        without_constraints=["nothing_green", ENOUGH],
        procedures=[f"proposal={green_text(tmp_path)}"],
        settings=["held=0"],
    )
    report = await fork(berries, "3", changes, logs=tmp_path / "forks")
    assert first_pick(report) == GREENS
    assert report.changes == (
        "--without-constraint nothing_green",
        f"--without-constraint {ENOUGH}",
        "--procedure proposal",
        "--set held=0",
    )


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (Changes(without_records=("0123456789",)), UnknownNameError, "record at the boundary"),
        (Changes(without_constraints=("none",)), UnknownNameError, ENOUGH),
        (Changes(procedures={"none": "x"}), UnknownNameError, "procedure"),
        (Changes(procedures={"proposal": "Guess. " * 5_000}), ProcedureRejected, "tokens"),
        (Changes(settings={"weight": 3}), StateError, "held, colours"),
        (Changes(settings={"held": "many"}), StateError, "held"),
        (Changes(settings={"colours.7": "red"}), StateError, "no item of 0"),
        (Changes(settings={"goal.x": "red"}), StateError, "leads nowhere"),
        (Changes(settings={"phase": None}), StateError, "boundary"),
        (Changes(settings={"goal": 3}), StateError, "goal"),
    ],
)
async def test_a_change_that_does_not_fit_is_refused_before_anything_begins(
    changes: Changes, error: type[Exception], message: str, berries: RunFolder, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        await fork(berries, "1", changes, logs=tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_change_in_another_form_is_refused() -> None:
    for text, error in (("held", "PATH=VALUE"), ("held=x", "JSON")):
        with pytest.raises(ConfigurationError, match=error):
            Changes.of(settings=[text])
    for text, error in (("proposal", "NAME=FILE"), ("proposal=missing.md", "cannot be read")):
        with pytest.raises(ConfigurationError, match=error):
            Changes.of(procedures=[text])


NO_TEXTS = (
    "+++\ndescription = 'x'\nGuess.\n",
    "+++\nplaceholders = [\n+++\nGuess.\n",
    "+++\nplaceholders = ['situation']\n+++\nGuess.\n",
    "\n+++\ndescription = 'x'\n+++\nGuess.\n",
    "++++\ndescription = 'x'\n++++\nGuess.\n",
    "description = 'x'\n+++\nGuess.\n",
    "---\ndescription: x\n---\nGuess.\n",
    "+++\n+++\n",
    " \n\n",
)


def test_a_text_of_a_procedure_may_hold_all_but_nothing_and_broken_front_matter(
    tmp_path: Path,
) -> None:
    file = tmp_path / "text.md"
    file.write_text("+++\ndescription = 'x'\n+++\nGuess.\n---\n+ more +++\n")
    changes = Changes.of(procedures=[f"proposal={file}"])
    assert changes.procedures == {"proposal": "Guess.\n---\n+ more +++"}
    for source in NO_TEXTS:
        file.write_text(source)
        with pytest.raises(ConfigurationError, match=r"proposal|text\.md"):
            Changes.of(procedures=[f"proposal={file}"])


class Loose(BaseModel):
    """A state that drops what it does not know."""

    model_config = ConfigDict(extra="ignore")

    held: int = 0


class Forgetful(BaseModel):
    """A state that keeps nothing within its notes."""

    notes: Loose = Loose()


def test_the_whole_state_may_be_set_at_once_and_what_it_does_not_keep_cannot() -> None:
    memory = WorkingMemory(activity="main", perceptual_state={"held": 1, "colours": ["red"]})
    state = {"held": 2, "colours": ["blue"]}
    changed = with_settings(memory, Basket, {"perceptual_state": state})
    assert changed.to_json()["perceptual_state"] == state
    with pytest.raises(StateError, match="cannot be 5: Basket"):
        with_settings(memory, Basket, {"perceptual_state": 5})
    memory = WorkingMemory(activity="main", perceptual_state={})
    with pytest.raises(StateError, match=r"Forgetful keeps nothing at 'notes\.colour'"):
        with_settings(memory, Forgetful, {"notes.colour": "red"})


# ---- memory ----


async def test_memory_on_a_disk_is_read_and_never_touched_and_may_be_gone(tmp_path: Path) -> None:
    log, memory = tmp_path / "calls.txt", tmp_path / "memory"
    agent = porter(log=str(log), logs=str(tmp_path / "logs"), memory=str(memory))
    run = await run_of(agent, TASK)
    before = digests(tmp_path)
    early = await fork(run, "3.reasoning", logs=tmp_path / "forks")
    late = await fork(run, "4", logs=tmp_path / "forks")
    assert {name: now for name, now in digests(tmp_path).items() if name in before} == before
    assert early.fork_cycles == early.parent_cycles
    assert remembered(early.run) == []
    assert len(remembered(late.run)) == len(recalled(late.run)) == 1
    shutil.rmtree(memory)
    assert (await fork(run, "2.retrieval")).fork_cycles
    assert memory.name not in os.listdir(tmp_path)


async def test_what_was_learned_in_ram_is_as_it_was_at_the_boundary(tmp_path: Path) -> None:
    run = await run_of(scholar(logs=str(tmp_path / "logs")), "Learn.")
    held: list[list[bool]] = []
    for cycle in (1, 2, 3, 4):
        report = await fork(run, str(cycle))
        assert report.fork_cycles == report.parent_cycles
        held.append([line["superseded_by"] is None for line in remembered(report.run)])
    assert held == [[], [True], [False, True], [False, True]]


async def test_a_fork_can_be_forked_with_its_changes_in_force_and_without_its_parent(
    own_berries: RunFolder,
) -> None:
    first = await fork(own_berries, "2.proposal", Changes(without_constraints=(ENOUGH,)))
    assert len(first.fork_cycles) > len(first.parent_cycles) - 1
    for at in ("2.proposal", "2.execution", "3", "3.selection"):
        again = await fork(first.run, at)
        assert again.fork_cycles == again.parent_cycles, at
        assert (again.stopped, again.fork_end) == (None, first.fork_end)
    shutil.rmtree(own_berries.path)
    orphan = await fork(first.run, "3")
    assert orphan.fork_cycles == orphan.parent_cycles


# ---- environment ----


async def test_without_a_known_environment_nothing_acts_outside(tmp_path: Path) -> None:
    run = await foraged(tmp_path, world=False)
    for at in ("1", "1.execution", "2.selection"):
        report = await fork(run, at)
        assert "--live" in str(report.stopped)
        assert report.fork_cycles[-1].status == "none"
        assert (await replay(report.run)).same
    assert calls(tmp_path) == ["blue", "blue"]
    live = await fork(run, "1.execution", live=True)
    assert live.stopped is None
    assert len(calls(tmp_path)) == 4


@BROKEN
async def test_where_the_environment_gave_no_state_any_more_nothing_acts_outside(
    own_berries: RunFolder,
) -> None:
    def forgotten(bodies: Bodies) -> None:
        at = place(bodies, record="outcome", phase="proposal", cycle=2)
        note(bodies, at, "environment", "It gave no state.")

    run = edited(own_berries, forgotten)
    assert (await fork(run, "2.reasoning")).stopped is None
    assert "--live" in str((await fork(run, "2.evaluation")).stopped)


LIVE = ["7", "8", "9"]


@pytest.mark.parametrize("copies", ["no", "yes"])
async def test_looking_at_a_run_leaves_the_live_environment_alone(
    copies: str, tmp_path: Path
) -> None:
    run, till = await refunded(tmp_path, copies)
    verify(run.path)
    assert (await replay(run)).same
    for cycle in (1, 2, 3):
        why(run, cycle)
        (again,) = await counterfactuals(run, cycle)
        assert not again.changed
    for phase in PHASES if copies == "no" else ():
        report = await fork(run, f"2.{phase}")
        assert "refund" in str(report.stopped)
        assert "does not say that it is a copy" in str(report.stopped)
        assert "is_copy = True" in str(report.stopped)
    assert (till.refunds(), touched(till)) == (LIVE, [])


async def test_a_fork_acts_in_a_copy_that_was_put_back(tmp_path: Path) -> None:
    run, till = await refunded(tmp_path, "yes")
    report = await fork(run, "2")
    assert (report.stopped, report.fork_end) == (None, "Refunded: 7, 8.")
    assert (till.refunds(), touched(till)) == (LIVE, [])


async def test_a_fork_that_may_act_for_real_puts_nothing_back(tmp_path: Path) -> None:
    run, till = await refunded(tmp_path)
    report = await fork(run, "2", live=True)
    assert report.stopped is None
    assert till.refunds() == [*LIVE, "8"]
    assert "restore" not in touched(till)


@pytest.mark.parametrize(
    ("copies", "error"),
    [
        ("broken", "its restore raised KeyError: 'no table'"),
        ("raises", "'kits.tills:desk' raised OSError: the database is locked"),
    ],
)
async def test_what_a_factory_or_a_restore_raises_is_named_in_the_error(
    copies: str, error: str, tmp_path: Path
) -> None:
    run, _ = await refunded(tmp_path, copies)
    with pytest.raises(ResumeError) as refused:
        await fork(run, "2")
    assert error in str(refused.value)


# ---- turns, and what came on its own ----


async def test_a_fork_takes_as_many_turns_as_turns_says(berries: RunFolder, tmp_path: Path) -> None:
    report = await fork(berries, "1", logs=tmp_path)
    contents = [one.content for one in of_kind(report.run, Percept) if one.source == "user"]
    assert contents == ["Go on."]
    short = await fork(berries, "1", turns=0, logs=tmp_path)
    assert short.fork_cycles[-1].cycle < report.parent_cycles[-1].cycle
    more = await fork(berries, "1", turns=5, logs=tmp_path)
    assert more.fork_cycles == more.parent_cycles
    assert any("1 later turns" in notice for notice in more.notices)
    with pytest.raises(ConfigurationError, match="-1"):
        await fork(berries, "1", turns=-1)


@BROKEN
async def test_a_percept_that_came_by_itself_is_left_out_and_that_is_said(
    own_berries: RunFolder,
) -> None:
    def sensed(bodies: Bodies) -> None:
        at = place(bodies, 1, record="turn_start")
        message = bodies[place(bodies, record="percept", kind="message")]
        signal = {"kind": "signal", "source": "bell", "trust": "untrusted", "content": "Dong."}
        bodies.insert(at, {**message, **signal, "id": "percept-000099", "sets_goal": False})

    report = await fork(edited(own_berries, sensed), "2.retrieval")
    assert "1 percepts that reached the parent on their own are left out." in report.notices


@pytest.mark.parametrize("at", ["2.retrieval", "2.reasoning", "2.proposal", "2.selection"])
async def test_a_fork_leaves_out_what_its_parent_left_out(at: str, tmp_path: Path) -> None:
    without: tuple[Ablation, ...] = ("retrieval", "reasoning", "evaluation", "rewriting")
    run = await foraged(tmp_path, without=without)
    assert read_run(run.path).configuration["settings"]["ablations"] == sorted(without)
    await check_same(run)
    report = await fork(run, at, logs=tmp_path / "forks")
    assert report.fork_cycles == report.parent_cycles
    assert verify(report.run) == []
    assert set(without) <= {one.details.get("part") for one in of_kind(report.run, Note)}


# ---- what cannot be forked ----


def cut_at(**fields: Any) -> Callable[[Bodies], None]:
    """Kills a run before its first record with these fields."""

    def killed(bodies: Bodies) -> None:
        del bodies[place(bodies, **fields) :]

    return killed


@BROKEN
async def test_a_boundary_that_is_not_there_is_named_with_what_is(
    own_berries: RunFolder, tmp_path: Path
) -> None:
    run = own_berries
    with pytest.raises(ConfigurationError, match=r"cycles up to 4: 99\.retrieval"):
        await fork(run, "99")
    edited(run, cut_at(record="outcome", phase="selection", cycle=2))
    with pytest.raises(ConfigurationError, match="Nothing was decided in cycle 2 of"):
        await counterfactuals(run, 2)
    edited(run, cut_at(record="outcome", phase="evaluation", cycle=1))
    with pytest.raises(ConfigurationError, match="came as far as proposal"):
        await fork(run, "1.selection")
    report = await fork(run, "1.evaluation", logs=tmp_path / "forks")
    assert report.fork_cycles[0].status == "done"
    edited(run, cut_at(record="turn_start"))
    with pytest.raises(ConfigurationError, match="has no cycle yet"):
        await fork(run, "1")


@BROKEN
@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"recipe": None}, ResumeError, "no recipe"),
        ({"kind": "plain"}, ConfigurationError, "plain agent"),
    ],
)
async def test_a_run_that_cannot_be_built_again_or_has_no_phases_cannot_be_forked(
    fields: dict[str, Any], error: type[Exception], words: str, own_berries: RunFolder
) -> None:
    with pytest.raises(error, match=words):
        await fork(with_info(own_berries, **fields), "1")


@BROKEN
async def test_a_constraint_that_the_recipe_does_not_make_is_missed(
    own_berries: RunFolder,
) -> None:
    text = own_berries.trace_path.read_text()
    own_berries.trace_path.write_text(text.replace("nothing_green", "nothing_blue"))
    with pytest.raises(ConfigurationError, match="--without-constraint nothing_blue"):
        await fork(own_berries, "1.evaluation")
    changes = Changes(without_constraints=("nothing_blue",))
    assert first_pick(await fork(own_berries, "1.evaluation", changes)) == BLUE


@BROKEN
async def test_within_a_cycle_that_held_a_secret_a_run_cannot_be_forked(
    own_berries: RunFolder,
) -> None:
    def secret(bodies: Bodies) -> None:
        bodies[place(bodies, record="outcome", phase="reasoning", cycle=2)]["situation"] = REDACTED

    run = edited(own_berries, secret)
    with pytest.raises(ConfigurationError, match=r"held a secret.*fork it at 2\.retrieval"):
        await fork(run, "2.selection")
    assert (await fork(run, "2.retrieval")).fork_cycles


async def test_a_rule_that_was_added_to_the_built_agent_is_in_force_in_a_fork(
    berries: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_blue(candidate: Any, state: Any, projection: Any) -> Any:
        raise AssertionError("It is not asked: the fork is refused before.")

    def strict(**arguments: Any) -> Any:
        agent = forager(**arguments)
        agent.constraints.add(nothing_blue)
        return agent

    strict.__module__ = "kits.foragers"
    monkeypatch.setattr("kits.foragers.forager", strict)
    with pytest.raises(ConfigurationError, match="nothing_blue"):
        await fork(berries, "2.retrieval", Changes(without_constraints=("nothing_yellow",)))
