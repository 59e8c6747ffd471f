"""Values of the schema: clocks, ids, moments, phases, random states, candidates, records."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from coag.errors import StateError
from coag.schema import (
    PHASES,
    UNPARSED,
    Candidate,
    CountingIds,
    Evaluation,
    MemoryKind,
    Moment,
    Phase,
    ScoreParts,
    SteppingClock,
    SystemClock,
    TokenUsage,
    Verdict,
    content_id,
    new_run_id,
    parsed_arguments,
    phase_after,
    random_state,
    record_id,
    set_random,
)

NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)


def test_a_stepping_clock_moves_one_step_per_look_and_the_machines_never_runs_back() -> None:
    clock, machine = SteppingClock(NOON, timedelta(seconds=2)), SystemClock()
    assert [clock.now(), clock.now()] == [NOON, NOON + timedelta(seconds=2)]
    assert clock.monotonic() == 4.0
    assert machine.now().utcoffset() == timedelta(0)
    assert machine.monotonic() <= machine.monotonic()


@pytest.mark.parametrize("written", ["", "{soon", "[1]", "null", "7", "[" * 100_000, "9" * 5_000])
def test_arguments_are_recorded_and_what_is_no_object_as_it_was_written(written: str) -> None:
    assert parsed_arguments('{"x": [1, null]}') == {"x": [1, None]}
    assert parsed_arguments(written) == {UNPARSED: written}


# ---- ids ----


def test_ids_count_up_for_each_kind_and_begin_with_the_prefix() -> None:
    ids = CountingIds("run-7/")
    assert [ids("percept"), ids("percept"), ids("intent")] == [
        "run-7/percept-000001",
        "run-7/percept-000002",
        "run-7/intent-000001",
    ]


@given(st.lists(st.sampled_from(["percept", "intent", "call"])))
def test_no_id_comes_twice_wherever_counting_continues(kinds: list[str]) -> None:
    first = CountingIds()
    before = first.save()
    used = {first(kind) for kind in kinds}
    second = CountingIds(counts=first.save())
    first.load(before)
    for ids in (first, second):
        assert all(ids(kind) not in used for kind in kinds)
    assert before == {}


@given(name=st.text(max_size=80))
def test_a_run_id_is_a_plain_file_name_whatever_the_agents_name(name: str) -> None:
    assert re.fullmatch(r"20261121-120000-[\w-]{0,40}-[0-9a-f]{6}", new_run_id(NOON, name))


def test_run_ids_sort_by_time_and_differ() -> None:
    assert new_run_id(NOON, "zoe") < new_run_id(NOON + timedelta(seconds=1), "adam")
    assert len({new_run_id(NOON, "zoe") for _ in range(20)}) > 15  # by chance two may be alike


@given(st.lists(st.text(alphabet="ab", max_size=2), max_size=3))
def test_content_ids_are_equal_for_equal_parts_only(parts: list[str]) -> None:
    other = [*parts[:-1], *(parts[-1:] and [parts[-1] + "c"])]
    assert content_id(*parts) == content_id(*list(parts))
    assert (content_id(*parts) == content_id(*other)) == (parts == other)
    assert content_id("ab", "c") != content_id("a", "bc")


def test_a_record_is_its_text_whatever_its_white_space_in_its_scope_and_memory() -> None:
    spaced = record_id(MemoryKind.SEMANTIC, "agent", "  The  wall\nstands ")
    ids = {record_id(kind, scope, "The wall stands") for kind in MemoryKind for scope in "ab"}
    assert spaced == record_id(MemoryKind.SEMANTIC, "agent", "The wall stands")
    assert len(ids) == 4


# ---- moments and phases ----


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-11-22T07:44:18", "2026-11-22T07:44:18+00:00"),
        ("2026-11-22T07:44:18+02:00", "2026-11-22T07:44:18+02:00"),
    ],
)
def test_a_time_without_a_zone_is_read_as_utc(written: str, read: str) -> None:
    assert MOMENT.validate_python(written).isoformat() == read


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_utc_cannot_express_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="UTC"):
        MOMENT.validate_python(text)


def test_following_the_phases_visits_each_once_in_order() -> None:
    assert phase_after(None) is phase_after(Phase.EXECUTION) is Phase.RETRIEVAL
    assert [phase_after(phase) for phase in PHASES[:-1]] == list(PHASES[1:])
    names = "retrieval reasoning proposal evaluation selection execution"
    assert " ".join(PHASES) == names


# ---- the state of a random source ----


def test_a_source_continues_from_its_state_as_json() -> None:
    source, other = random.Random(7), random.Random(8)
    source.gauss(0, 1)  # one more value is kept in the state
    set_random(other, json.loads(json.dumps(random_state(source))))
    assert [other.gauss(0, 1), other.random()] == [source.gauss(0, 1), source.random()]


@pytest.mark.parametrize(
    "state",
    [
        "abc",
        7,
        [],
        [3, 5, None],
        [99, [], None],
        [3, [-1] * 625, None],
        [3, [1 << 99] * 625, None],
        [3, ["1"] * 625, None],
        [3, [*[1] * 624, 4_000], None],
        [3, [1] * 625, "soon"],
    ],
)
def test_what_is_no_state_is_refused_and_leaves_the_source_as_it_was(state: object) -> None:
    source = random.Random(7)
    before = source.getstate()
    with pytest.raises(StateError, match="no state of a random source"):
        set_random(source, state)
    assert source.getstate() == before


# ---- candidates, scores, usage ----


def test_weightiest_parts_come_first_and_what_adds_nothing_is_left_out() -> None:
    parts = ScoreParts(dense=0.2, lexical=0.41, recency=0.001, trust=-0.02)
    assert parts.describe() == "lexical +0.41, dense +0.20, trust -0.02"
    assert ScoreParts().describe() == ""


def test_a_part_that_was_added_later_is_written_only_where_it_adds_something() -> None:
    first = {"dense", "lexical", "neighbours", "episode", "source", "form"}
    first |= {"recency", "importance", "trust"}
    assert set(ScoreParts(dense=0.2).model_dump()) == first
    assert set(ScoreParts(mood=0.2).model_dump()) == {*first, "mood"}


@given(st.lists(st.booleans()))
def test_a_candidate_is_rejected_by_the_first_rule_that_forbids_it(answers: list[bool]) -> None:
    verdicts = tuple(
        Verdict.allow() if allowed else Verdict.forbid(f"rule {index}")
        for index, allowed in enumerate(answers)
    )
    evaluation = Evaluation(candidate_id="c1", arguments={}, verdicts=verdicts)
    assert evaluation.survived == all(answers)
    assert evaluation.rejected_by == (
        None if all(answers) else Verdict.forbid(f"rule {answers.index(False)}")
    )


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_score_lies_between_0_and_1(score: float) -> None:
    with pytest.raises(ValidationError):
        Candidate(id="c1", action="move", draft_score=score)


COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "calls")
USAGES = st.builds(TokenUsage, **dict.fromkeys(COUNTS, st.integers(0, 99)))


@given(left=USAGES, right=USAGES)
def test_usage_adds_up_field_by_field(left: TokenUsage, right: TokenUsage) -> None:
    total = left + right
    assert total == right + left
    for name in COUNTS:
        assert getattr(total, name) == getattr(left, name) + getattr(right, name)
    assert left + TokenUsage() == left


def test_the_old_names_still_work_and_warn() -> None:
    judged = Evaluation(candidate_id="c", arguments={}, verdicts=(Verdict.forbid("no"),))
    with pytest.warns(DeprecationWarning, match="rejected_by"):
        assert judged.died_of == judged.rejected_by  # pyright: ignore[reportDeprecated]
    with pytest.warns(DeprecationWarning, match="describe"):
        assert ScoreParts(dense=0.2).told() == "dense +0.20"  # pyright: ignore[reportDeprecated]
