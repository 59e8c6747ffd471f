"""One run, read a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kits.hostile import hostile_run

from coag.errors import TraceError, UnknownNameError
from coag.inspector.library import Library
from coag.inspector.open_run import OpenRun
from coag.inspector.views import CycleView
from coag.proof import fork
from coag.schema import PHASES, ModelCall, Note, TraceRecord
from coag.tracing import RunFolder, read_trace

Opener = Callable[[RunFolder], OpenRun]
RunWriter = Callable[..., RunFolder]
Turns = Callable[[int], list[TraceRecord]]
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
broken = pytest.mark.broken_trace("traces are broken on purpose")


@pytest.fixture
def forager(foraged_once: RunFolder, open_alone: Opener) -> OpenRun:
    """A whole run of an agent with phases; only to be read."""
    return open_alone(foraged_once)


def test_a_run_is_shown_as_its_cycles(forager: OpenRun) -> None:
    view = forager.view()
    assert view.of == len(view.rows) == len(view.strip)
    assert [row.number for row in view.rows] == list(range(1, view.of + 1))
    assert (view.scanned, view.troubles) == (1.0, ())
    first, last = view.rows[0], view.rows[-1]
    assert first.phases == PHASES
    assert first.action == 'pick {"colour": "blue"}'
    assert first.situation == "It holds 0."
    assert (first.status, first.candidates, first.recalled) == ("done", 2, 1)
    assert "Picked a blue berry" in first.result
    assert first.usage.calls == 3
    assert None not in (first.at, first.seconds)
    assert (last.ended, last.internal) == ("respond", True)
    rejected = {(one.constraint, one.reason) for row in view.rows for one in row.rejected}
    assert rejected == {("two_are_enough", "it holds 2")}


def test_pages_are_parts_of_the_whole(
    write_run: RunWriter, plain_turns: Turns, open_alone: Opener
) -> None:
    run = open_alone(write_run(plain_turns(23)))
    rows = run.rows(0, 100)
    assert len(rows) == 23
    view = run.view(10, 5)
    assert (view.rows, view.first, view.of, view.page_size) == (rows[10:15], 10, 23, 5)
    assert run.view(1_000, 10).rows == rows[20:]
    assert run.view(-3, 5).rows == rows[:5]
    assert run.rows(22, 5) == rows[22:]
    assert run.rows(30, 5) == ()


# ---- plain runs ----


def test_a_plain_run_is_shown_as_its_turns(
    write_run: RunWriter, plain_turns: Turns, open_alone: Opener
) -> None:
    run = open_alone(write_run(plain_turns(2)))
    row, cycle = run.view().rows[1], run.cycle(2)
    assert (row.number, row.action, row.status, row.result) == (2, 'sell {"n": 1}', "done", "sold")
    assert (row.ended, row.phases, row.usage.cost, row.seconds) == ("stop", (), 0.5, 2.0)
    assert cycle.phases == ()
    assert [call.call.id for call in cycle.calls] == ["call-2"]
    effects = [(one.action, two and two.content) for one, two in cycle.summary.effects]
    assert effects == [("sell", "sold")]
    assert (cycle.before, cycle.after) == (1, None)
    assert cycle.calls[0].same_tokens == sum(message.tokens for message in cycle.calls[0].messages)


@pytest.mark.parametrize(
    ("reason", "status"), [("respond", "done"), ("error", "failed"), ("cancelled", "cancelled")]
)
def test_a_turn_that_only_answered_or_was_only_noted_says_so(
    write_run: RunWriter, plain_turns: Turns, open_alone: Opener, reason: str, status: str
) -> None:
    start, call, _, _, end = plain_turns(1)
    ended = end.model_copy(update={"reason": reason})
    noted = Note(at=NOW, cycle=2, about="constraint", text="it is forbidden")
    rows = open_alone(write_run([start, call, ended, noted])).view().rows
    assert [(row.number, row.action, row.result, row.status) for row in rows] == [
        (1, "", "ok", status),
        (2, "", "it is forbidden", ""),
    ]


def test_prompts_share_nothing_behind_a_message_of_another_role(
    write_run: RunWriter, plain_turns: Turns, open_alone: Opener
) -> None:
    turns = plain_turns(2)
    last = turns[6]
    assert isinstance(last, ModelCall)
    other = ({"role": "user", "content": "You sell."}, last.messages[1], {"role": 5})
    turns[6] = last.model_copy(update={"messages": other, "raw": "{broken"})
    call = open_alone(write_run(turns)).cycle(2).calls[0]
    assert (call.same_tokens, call.answer) == (0, None)
    assert (call.messages[2].role, call.messages[2].parts) == ("", ())


# ---- one cycle ----


def test_a_cycle_holds_everything_that_happened_in_it(forager: OpenRun) -> None:
    cycle = forager.cycle(2)
    assert [phase.phase for phase in cycle.phases] == list(PHASES)
    assert all(phase.outcome is not None for phase in cycle.phases)
    assert all(phase.seconds is not None and phase.seconds >= 0 for phase in cycle.phases)
    assert [len(phase.calls) for phase in cycle.phases] == [0, 1, 1, 1, 0, 0]
    assert cycle.row == forager.view().rows[1]
    assert cycle.summary.goal == "Fill the basket with berries."
    assert cycle.summary.state == {"held": 1, "colours": ["blue"]}
    assert [change.path for change in cycle.changed] == ["held", "colours"]
    assert cycle.environment == {"picked": ["blue"]}
    assert [percept.source for percept in cycle.summary.percepts] == ["pick"]
    assert [percept.source for percept in cycle.summary.returned] == ["pick"]
    effects = [(intent.action, receipt is not None) for intent, receipt in cycle.summary.effects]
    assert effects == [("pick", True)]
    assert [one.candidate.action for one in cycle.summary.candidates if one.chosen] == ["pick"]
    assert all(each.evaluation is not None for each in cycle.summary.candidates)
    assert (cycle.before, cycle.after, cycle.unreadable) == (1, 3, ())


def test_every_record_of_a_run_is_in_one_of_its_cycles(forager: OpenRun) -> None:
    cycles = [forager.cycle(row.number) for row in forager.view().rows]
    records = [entry.body for entry in read_trace(forager.folder.trace_path)]
    in_cycles = [each for cycle in cycles for each in _records(cycle)]
    for record in records:
        if record.record in ("outcome", "model_call", "intent", "receipt", "written", "note"):
            assert in_cycles.count(record) == 1
    ends = [cycle.summary.turn_end for cycle in cycles if cycle.summary.turn_end]
    assert ends == [record for record in records if record.record == "turn_end"]


def _records(cycle: CycleView) -> Iterable[TraceRecord]:
    for phase in cycle.phases:
        yield from [phase.outcome] if phase.outcome else []
        yield from (call.call for call in phase.calls)
        yield from phase.notes
    yield from (*cycle.summary.written, *cycle.notes)
    for intent, receipt in cycle.summary.effects:
        yield intent
        yield from [receipt] if receipt else []


def test_a_prompt_is_compared_with_the_one_that_it_repeats(forager: OpenRun) -> None:
    calls = [forager.cycle(number).phases[1].calls[0] for number in (1, 2)]
    first, second = (call.messages[0] for call in calls)
    assert not any(part.same for part in first.parts)
    assert all(part.same == len(part.text) for part in second.parts)
    assert calls[1].same_tokens >= second.tokens


def test_a_cycle_that_is_not_there_is_an_error(
    forager: OpenRun, write_run: RunWriter, plain_turns: Turns, open_alone: Opener
) -> None:
    for number in (0, -1, 99, 1 << 70):
        with pytest.raises(UnknownNameError, match="no cycle named"):
            forager.cycle(number)
    with pytest.raises(UnknownNameError, match="no turn named '9'"):
        open_alone(write_run(plain_turns(1))).cycle(9)


async def test_a_fork_shows_what_its_parent_had_committed_in_its_first_cycle(
    forager_run: RunFolder, tmp_path: Path, open_alone: Opener
) -> None:
    report = await fork(forager_run, "2.selection", logs=tmp_path / "forks")
    run = open_alone(RunFolder(Path(report.run)))
    cycle, parent = run.cycle(2), open_alone(forager_run).cycle(2)
    assert [phase.inherited for phase in cycle.phases] == [True] * 4 + [False] * 2
    outcomes = [[phase.outcome for phase in one.phases[1:4]] for one in (cycle, parent)]
    assert outcomes[0] == outcomes[1]
    assert cycle.summary.candidates == parent.summary.candidates
    assert cycle.row.phases == PHASES[4:]
    assert (cycle.summary.state, cycle.before) == (parent.summary.state, None)
    assert not any(phase.inherited for phase in run.cycle(3).phases)
    with pytest.raises(UnknownNameError, match="the earlier ones are its parent's"):
        run.cycle(1)


# ---- traces that grow, or are not as they were left ----


@broken
def test_a_run_is_followed_while_it_is_written(forager_run: RunFolder, open_alone: Opener) -> None:
    data = forager_run.trace_path.read_bytes()
    expected = open_alone(forager_run).view()
    forager_run.trace_path.write_bytes(b"")
    run = open_alone(forager_run)
    seen = 0
    for end in [*range(0, len(data), 3_001), len(data)]:
        forager_run.trace_path.write_bytes(data[:end])
        view = run.view()
        assert view.of >= seen
        assert view.rows[: max(view.of - 1, 0)] == expected.rows[: max(view.of - 1, 0)]
        if view.of:
            assert run.cycle(view.of).row == view.rows[-1]
        seen = view.of
    assert run.view() == expected


@broken
def test_a_trace_that_was_cut_or_replaced_is_read_again(
    forager_run: RunFolder, open_alone: Opener, tmp_path: Path
) -> None:
    run = open_alone(forager_run)
    before = run.view()
    data = forager_run.trace_path.read_bytes()
    forager_run.trace_path.write_bytes(data[: len(data) // 2])
    view = run.view()
    assert 0 < view.of < before.of
    assert "was cut while it was read" in view.troubles[0].text
    assert run.cycle(1).row == view.rows[0]
    other = tmp_path / "other.jsonl"
    other.write_bytes(b"x" * 5_000 + b"\n" + data)
    other.replace(forager_run.trace_path)
    assert run.cycle(1).row == before.rows[0]
    texts = [trouble.text for trouble in run.view().troubles]
    assert "was replaced by another file while it was read" in texts[1]


@broken
def test_damage_is_named_and_the_rest_is_shown(forager_run: RunFolder, open_alone: Opener) -> None:
    lines = forager_run.trace_path.read_bytes().splitlines(keepends=True)
    middle = len(lines) // 2
    lines[middle : middle + 2] = [b"\xff\xfe\n", b'{"v":7,"seq":1,"hash":"","body":{}}\n']
    forager_run.trace_path.write_bytes(b"".join(lines) + b'{"v":2')
    run = open_alone(forager_run)
    view = run.view()
    texts = [trouble.text for trouble in view.troubles]
    assert len(view.rows) > 3
    assert "half written, though the run has ended" in texts[0]
    assert texts[1].startswith(f"2 lines cannot be read and left out. The first: line {middle + 1}")
    bad = [text for row in view.rows for text in run.cycle(row.number).unreadable]
    assert len(bad) == 2
    assert "reads up to 2" in bad[1]


@broken
def test_a_run_that_has_not_ended_may_end_in_half_a_line(
    write_run: RunWriter, plain_turns: Turns, open_alone: Opener
) -> None:
    run = write_run(plain_turns(1), ended=False)
    with run.trace_path.open("ab") as file:
        file.write(b"{")
    (trouble,) = open_alone(run).view().troubles
    assert not trouble.grave
    assert "or it was killed" in trouble.text


@broken
@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ("none", "No record"),
        ("empty", "No record"),
        ("folder", "cannot be read"),
        ("link", "is a link"),
        ("foreign", "this is no trace of coag"),
    ],
)
def test_a_trace_that_cannot_be_read_is_a_grave_trouble(
    forager_run: RunFolder, open_alone: Opener, tmp_path: Path, made: str, problem: str
) -> None:
    path, elsewhere = forager_run.trace_path, tmp_path / "elsewhere"
    path.rename(elsewhere)
    make: dict[str, Callable[[], object]] = {
        "empty": path.touch,
        "folder": path.mkdir,
        "link": lambda: path.symlink_to(elsewhere),
        "foreign": lambda: path.write_bytes(b"\n" * 100_000),
    }
    make.get(made, dict)()
    view = open_alone(forager_run).view()
    trouble = view.troubles[0]
    assert trouble.grave
    assert view.rows == view.strip == ()
    assert problem in trouble.text
    assert str(tmp_path) not in trouble.text


@broken
def test_a_run_whose_description_vanishes_is_an_error(
    forager_run: RunFolder, open_alone: Opener
) -> None:
    run = open_alone(forager_run)
    forager_run.info_path.write_text("{}")
    with pytest.raises(TraceError, match=r"run\.json describes no run"):
        run.view()


@broken
def test_what_snapshots_lack_or_nobody_can_read_is_made_up_for(
    forager_run: RunFolder, open_alone: Opener
) -> None:
    expected = open_alone(forager_run).cycle(3).summary.state
    text = forager_run.trace_path.read_text()
    odd = text.replace('"percepts":[{', '"percepts":[7,{"record":1},{')
    forager_run.trace_path.write_text(odd)
    assert [one.source for one in open_alone(forager_run).cycle(2).summary.percepts] == ["pick"]
    left = [
        line
        for line in text.splitlines(keepends=True)
        if '"record":"snapshot"' not in line or '"reason":"opened"' in line
    ]
    forager_run.trace_path.write_text("".join(left))
    run = open_alone(forager_run)
    assert run.cycle(3).summary.state == expected
    assert [row.number for row in run.view().rows][:3] == [1, 2, 3]


@pytest.mark.broken_trace("a hostile run is no run of a mind")
def test_a_hostile_run_is_read_like_any_other(tmp_path: Path) -> None:
    hostile_run(tmp_path, cycles=3, size=2_000_000)
    run = Library(tmp_path).open("hostile-run")
    view = run.view()
    assert [row.number for row in view.rows] == [1, 2, 3]
    assert view.rows[2].impasse
    for row in view.rows:
        for text in (row.situation, row.action, row.result, row.ended):
            assert len(text) < 1_000
            assert len(text.splitlines()) <= 1
        cycle = run.cycle(row.number)
        for call in [call for phase in cycle.phases for call in phase.calls]:
            assert all(message.parts for message in call.messages)
        assert cycle.unreadable == ()


def test_a_long_run_is_scanned_as_far_as_a_page_needs_and_then_behind_it(
    write_run: RunWriter, plain_turns: Turns, tmp_path: Path
) -> None:
    turns = [
        each.model_copy(update={"raw": "x" * 1_200_000}) if isinstance(each, ModelCall) else each
        for each in plain_turns(4)
    ]
    folder = write_run(turns)
    library = Library(tmp_path / "logs")
    run = OpenRun("a-run", folder, library.card, ahead=0)
    view = run.view(0, 1)
    assert (view.of, view.strip) == (2, ())
    assert 0 < view.scanned < 1
    assert run.advance(0.0)
    while run.advance(10.0):
        pass
    whole = run.view(0, 1)
    assert (whole.of, whole.scanned, whole.rows) == (4, 1.0, view.rows)
