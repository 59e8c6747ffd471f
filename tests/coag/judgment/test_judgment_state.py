"""The file of a judgment: shared, never half written, read from its copy where it is spoiled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.errors import CoagError, JudgmentError
from coag.judgment import DeadEnd, Judgment, Origin
from coag.judgment.state import STATE_VERSION, StateFile, new_state, parsed_state

REPORTS = """
import sys
from coag.judgment import Judgment
judgment = Judgment(sys.argv[1])
for n in range(int(sys.argv[2])):
    judgment.report("a", 1.0, source=sys.argv[3])
    print(n, flush=True)
"""


def reporter(path: Path, times: int, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", REPORTS, str(path), str(times), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def begun(path: Path) -> Judgment:
    judgment = Judgment(path)
    judgment.init({"capabilities": [{"name": "a"}, {"name": "b"}]})
    return judgment


def test_processes_that_report_at_once_lose_no_report(tmp_path: Path) -> None:
    judgment = begun(tmp_path / "j.json")
    writers = [reporter(tmp_path / "j.json", 15, f"agent {n}") for n in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    for writer in writers:
        writer.communicate()
    assert judgment.status()["advice"]["reports"] == 45
    counts = {f"agent {n}": 15 for n in range(3)}
    stored = parsed_state((tmp_path / "j.json").read_text())["steps"]
    assert {name: sum(one["source"] == name for one in stored) for name in counts} == counts


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    judgment = begun(tmp_path / "j.json")
    acknowledged = 0
    for kill_after in (1, 2, 4):
        writer = reporter(tmp_path / "j.json", 1_000, "agent")
        assert writer.stdout is not None
        for _ in range(kill_after):
            writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        acknowledged += kill_after + len(writer.communicate()[0].splitlines())
        reports = judgment.status()["advice"]["reports"]
        # The one that was stored but not yet printed when the process died may be there, too.
        assert acknowledged <= reports <= acknowledged + 1
        assert judgment.problem == ""
        acknowledged = reports


@pytest.mark.parametrize("spoiled", ["", "{", '{"version": 1}', "[]", '{"version": 99', "null"])
def test_of_a_spoiled_file_the_last_good_copy_is_used_and_said(
    tmp_path: Path, spoiled: str
) -> None:
    path = tmp_path / "j.json"
    begun(path).report("a", 1.0)
    path.write_text(spoiled)
    judgment = Judgment(path)
    assert judgment.status()["advice"]["reports"] == 1
    assert "the last good copy j.json.good is used" in judgment.status()["problem"]
    assert "last good copy" in judgment.resume()
    assert "last good copy" in judgment.report("b", 1.0).problem
    assert judgment.status()["problem"] == ""
    assert Judgment(path).status()["advice"]["reports"] == 2
    assert (tmp_path / "j.json.spoiled").read_text() == spoiled


def test_a_lost_file_is_taken_from_its_copy(tmp_path: Path) -> None:
    begun(tmp_path / "j.json").report("a", 1.0)
    (tmp_path / "j.json").unlink()
    judgment = Judgment(tmp_path / "j.json")
    assert judgment.status()["advice"]["reports"] == 1
    assert "j.json is missing" in judgment.problem


def test_where_the_copy_is_spoiled_too_nothing_is_used_and_nothing_overwritten(
    tmp_path: Path,
) -> None:
    begun(tmp_path / "j.json")
    for name in ("j.json", "j.json.good"):
        (tmp_path / name).write_text("{")
    judgment = Judgment(tmp_path / "j.json")
    with pytest.raises(JudgmentError, match="Restore one of them, or remove both"):
        judgment.report("a", 1.0)
    assert (tmp_path / "j.json").read_text() == "{"


def test_a_file_of_a_later_version_is_not_replaced_by_its_older_copy(tmp_path: Path) -> None:
    path = tmp_path / "j.json"
    begun(path).report("a", 1.0)
    newer = json.dumps({**json.loads(path.read_text()), "version": STATE_VERSION + 1})
    path.write_text(newer)
    with pytest.raises(JudgmentError, match="written by a newer coag"):
        Judgment(path).report("a", 1.0)
    assert path.read_text() == newer


def test_a_change_that_fails_is_not_stored(tmp_path: Path) -> None:
    for file in (StateFile(None), StateFile(tmp_path / "j.json")):
        with pytest.raises(KeyError), file.changing() as state:
            del state["failures"]["x"]
        assert file.read()["failures"] == {}


def test_a_state_is_read_again_only_when_its_file_has_changed(tmp_path: Path) -> None:
    file, other = StateFile(tmp_path / "j.json"), StateFile(tmp_path / "j.json")
    file.begin(new_state(), anew=False)
    assert file.read() is file.read()
    before = file.read()
    with other.changing() as state:
        state["failures"]["x"] = 1
    assert file.read() is not before
    assert file.read()["failures"] == {"x": 1}


@pytest.mark.parametrize("name", ["file/j.json", "folder", "j" * 238])  # its copy's is too long
def test_a_file_that_cannot_be_written_is_said_and_nothing_is_stored(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(JudgmentError, match="cannot be"):
        Judgment(tmp_path / name).init(anew=True)
    assert not (tmp_path / name).is_file()


# ---- A file that is JSON and no state ----


def used() -> str:
    """A state with something in each of its parts."""
    judgment = Judgment()
    judgment.init([{"name": "a"}, {"name": "b"}])
    origin = Origin(source="s", at=datetime(2026, 1, 1, tzinfo=UTC))
    judgment.reflect(DeadEnd(origin=origin, topic="t", why_closed="w"))
    asked = judgment.consult("a", current="b", store=True).id
    for _ in range(5):
        judgment.report("a", 1.0, consultation=asked)
    judgment.note_failure("x", True)
    file = StateFile(None)
    with file.changing() as state:
        state.update(judgment.learned(100_000) or {})
        state["steps"] = [dict(step) for step in STEPS]
        state["consultations"] = [{"id": "c1", "current": "b", "shares": {"a": 1.0}}]
    return json.dumps(file.read())


STEPS: list[dict[str, Any]] = [
    {"at": "2026-01-01", "from": "b", "used": "a", "reward": 1.0, "cost": 0.0, "source": "agent",
     "trust": "user", "moved": 0.1, "before": [0.0, 0, 0.0, 0.0, 1.0], "shares": {"a": 1.0},
     "override": False, "drawn": True},
]  # fmt: skip
USED = used()
USES: tuple[Callable[[Judgment], object], ...] = (
    lambda j: j.consult("a"),
    lambda j: j.report("a", 0.5, current="b"),
    lambda j: j.report("a", 1.0, consultation="c1"),
    lambda j: j.revoke(source="agent"),
    lambda j: j.status(),
    lambda j: j.resume(),
    lambda j: j.choices(),
    lambda j: j.note_failure("x", True),
    lambda j: j.synthesize(),
)


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if here:
        yield here
    inside: dict[Any, Any] = {}
    if isinstance(value, dict):
        inside = cast("dict[Any, Any]", value)
    elif isinstance(value, list):
        inside = dict(enumerate(cast("list[Any]", value)))
    for name, each in inside.items():
        yield from places(each, (*here, name))


@given(
    st.sampled_from(sorted(places(json.loads(USED)), key=str)),
    st.sampled_from([None, "x", -1, float("nan"), float("inf"), "1e309", [], {}, [1], "gone"]),
    st.sampled_from(USES),
)
def test_a_spoiled_value_is_said_and_never_crashes(
    tmp_path_factory: pytest.TempPathFactory,
    place: tuple[Any, ...],
    value: Any,
    use: Callable[[Judgment], object],
) -> None:
    state = json.loads(USED)
    part = state
    for name in place[:-1]:
        part = part[name]
    if value == "gone":
        del part[place[-1]]
    else:
        part[place[-1]] = value
    path = tmp_path_factory.mktemp("j") / "j.json"
    path.write_text(json.dumps(state).replace('"1e309"', "1e309"))
    with suppress(CoagError):
        use(Judgment(path))


def test_what_cannot_be_written_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for judgment in (Judgment(), begun(tmp_path / "j.json")):
        for wrong in ({"x": float("nan")}, {"x": object()}):
            with pytest.raises(JudgmentError, match="cannot be written as JSON"):
                judgment.reflect(
                    DeadEnd(origin=Origin(source="s", at=at), topic="t", why_closed="w",
                            arguments=wrong)
                )  # fmt: skip
        assert judgment.entries() == ()


def test_halves_of_characters_come_back_so_that_a_dead_end_is_found_by_its_id(
    tmp_path: Path,
) -> None:
    judgment = begun(tmp_path / "j.json")
    origin = Origin(source="s", at=datetime(2026, 1, 1, tzinfo=UTC))
    (name,) = judgment.reflect(DeadEnd(origin=origin, topic="\ud800", why_closed="w"))
    other = Judgment(tmp_path / "j.json")
    assert [one.id for one in other.dead_ends()] == [name]
    other.reopen({name: "so it is"})
    assert judgment.dead_ends() == ()
