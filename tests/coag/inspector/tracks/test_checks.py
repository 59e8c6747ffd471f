"""Checks in the background."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kits.hostile import hostile_run
from kits.tracked import cycles_of, plain_turn, written_run

from coag.errors import TraceError
from coag.inspector.tracks import Checks
from coag.inspector.tracks.child import as_json, cause_of, check, finding_of, order, run
from coag.inspector.views import Finding, Findings, FindingSort, Progress
from coag.proof import Cause, Diagnosis, Domain, Evidence
from coag.schema import Phase
from coag.tracing import RunFolder

pytestmark = pytest.mark.broken_trace("their records are made up")


@pytest.fixture(scope="module")
def checks() -> Iterator[Checks]:
    made = Checks()
    yield made
    made.close()


def settled(checks: Checks, folder: RunFolder) -> Findings:
    """What is found in the end."""
    tick = threading.Event()
    while (found := checks.findings(folder)).progress in (Progress.WAITING, Progress.RUNNING):
        tick.wait(0.02)
    return found


def told(folder: RunFolder) -> list[dict[str, Any]]:
    """What the checks of a run tell, in this process."""
    messages: list[dict[str, Any]] = []
    check(folder, None, messages.append)
    return json.loads(json.dumps(messages))


def findings(folder: RunFolder) -> list[Finding]:
    return [finding_of(one["finding"]) for one in told(folder) if "finding" in one]


def test_runs_are_checked_one_after_the_other_in_the_background(
    tmp_path: Path, checks: Checks
) -> None:
    folders = [hostile_run(tmp_path, name=name) for name in ("one", "two")]
    assert checks.findings(folders[0]).progress is Progress.WAITING
    checks.start(folders[1])
    for folder in folders:
        found = settled(checks, folder)
        assert found.progress is Progress.DONE
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
    checks.start(missing)
    checks.start(sound)
    failed = settled(checks, missing)
    assert failed.progress is Progress.FAILED
    assert "is no run's folder" in failed.trouble
    assert settled(checks, sound).progress is Progress.DONE


def test_a_trace_that_has_grown_is_checked_again(tmp_path: Path, checks: Checks) -> None:
    folder = written_run(tmp_path, plain_turn(1, "Yes."), kind="plain")
    before = settled(checks, folder)
    with folder.trace_path.open("ab") as file:
        file.write(b"no record\n" * 500)
    assert checks.findings(folder).found == before.found
    assert len(settled(checks, folder).found) > len(before.found)


def test_a_check_that_is_given_up_is_forgotten_and_begun_anew(
    tmp_path: Path, checks: Checks
) -> None:
    folder = written_run(tmp_path, plain_turn(1, "Yes."), kind="plain")
    checks.start(folder)
    checks.cancel(folder)
    assert checks.findings(folder).progress is Progress.WAITING
    assert settled(checks, folder).progress is Progress.DONE


def test_nothing_is_checked_after_the_end(tmp_path: Path) -> None:
    checks = Checks()
    folder = written_run(tmp_path, plain_turn(1, "Yes."), kind="plain")
    checks.start(folder)
    checks.close()
    checks.close()
    other = written_run(tmp_path, plain_turn(1, "Yes."), name="other", kind="plain")
    assert checks.findings(other).progress is Progress.WAITING


def test_a_domain_that_no_other_process_can_have_is_told(tmp_path: Path) -> None:
    class Local(Domain):
        """Known to this test only."""

    checks = Checks(domain=Local())
    folder = written_run(tmp_path, plain_turn(1, "Yes."), kind="plain")
    found = settled(checks, folder)
    checks.close()
    assert found.progress is Progress.FAILED
    assert "cannot be handed to another process" in found.trouble


# ---- what is found ----


def test_violations_are_placed_in_their_cycle_and_phase(tmp_path: Path) -> None:
    records = cycles_of("look", "clean")
    swapped = next(at for at, one in enumerate(records) if getattr(one, "phase", "") == "selection")
    records[swapped], records[swapped + 1] = records[swapped + 1], records[swapped]
    found = [one for one in findings(written_run(tmp_path, records)) if one.title == "phase"]
    assert found
    assert (found[0].cycle, found[0].phase, found[0].seq) == (1, Phase.EXECUTION, swapped)


def test_lines_that_were_changed_are_one_finding(tmp_path: Path) -> None:
    folder = written_run(tmp_path, cycles_of("look", "clean"))
    folder.trace_path.write_bytes(folder.trace_path.read_bytes().replace(b"dirty", b"tidy."))
    (found,) = [one for one in findings(folder) if one.title == "chain"]
    assert "has a hash that does not fit" in found.text
    assert "The same holds for 1 further lines" in found.text


@pytest.mark.parametrize(
    ("cause", "phase"),
    [
        (Cause.MISPERCEPTION, None),
        (Cause.MISSED_RETRIEVAL, Phase.RETRIEVAL),
        (Cause.BAD_SELECTION, Phase.SELECTION),
        (Cause.FAILED_EXECUTION, Phase.EXECUTION),
        (Cause.UNUSABLE_ANSWER, Phase.PROPOSAL),
        (None, None),
    ],
)
def test_causes_name_the_phase_at_fault_and_their_evidence(
    cause: Cause | None, phase: Phase | None
) -> None:
    evidence = Evidence(seq=7, cycle=2, phase=Phase.PROPOSAL, text="It said so.")
    found = cause_of(
        Diagnosis(cycle=2, failure="It fell.", cause=cause, reason="Hm.", evidence=(evidence,))
    )
    assert finding_of(json.loads(json.dumps(as_json(found)))) == found
    assert (found.title, found.phase) == (cause or "not attributable", phase)
    assert (found.cycle, found.seq, found.evidence) == (2, 7, ((7, "It said so."),))
    assert found.text == "It fell. Hm."


@pytest.mark.parametrize("cause", [Cause.MISPERCEPTION, Cause.CHANGED_ENVIRONMENT])
def test_what_the_world_brought_is_found_where_it_came_in(cause: Cause) -> None:
    evidence = Evidence(seq=7, cycle=2, phase=Phase.EXECUTION, text="It is 5.")
    found = cause_of(
        Diagnosis(
            cycle=2, failure="It fell.", cause=cause, reason="Hm.", evidence=(evidence,), follows=1
        )
    )
    assert (found.phase, found.follows) == (Phase.EXECUTION, 1)
    assert finding_of(json.loads(json.dumps(as_json(found)))) == found


def test_a_wrong_record_is_told_with_both_its_texts() -> None:
    evidence = tuple(
        Evidence(seq=seq, cycle=2, phase=Phase.RETRIEVAL, text=text)
        for seq, text in ((4, "It says 'a'."), (7, "It came as 'b'."))
    )
    found = cause_of(
        Diagnosis(
            cycle=2, failure="It fell.", cause=Cause.WRONG_FACT, reason="Hm.", evidence=evidence
        )
    )
    assert found.text == "It fell. Hm. It says 'a'. It came as 'b'."


def test_a_record_that_is_none_is_passed_over(tmp_path: Path) -> None:
    messages = told(hostile_run(tmp_path))
    remarks = [one["remark"] for one in messages if "remark" in one]
    assert not any("is no Record" in remark for remark in remarks)
    assert any("finding" in one for one in messages)
    assert messages[-1]["done"]


def test_a_run_without_a_trace_yet_is_no_failure(tmp_path: Path) -> None:
    folder = written_run(tmp_path, [])
    folder.trace_path.unlink()
    assert told(folder)[-1]["done"]


def test_a_trace_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = written_run(tmp_path, [])
    folder.trace_path.unlink()
    folder.trace_path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TraceError, match="is a link"):
        told(folder)


def test_findings_are_bounded(tmp_path: Path) -> None:
    folder = written_run(tmp_path, [])
    folder.trace_path.write_bytes(b"no record\n" * 2_000)
    messages = told(folder)
    assert sum("finding" in one for one in messages) == 300
    assert messages[-1]["left_out"] > 0


def test_the_process_tells_lines_of_json(tmp_path: Path) -> None:
    out = io.StringIO()
    run(order(tmp_path / "nothing", Domain()), out)
    (message,) = map(json.loads, out.getvalue().splitlines())
    assert message["done"]
    assert "is no run's folder" in message["trouble"]
