"""`coag log`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from autogen_core.tools import FunctionTool

from coag.cli.log import show_run
from coag.compat import ConstrainedWorkbench
from coag.schema import (
    ENTRY,
    PHASES,
    Candidate,
    ExecutionOutcome,
    ExecutionStatus,
    ModelCall,
    OutputMode,
    SteppingClock,
    TokenUsage,
    Verdict,
)
from coag.tracing import RunFolder, read_run, read_trace

pytestmark = pytest.mark.broken_trace("its records are made up")


def pay(amount: int) -> str:
    return f"{amount} paid"


def at_most_ten(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    arguments = candidate.arguments or {}
    return Verdict.forbid("too much") if arguments["amount"] > 10 else Verdict.allow()


# What `say` gives: the exit code and both streams.
Say = Callable[..., Any]


def test_a_run_shows_what_was_recalled_proposed_rejected_chosen_and_done(
    coag_run: RunFolder, say: Say
) -> None:
    result = say("log", coag_run.path.name)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == EXPECTED.splitlines()


EXPECTED = """\
run-1: coag agent robot
model scripted:sound, seed 7
started 2026-11-21 12:00:00, not finished
  percept    message from user (user): Clean [bold]the[/bold] room.

cycle 1
  retrieval  1 recalled for 'walls'
             0.87 episodic 0123456789ab A wall stands at (2,1).
             constraints in force: keep_charge
  model      scripted:sound by json_schema, attempt 2, repaired: 1000 prompt (600 cached), \
40 completion tokens, 0.2 s
  reasoning  goal open: Dirt lies east.
             risk: a wall
  proposal   2 proposed by model
             c1 move {"direction": "east"}: dirt
             c2 fly {}
  evaluation 2 judged
             survived c1 move {"direction": "east"} scored 0.80: short
             rejected c2 fly {}: tool_exists: There is no such tool.
  selection  c1 move {"direction": "east"}, decided by model: best
  intent     intent-1 move {}
  receipt    intent-1 done: moved
  written    record 0123 {"text": "moved east"}
  execution  done move {}
             result: moved
  percept    tool_return from move (user): now at (1,0)

cycle 2
  retrieval  0 recalled for 'walls'
  model      scripted:sound by json_schema: 1000 prompt (600 cached), 40 completion tokens, 0.2 s
             unusable: not JSON
             answer: {}
  reasoning  goal open: Stuck.
  proposal   0 proposed by nobody
  note       fallback: No usable candidates.
  evaluation 0 judged
  selection  impasse, no candidate survived: none left
  execution  nothing was run
  percept    failed impasse from cycle (user): no way

cycle 3
  selection  gone, decided by only_survivor
  execution  done respond {}
             response: All clean.
  turn ended respond: All clean.

total: 3 cycles, 1 external action, 2 model calls, 2,000 prompt tokens (1,200 cached), \
80 completion tokens
"""


def test_a_plain_run_shows_model_calls_intents_and_receipts(plain_run: RunFolder, say: Say) -> None:
    lines = say("log", plain_run.path.name).out.splitlines()
    assert lines[5:] == [
        "  model      scripted:sound by text: 1000 prompt (600 cached), 40 completion tokens, "
        "0.2 s",
        "             answer: I shall move.",
        '             tool call: move {"direction": "east"}',
        "  intent     intent-1 move {}",
        "  receipt    intent-1 failed: a wall",
        "  turn ended respond",
        "",
        "total: 1 cycle, 1 external action, 1 model call, 1,000 prompt tokens (600 cached), "
        "40 completion tokens",
    ]


async def test_a_run_of_a_guarded_workbench_counts_its_calls_and_has_no_empty_lines(
    tmp_path: Path, say: Say
) -> None:
    async with ConstrainedWorkbench(
        [FunctionTool(pay, "Pays.")], constraints=[at_most_ten], logs=tmp_path / "logs", name="till"
    ) as till:
        await till.call_tool("pay", {"amount": 1})
        await till.call_tool("pay", {"amount": 20})
    lines = say("log", "latest").out.splitlines()
    assert lines[0].endswith(": plain agent till")
    assert lines[1].startswith("started ")
    refused = "pay was refused right before it was to run. at_most_ten: too much"
    assert f"  percept    refusal (untrusted): {refused}" in lines
    assert lines[-1].startswith("total: 2 cycles, 1 external action, 0 model calls, ")
    assert say("log", "latest", "--cycle", "2").out.splitlines()[-1] == "shown: 1 cycle"


def test_a_phase_without_a_run_is_that_of_the_latest(
    coag_run: RunFolder, plain_run: RunFolder, say: Say
) -> None:
    info = read_run(plain_run.path)
    earlier = info.model_copy(update={"started_at": info.started_at - timedelta(days=1)})
    plain_run.info_path.write_text(earlier.model_dump_json())
    for options in (("--phase", "evaluation"), ("--cycle", "2"), ("--cycle", "1", "--json")):
        assert say("log", *options) == say("log", "run-1", *options)


def test_a_phase_of_a_cycle_can_be_shown_alone(coag_run: RunFolder, say: Say) -> None:
    lines = say("log", "run-1", "--cycle", "1", "--phase", "Evaluation").out.splitlines()
    assert lines[4:] == [
        "cycle 1",
        "  evaluation 2 judged",
        '             survived c1 move {"direction": "east"} scored 0.80: short',
        "             rejected c2 fly {}: tool_exists: There is no such tool.",
        "",
        "shown: 1 cycle",
    ]


def test_json_gives_the_very_records(coag_run: RunFolder, say: Say) -> None:
    lines = say("log", "latest", "--json").out.splitlines()
    assert [ENTRY.validate_json(line) for line in lines] == list(read_trace(coag_run.trace_path))


@pytest.mark.parametrize("phase", PHASES)
def test_json_of_a_phase_holds_that_phase_only(coag_run: RunFolder, say: Say, phase: str) -> None:
    lines = say("log", "run-1", "--json", "--phase", phase).out.splitlines()
    bodies = [json.loads(line)["body"] for line in lines]
    assert {body["phase"] for body in bodies if "phase" in body} == {phase}
    effects = {"intent", "receipt", "written"} if phase == "execution" else set[str]()
    assert {body["record"] for body in bodies} - {"outcome", "model_call"} == effects


def test_json_of_a_cycle_holds_what_the_cycle_brought_about(coag_run: RunFolder, say: Say) -> None:
    lines = say("log", "run-1", "--json", "--cycle", "2").out.splitlines()
    bodies = [json.loads(line)["body"] for line in lines]
    assert {body.get("cycle", 2) for body in bodies} == {2}
    assert bodies[-1]["kind"] == "impasse"


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["run-1", "--phase", "dreaming"], ["'dreaming'", *PHASES]),
        (["walk"], ["There is no run or folder named 'walk'. Known: "]),
        (["run-1", "--cycle", "99"], ["Run 'run-1' has cycles up to 3: no cycle 99."]),
        (["latest", "--logs", "there"], ["There is no folder of logs at 'there'."]),
        (["demo", "--cycle", "1"], ["holds runs and is none itself"]),
        (["run-5"], ["demo/case-a/run-5-a, demo/case-b/run-5-b"]),
        (["--phase", "evaluation", "--logs", "empty"], ["'latest'"]),
    ],
)
@pytest.mark.usefixtures("cases")
def test_the_error_of_a_wrong_call_is_one_line_with_what_there_is(
    tmp_path: Path, say: Say, words: list[str], parts: list[str]
) -> None:
    (tmp_path / "empty").mkdir()
    result = say("log", *words)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert all(one in result.err for one in parts)


def test_a_truncated_trace_is_shown_with_a_warning(coag_run: RunFolder, say: Say) -> None:
    with coag_run.trace_path.open("a") as trace:
        trace.write('{"v":1,"se')
    result = say("log", "run-1")
    assert result.code == 0
    assert result.out.splitlines() == EXPECTED.splitlines()
    assert (
        result.err
        == "line 27, the last one, is truncated: the run was killed, or is not finished.\n"
    )


def test_a_foreign_trace_is_one_sentence(coag_run: RunFolder, say: Say) -> None:
    coag_run.trace_path.write_text("\x1b[31mhello\n")
    result = say("log", "run-1", "--json")
    assert result.code == 2
    assert "line 1 is not JSON" in result.err
    assert "Traceback" not in result.err


def test_without_a_run_all_runs_are_listed(
    coag_run: RunFolder, plain_run: RunFolder, say: Say
) -> None:
    plain_run.finish(at=ENTRY.validate_json(_first_line(plain_run)).body.at)
    (coag_run.path.parent / "broken").mkdir()
    (coag_run.path.parent / "broken" / "run.json").write_text("{}")
    lines = say("log").out.splitlines()
    assert lines[0].split() == ["run", "kind", "started", "state", "model,", "asked"]
    assert lines[1].startswith("  broken")
    assert lines[2:] == [
        "  run-1       coag  11-21 12:00 open  scripted:sound  Clean [bold]the[/bold] ro…",
        "  run-2-plain plain 11-21 12:00 ended scripted:sound",
    ]


@pytest.fixture
def cases(leave_run: Callable[..., RunFolder], coag_run: RunFolder, tmp_path: Path) -> Path:
    """A folder that holds two cases, each with a run of the same beginning."""
    for case in ("case-a", "case-b"):
        run = leave_run([], f"run-5-{case}")
        (tmp_path / "logs" / "demo" / case).mkdir(parents=True)
        run.path.rename(tmp_path / "logs" / "demo" / case / f"run-5-{case[-1]}")
    return tmp_path / "logs" / "demo"


@pytest.mark.parametrize("name", ["logs/demo", "demo"])
def test_a_folder_of_runs_lists_them_by_the_folders_they_lie_in(
    cases: Path, say: Say, name: str
) -> None:
    result = say("log", name)
    assert (result.code, result.err) == (0, "")
    assert [line.split()[0] for line in result.out.splitlines()] == [
        "run",
        "case-a",
        "run-5-a",
        "case-b",
        "run-5-b",
    ]


def test_long_texts_and_unusable_answers_are_cut_and_say_so(
    leave_run: Callable[..., RunFolder], coag_run: RunFolder, say: Say
) -> None:
    bodies = [entry.body for entry in read_trace(coag_run.trace_path)]
    percept = bodies[1].model_copy(update={"content": "x" * 5_000})
    unusable = [one for one in bodies if isinstance(one, ModelCall) and one.error]
    calls = [call.model_copy(update={"raw": "y" * 300}) for call in unusable]
    leave_run([bodies[0], percept, *calls], "run-9")
    out = say("log", "run-9").out
    assert "[… 4,726 more]" in out
    assert f"answer: {'y' * 200} [… 100 more]" in out


def test_a_long_result_is_shown_once(
    leave_run: Callable[..., RunFolder], coag_run: RunFolder, say: Say
) -> None:
    result = "the battery is at 95 and " * 8
    records: list[Any] = []
    for entry in read_trace(coag_run.trace_path):
        text = entry.body.model_dump_json().replace("moved", result).replace("now at (1,0)", result)
        records.append(type(entry.body).model_validate_json(text))
    leave_run(records, "run-9")
    out = say("log", "run-9", "--cycle", "1").out
    assert out.count("the battery is at 95 and the battery") >= 1
    assert sum("the battery" in line for line in out.splitlines()) == 1
    assert out.count("[the receipt's result]") == 3


def test_all_runs_as_json_are_their_run_json(
    coag_run: RunFolder, plain_run: RunFolder, say: Say
) -> None:
    (coag_run.path.parents[1] / "empty").mkdir()
    assert say("log", "--logs", "empty").out == "There are no runs in empty yet.\n"
    found = [json.loads(line) for line in say("log", "--json").out.splitlines()]
    assert found == [json.loads(run.info_path.read_text()) for run in (coag_run, plain_run)]


def _first_line(run: RunFolder) -> str:
    return run.trace_path.read_text().splitlines()[0]


def test_an_unusable_answer_without_a_word_and_a_result_of_nothing_are_a_line_each(
    leave_run: Callable[..., RunFolder], say: Say
) -> None:
    at = SteppingClock().now()
    call = ModelCall(
        id="c",
        at=at,
        cycle=1,
        phase=None,
        model="m",
        rung=OutputMode.TEXT,
        attempt=1,
        messages=(),
        raw="",
        error="it was empty",
        usage=TokenUsage(),
        seconds=0.1,
    )
    done = ExecutionOutcome(
        cycle=1, at=at, status=ExecutionStatus.DONE, action="rest", arguments={}, result=""
    )
    leave_run([call, done])
    lines = [line.strip() for line in say("log", "run-1").out.splitlines()]
    place = lines.index("unusable: it was empty")
    assert lines[place + 1 : place + 3] == ["execution  done rest {}", ""]


def test_ctrl_c_ends_a_list_that_does_not_follow(
    coag_run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path, report: object) -> Iterator[Any]:
        yield from islice(read_trace(path), 1)
        raise KeyboardInterrupt

    monkeypatch.setattr("coag.cli.log.read_trace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        show_run(
            str(coag_run.path), Path("logs"), cycle=None, phase=None, json_lines=False, follow=False
        )
