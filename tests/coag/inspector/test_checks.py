"""Checks in the background."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kits.hostile import hostile_run
from kits.processes import python
from kits.tracked import Faulty, cycles_of, plain_turn, snapshot, thought, written_run

from coag.errors import TraceError
from coag.inspector.checks import Checks, cause_of, check_run
from coag.inspector.views import CheckProgress, Finding, Findings, FindingSort
from coag.proof import Cause, Diagnosis, DomainKnowledge, Evidence
from coag.schema import Phase
from coag.tracing import RunFolder

pytestmark = [
    pytest.mark.broken_trace("their records are made up"),
    pytest.mark.timeout(240),  # the process that checks takes seconds to start at best
]


class Patient(DomainKnowledge):
    """A domain that waits where the state names a pipe until somebody writes to it."""

    def facts(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        if "pipe" in state:
            Path(state["pipe"]).read_bytes()
        return {}


@pytest.fixture(scope="module")
def checks() -> Iterator[Checks]:
    made = Checks(domain=Patient())
    yield made
    made.close()


NOT_DONE = (CheckProgress.WAITING, CheckProgress.RUNNING)


def settled(checks: Checks, folder: RunFolder) -> Findings:
    tick = threading.Event()
    while (found := checks.findings(folder)).progress in NOT_DONE:
        tick.wait(0.02)
    return found


def waiting_run(pipe: Path) -> RunFolder:
    """A run whose check waits until somebody writes to a new pipe."""
    os.mkfifo(pipe)
    state = snapshot(1, {"pipe": str(pipe)})
    records = [*plain_turn(1, "Yes.")[:2], state, *thought(1, "look")]
    return written_run(pipe.parent, records, name="held")


@contextmanager
def held(checks: Checks, tmp_path: Path) -> Generator[None]:
    """The process that checks waits until the end."""
    pipe = tmp_path / "pipe"
    folder = waiting_run(pipe)
    checks.findings(folder)
    try:
        yield
    finally:
        pipe.write_text("Go on.")
    assert settled(checks, folder).progress is CheckProgress.DONE


def test_runs_are_checked_one_after_the_other_in_the_background(
    tmp_path: Path, checks: Checks
) -> None:
    folders = [hostile_run(tmp_path, name=name) for name in ("one", "two")]
    with held(checks, tmp_path):
        assert all(checks.findings(folder).progress in NOT_DONE for folder in folders)
    for folder in folders:
        found = settled(checks, folder)
        assert found.progress is CheckProgress.DONE
        assert found.checked > 10
        assert {one.sort for one in found.found} >= {FindingSort.VIOLATION}
        cycles = [one.cycle for one in found.found if one.cycle is not None]
        assert cycles == sorted(cycles)
    assert checks.findings(folders[0]) == checks.findings(folders[0])


def test_what_cannot_be_read_fails_with_a_sentence_and_the_next_one_is_checked(
    tmp_path: Path, checks: Checks
) -> None:
    missing = RunFolder(tmp_path / "nothing")
    sound = written_run(tmp_path, plain_turn(1, "Yes."), kind="plain")
    checks.findings(missing)
    checks.findings(sound)
    failed = settled(checks, missing)
    assert failed.progress is CheckProgress.FAILED
    assert "is no run's folder" in failed.trouble
    assert settled(checks, sound).progress is CheckProgress.DONE


CHANGES: list[Callable[[bytes], bytes]] = [
    lambda text: text + b"no record\n" * 500,
    lambda text: text.replace(b"Yes.", b"No!!"),
]


@pytest.mark.parametrize("changed", CHANGES, ids=["grown", "changed in place"])
def test_a_trace_that_is_another_one_is_checked_again(
    tmp_path: Path, checks: Checks, changed: Callable[[bytes], bytes]
) -> None:
    folder = written_run(tmp_path, plain_turn(1, "Yes."), kind="plain")
    os.utime(folder.trace_path, (0, 0))  # long ago: times of files are coarse
    before = settled(checks, folder)
    folder.trace_path.write_bytes(changed(folder.trace_path.read_bytes()))
    with held(checks, tmp_path):
        during = checks.findings(folder)
    assert (during.progress in NOT_DONE, during.found) == (True, before.found)
    assert len(settled(checks, folder).found) > len(before.found)


class Unguarded(DomainKnowledge):
    """No other process can have it: it is known by no name."""

    def __reduce__(self) -> Any:
        return lambda: None


@pytest.mark.parametrize(
    ("domain", "trouble"),
    [
        (Faulty(), "ZeroDivisionError: nothing is known of "),
        (Unguarded(), "cannot be handed to another process"),
    ],
)
def test_checks_that_fail_themselves_say_so(
    tmp_path: Path, domain: DomainKnowledge, trouble: str
) -> None:
    checks = Checks(domain=domain)
    found = settled(checks, written_run(tmp_path, cycles_of("look")))
    checks.close()
    assert found.progress is CheckProgress.FAILED
    assert trouble in found.trouble


def test_nothing_is_checked_after_the_end(tmp_path: Path) -> None:
    checks = Checks()
    folder = written_run(tmp_path, plain_turn(1, "Yes."), kind="plain")
    checks.findings(folder)
    checks.close()
    checks.close()
    other = written_run(tmp_path, plain_turn(1, "Yes."), name="other", kind="plain")
    assert checks.findings(other).progress is CheckProgress.WAITING


def test_a_check_under_way_is_broken_off_at_the_end(tmp_path: Path) -> None:
    checks = Checks(domain=Patient())
    folder = waiting_run(tmp_path / "pipe")
    checks.findings(folder)
    writing = os.open(tmp_path / "pipe", os.O_WRONLY)  # opened once the check reads
    checks.close()
    os.close(writing)
    assert settled(checks, folder).progress is CheckProgress.FAILED


def test_a_script_that_is_not_guarded_is_run_once(tmp_path: Path) -> None:
    written_run(tmp_path / "logs", plain_turn(1, "Yes."), kind="plain")
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT)
    assert python(script, tmp_path / "logs" / "run-1").splitlines() == ["begun", "done"]


_SCRIPT = """
import sys, time
from coag.inspector.checks import Checks
from coag.tracing import RunFolder
from pathlib import Path
from typing import Any

print("begun", flush=True)
checks, run = Checks(), RunFolder(Path(sys.argv[1]))
while (found := checks.findings(run)).progress in ("waiting", "running"):
    time.sleep(0.05)
checks.close()
print(found.progress)
"""


# ---- what is found ----


def test_violations_are_placed_in_their_cycle_and_phase(tmp_path: Path) -> None:
    records = cycles_of("look", "clean")
    swapped = next(at for at, one in enumerate(records) if getattr(one, "phase", "") == "selection")
    records[swapped], records[swapped + 1] = records[swapped + 1], records[swapped]
    found = [one for one in check_run(written_run(tmp_path, records)).found if one.title == "phase"]
    assert found
    assert (found[0].cycle, found[0].phase, found[0].seq) == (1, Phase.EXECUTION, swapped)


def test_lines_that_were_changed_are_one_finding(tmp_path: Path) -> None:
    folder = written_run(tmp_path, cycles_of("look", "clean"))
    folder.trace_path.write_bytes(folder.trace_path.read_bytes().replace(b"dirty", b"tidy."))
    (found,) = [one for one in check_run(folder).found if one.title == "chain"]
    assert "has a hash that does not fit" in found.text
    assert "The same holds for 1 further lines" in found.text


@pytest.mark.parametrize(
    ("cause", "phase", "evidence_phase"),
    [
        (Cause.MISPERCEPTION, None, Phase.PROPOSAL),
        (Cause.MISPERCEPTION, Phase.EXECUTION, Phase.EXECUTION),
        (Cause.CHANGED_ENVIRONMENT, Phase.EXECUTION, Phase.EXECUTION),
        (Cause.MISSED_RETRIEVAL, Phase.RETRIEVAL, Phase.PROPOSAL),
        (Cause.FAILED_EXECUTION, Phase.EXECUTION, Phase.PROPOSAL),
        (Cause.UNUSABLE_ANSWER, Phase.PROPOSAL, Phase.PROPOSAL),
        (None, None, Phase.PROPOSAL),
    ],
)
def test_causes_name_the_phase_at_fault_and_their_evidence(
    cause: Cause | None, phase: Phase | None, evidence_phase: Phase
) -> None:
    evidence = (Evidence(seq=7, cycle=2, phase=evidence_phase, text="It said so."),)
    found = found_of(cause, evidence)
    assert (found.title, found.phase) == (cause or "not attributable", phase)
    assert (found.cycle, found.seq, found.evidence) == (2, 7, ((7, "It said so."),))
    assert (found.text, found.follows) == ("It fell. Hm.", 1)


def found_of(cause: Cause | None, evidence: tuple[Evidence, ...]) -> Finding:
    fields = {"failure": "It fell.", "reason": "Hm."}
    return cause_of(Diagnosis(cycle=2, cause=cause, evidence=evidence, follows=1, **fields))


def test_a_wrong_record_has_both_its_texts() -> None:
    evidence = tuple(
        Evidence(seq=seq, cycle=2, phase=Phase.RETRIEVAL, text=text)
        for seq, text in ((4, "It says 'a'."), (7, "It came as 'b'."))
    )
    found = found_of(Cause.WRONG_FACT, evidence)
    assert found.text == "It fell. Hm. It says 'a'. It came as 'b'."


def test_a_run_without_a_trace_is_no_failure_and_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = written_run(tmp_path, [])
    folder.trace_path.unlink()
    assert check_run(folder).progress is CheckProgress.DONE
    folder.trace_path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TraceError, match="is a link"):
        check_run(folder)


def test_findings_are_bounded(tmp_path: Path) -> None:
    folder = written_run(tmp_path, [])
    folder.trace_path.write_bytes(b"no record\n" * 2_000)
    found = check_run(folder)
    assert len(found.found) == 300
    assert found.left_out > 0


# ---- what is known of a run ----


WRONG = Finding(
    sort=FindingSort.CAUSE,
    title="wrong recalled fact",
    text="It is not so.",
    cycle=3,
    phase=Phase.RETRIEVAL,
    seq=39,
)


def made(*found: Finding) -> Findings:
    return Findings(progress=CheckProgress.DONE, found=found)


@pytest.mark.parametrize(
    ("found", "together"),
    [
        ([{}, {"cycle": 4, "seq": 56}, {"cycle": 5}], [(3, (3, 4, 5))]),
        ([{}, {"cycle": 4}, {"cycle": 4, "text": "x"}, {"cycle": 5}], [(3, (3, 4, 5)), (4, ())]),
        ([{}, {"cycle": 5}, {"cycle": 5, "title": "x"}], [(3, ()), (5, ()), (5, ())]),
        ([{"cycle": None}, {"cycle": None}], [(None, ()), (None, ())]),
    ],
    ids=["neighbouring", "another between", "a gap", "no cycle"],
)
def test_the_same_of_neighbouring_cycles_is_one_finding_of_all_of_them(
    found: list[dict[str, Any]], together: list[Any]
) -> None:
    findings = made(*(replace(WRONG, **fields) for fields in found))
    assert [(one.cycle, one.cycles) for one in findings.together] == together
    assert len(findings.found) == len(found)


def test_it_first_went_wrong_where_nothing_came_before() -> None:
    follows = replace(WRONG, cycle=2, follows=1)
    broken = replace(WRONG, cycle=3, sort=FindingSort.VIOLATION)
    assert made(follows, broken, WRONG, replace(WRONG, cycle=9, title="x")).first == WRONG
    assert made(replace(WRONG, cycle=None)).first is None
