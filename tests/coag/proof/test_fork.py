"""Forks: nothing of the past is repeated, nothing of the parent is touched, each change counts."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kits.foragers import GREEN, calls, foraged
from kits.porters import TASK as CARRY
from kits.porters import porter, scholar
from kits.runs import records, run_of, with_info

from coag.errors import (
    ConfigurationError,
    ProcedureRejected,
    ResumeError,
    StateError,
    UnknownNameError,
)
from coag.memory import seed_procedures
from coag.proof import Boundary, Changes, CycleResult, ForkReport, fork, verify
from coag.schema import (
    PHASES,
    Intent,
    Percept,
    Record,
    RetrievalOutcome,
    Snapshot,
    SnapshotReason,
)
from coag.tracing import RunFolder, read_run, read_trace

ENOUGH = "two_are_enough"
BROKEN = pytest.mark.broken_trace("it is changed on purpose")


def digests(folder: Path) -> dict[str, str]:
    """Every file below a folder by its content."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def picked(report: ForkReport) -> list[str]:
    return [arguments(one) for one in report.fork_cycles]


def arguments(one: CycleResult) -> str:
    return " ".join(str(choice) for choice in one.chosen or ())


def lazy_model(where: Path) -> Path:
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
    return file


def boundaries(run: RunFolder) -> list[str]:
    last = max(r.cycle for r in records(run.path) if r.record == "outcome")
    return [f"{cycle}.{phase}" for cycle in range(1, last + 1) for phase in PHASES]


@pytest.mark.parametrize("depth", ["full", pytest.param("compact", marks=pytest.mark.long)])
async def test_a_fork_at_any_phase_without_changes_goes_as_its_parent_went(
    depth: str, tmp_path: Path
) -> None:
    run = await foraged(tmp_path, depth=depth)
    before = digests(run.path)
    for at in boundaries(run):
        report = await fork(run, at, logs=tmp_path / "forks")
        assert report.fork_cycles == report.parent_cycles, at
        assert (report.stopped, report.fork_end) == (None, "Picked: blue, blue.")
        assert verify(report.run) == []
    assert digests(run.path) == before


async def test_what_was_done_before_the_boundary_is_not_done_again(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    assert calls(tmp_path) == ["blue", "blue"]
    report = await fork(run, "2.reasoning", logs=tmp_path / "forks")
    assert calls(tmp_path) == ["blue", "blue", "blue"]
    intents = [r for r in records(report.run) if isinstance(r, Intent)]
    assert [intent.cycle for intent in intents] == [2]


async def test_a_fork_says_where_it_comes_from(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    report = await fork(run, "2.evaluation", Changes(settings={"held": 5}))
    parent = read_run(report.run).parent
    assert parent is not None
    assert (parent.run, parent.cycle, parent.phase) == (run.path.name, 2, "evaluation")
    assert parent.changes == ("--set held=5",)
    assert (report.run.parent / parent.path).resolve() == run.path.resolve()
    past = [entry.seq for entry in read_trace(run.trace_path) if entry.seq < parent.seq]
    assert past[-1] == parent.seq - 1
    first = records(report.run)[0]
    assert isinstance(first, Snapshot)
    assert first.reason is SnapshotReason.FORKED


@pytest.mark.parametrize(
    ("given", "meant"),
    [("3", "3.retrieval"), (" 3.Evaluation ", "3.evaluation"), ("12.execution", "12.execution")],
)
def test_a_boundary_is_a_cycle_and_a_phase(given: str, meant: str) -> None:
    assert str(Boundary.parse(given)) == meant


@pytest.mark.parametrize("given", ["", "0", "x", "3.", "3.evaluation.1", "-1", "3.nothing"])
def test_what_is_no_boundary_is_refused(given: str) -> None:
    with pytest.raises(ConfigurationError, match=r"CYCLE\.PHASE|There is no phase"):
        Boundary.parse(given)


# ---- changes ----


async def test_without_a_record_it_is_not_recalled_any_more(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    known = {hit.id for hit in recalled(run.path)}
    (bitter,) = known
    report = await fork(run, "1", Changes(without_records=(bitter[:8],)))
    assert picked(report)[0] == 'pick {"colour": "red"}'
    assert recalled(report.run) == []


async def test_a_record_is_taken_out_of_a_recall_that_is_past_and_that_is_said(
    tmp_path: Path,
) -> None:
    run = await foraged(tmp_path)
    (bitter,) = {hit.id for hit in recalled(run.path)}
    report = await fork(run, "1.proposal", Changes(without_records=(bitter,)))
    assert picked(report)[0] == 'pick {"colour": "red"}'
    assert any("had seen it" in notice for notice in report.notices)


async def test_a_constraint_of_the_agent_or_of_a_module_can_be_left_out(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    for at in ("3", "3.evaluation"):
        report = await fork(run, at, Changes(without_constraints=(ENOUGH, "nothing_green")))
        assert picked(report)[0] == 'pick {"colour": "blue"}'
        assert report.fork_cycles[0].deaths == ()
        assert report.parent_cycles[0].deaths[0].constraint == ENOUGH


async def test_a_text_of_a_procedure_is_in_force_from_the_boundary_on(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    text = f"{seed_procedures()['proposal'].text}\n{GREEN}"
    changes = Changes(procedures={"proposal": text}, without_constraints=("nothing_green",))
    for at in ("1", "1.reasoning", "1.proposal"):
        report = await fork(run, at, changes)
        assert picked(report)[0] == 'pick {"colour": "green"}'
        pinned = [retrieval.procedures["proposal"] for retrieval in retrievals(report.run)]
        assert set(pinned) <= {2}


async def test_a_value_of_the_state_or_of_working_memory_can_be_set(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    settings: dict[str, Any] = {
        "held": 0,
        "perceptual_state.colours": [],
        "dialogue.0.content": "Eat.",
    }
    report = await fork(run, "3", Changes(settings=settings))
    first = records(report.run)[0]
    assert isinstance(first, Snapshot)
    assert first.working_memory["perceptual_state"] == {"held": 0, "colours": []}
    assert first.working_memory["dialogue"][0]["content"] == "Eat."
    assert picked(report)[0] == 'pick {"colour": "blue"}'


async def test_another_model_takes_over(tmp_path: Path) -> None:
    run = await foraged(tmp_path, depth="compact")
    report = await fork(run, "2", Changes(model=str(lazy_model(tmp_path))))
    assert picked(report)[0] == 'respond {"text": "I rest."}'
    with pytest.raises(ConfigurationError, match="not loaded unasked: add --model"):
        await fork(report.run, "2")  # a component file names code, and a run may be a stranger's
    again = await fork(report.run, "2", Changes(model=str(lazy_model(tmp_path))))
    assert picked(again)[0] == 'respond {"text": "I rest."}'
    with pytest.raises(ConfigurationError, match=r"openai:NAME.*must take a keyword rebuild"):
        await fork(run, "1", Changes(model="nothing:known"))


async def test_changes_go_together_and_the_command_line_says_them(tmp_path: Path) -> None:
    text = tmp_path / "text.md"
    text.write_text(seed_procedures()["proposal"].text + f"\n{GREEN}")
    changes = Changes.of(
        without_constraints=["nothing_green", ENOUGH],
        procedures=[f"proposal={text}"],
        settings=["held=0"],
    )
    run = await foraged(tmp_path)
    report = await fork(run, "3", changes)
    assert picked(report)[0] == 'pick {"colour": "green"}'
    assert report.changes == (
        "--without-constraint nothing_green",
        f"--without-constraint {ENOUGH}",
        "--procedure proposal",
        "--set held=0",
    )


@pytest.mark.parametrize(
    ("changes", "error", "told"),
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
    changes: Changes, error: type[Exception], told: str, tmp_path: Path
) -> None:
    run = await foraged(tmp_path)
    with pytest.raises(error, match=told):
        await fork(run, "1", changes)
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [run.path.name]


@pytest.mark.parametrize(
    "given",
    [
        {"settings": ["held"]},
        {"settings": ["held=x"]},
        {"procedures": ["proposal"]},
        {"procedures": ["proposal=missing.md"]},
    ],
)
def test_a_change_in_another_form_is_refused(given: dict[str, list[str]]) -> None:
    with pytest.raises(ConfigurationError, match=r"PATH=VALUE|JSON|NAME=FILE|cannot be read"):
        Changes.of(**given)  # pyright: ignore[reportArgumentType] - each is one of its arguments


@pytest.mark.parametrize(
    "source",
    [
        "+++\ndescription = 'x'\nGuess.\n",
        "+++\nplaceholders = [\n+++\nGuess.\n",
        "+++\ncolour = 'red'\n+++\nGuess.\n",
        "+++\nplaceholders = ['situation']\n+++\nGuess.\n",
        "\n+++\ndescription = 'x'\n+++\nGuess.\n",
        "++++\ndescription = 'x'\n++++\nGuess.\n",
        "description = 'x'\n+++\nGuess.\n",
        "---\ndescription: x\n---\nGuess.\n",
        "+++\n+++\n",
    ],
)
def test_a_text_of_a_procedure_with_broken_front_matter_is_refused(
    tmp_path: Path, source: str
) -> None:
    file = tmp_path / "text.md"
    file.write_text(source)
    with pytest.raises(ConfigurationError, match=r"proposal|text\.md"):
        Changes.of(procedures=[f"proposal={file}"])


def test_a_text_of_a_procedure_may_hold_any_other_lines(tmp_path: Path) -> None:
    file = tmp_path / "text.md"
    file.write_text("+++\ndescription = 'x'\n+++\nGuess.\n---\n+ more +++\n")
    changes = Changes.of(procedures=[f"proposal={file}"])
    assert changes.procedures == {"proposal": "Guess.\n---\n+ more +++"}


# ---- memory ----


async def test_memory_on_a_disk_is_read_and_never_touched(tmp_path: Path) -> None:
    log = tmp_path / "calls.txt"
    agent = porter(log=str(log), logs=str(tmp_path / "logs"), memory=str(tmp_path / "memory"))
    run = await run_of(agent, CARRY)
    before = digests(tmp_path)
    early = await fork(run, "3.reasoning", logs=tmp_path / "forks")
    late = await fork(run, "4", logs=tmp_path / "forks")
    assert {name: now for name, now in digests(tmp_path).items() if name in before} == before
    assert early.fork_cycles == early.parent_cycles
    assert kept(early.run) == []
    assert len(kept(late.run)) == len(recalled(late.run)) == 1


async def test_what_was_learned_in_ram_is_as_it_was_at_the_boundary(tmp_path: Path) -> None:
    run = await run_of(scholar(logs=str(tmp_path / "logs")), "Learn.")
    held: list[list[bool]] = []
    for cycle in (1, 2, 3, 4):
        report = await fork(run, str(cycle))
        assert report.fork_cycles == report.parent_cycles
        held.append([line["superseded_by"] is None for line in kept(report.run)])
    assert held == [[], [True], [False, True], [False, True]]


async def test_a_fork_can_be_forked_with_its_changes_in_force(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    first = await fork(run, "2.proposal", Changes(without_constraints=(ENOUGH,)))
    assert len(first.fork_cycles) > len(first.parent_cycles) - 1
    for at in ("2.proposal", "2.evaluation", "2.execution", "3", "3.selection"):
        again = await fork(first.run, at)
        assert again.fork_cycles == again.parent_cycles, at
        assert again.stopped is None
        assert again.fork_end == first.fork_end


async def test_a_fork_whose_parent_is_gone_can_be_forked_still(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    first = await fork(run, "2.proposal")
    shutil.rmtree(run.path)
    again = await fork(first.run, "3")
    assert again.fork_cycles == again.parent_cycles


# ---- environment ----


async def test_without_a_known_environment_nothing_acts_outside(tmp_path: Path) -> None:
    run = await foraged(tmp_path, world=False)
    for at in ("1", "1.execution", "2.selection"):
        report = await fork(run, at)
        assert report.stopped is not None
        assert "--live" in report.stopped
        assert report.fork_cycles[-1].status == "none"
    assert calls(tmp_path) == ["blue", "blue"]
    live = await fork(run, "1.execution", live=True)
    assert live.stopped is None
    assert len(calls(tmp_path)) == 4


async def test_a_fork_takes_as_many_turns_as_it_is_told(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    report = await fork(run, "1")
    said = [r.content for r in records(report.run) if isinstance(r, Percept) and r.source == "user"]
    assert said == ["Go on."]
    last = max(one.cycle for one in report.parent_cycles)
    short = await fork(run, "1", turns=0)
    assert max(one.cycle for one in short.fork_cycles) < last
    more = await fork(run, "1", turns=5)
    assert more.fork_cycles == more.parent_cycles
    assert any("1 later turns" in notice for notice in more.notices)
    with pytest.raises(ConfigurationError, match="-1"):
        await fork(run, "1", turns=-1)


# ---- what cannot be forked ----


@BROKEN
async def test_a_boundary_that_is_not_there_is_named_with_what_is(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    with pytest.raises(ConfigurationError, match=r"cycles up to 4: 99\.retrieval"):
        await fork(run, "99")
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    ends = [n for n, line in enumerate(lines) if b'"outcome"' in line and b'"proposed_by"' in line]
    run.trace_path.write_bytes(b"".join(lines[: ends[0] + 1]))
    with pytest.raises(ConfigurationError, match="came as far as proposal"):
        await fork(run, "1.selection")
    report = await fork(run, "1.evaluation", logs=tmp_path / "forks")
    assert report.fork_cycles[0].status == "done"


@BROKEN
@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"recipe": None}, ResumeError, "no recipe"),
        ({"kind": "plain"}, ConfigurationError, "plain agent"),
    ],
)
async def test_a_run_that_cannot_be_built_again_or_has_no_phases_cannot_be_forked(
    fields: dict[str, Any], error: type[Exception], words: str, tmp_path: Path
) -> None:
    run = with_info(await foraged(tmp_path), **fields)
    with pytest.raises(error, match=words):
        await fork(run, "1")


@BROKEN
async def test_a_constraint_that_the_recipe_does_not_make_is_missed(tmp_path: Path) -> None:
    run = await foraged(tmp_path)
    text = run.trace_path.read_text()
    run.trace_path.write_text(text.replace("nothing_green", "nothing_blue"))
    with pytest.raises(ConfigurationError, match="--without-constraint nothing_blue"):
        await fork(run, "1.evaluation")
    report = await fork(run, "1.evaluation", Changes(without_constraints=("nothing_blue",)))
    assert picked(report)[0] == 'pick {"colour": "blue"}'


def retrievals(run: Path) -> list[RetrievalOutcome]:
    return [record for record in records(run) if isinstance(record, RetrievalOutcome)]


def recalled(run: Path) -> list[Record]:
    return [hit.record for retrieval in retrievals(run) for hit in retrieval.records]


def kept(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "remembered.jsonl").read_text().splitlines()]
