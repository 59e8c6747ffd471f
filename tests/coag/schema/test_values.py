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
    SelectionOutcome,
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


def test_a_stepping_clock_moves_one_step_per_look() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    clock = SteppingClock(start, timedelta(seconds=2))
    assert [clock.now(), clock.now()] == [start, start + timedelta(seconds=2)]
    assert clock.monotonic() == 4.0


def test_the_machines_clock_knows_its_zone_and_never_runs_back() -> None:
    clock = SystemClock()
    assert clock.now().utcoffset() == timedelta(0)
    assert clock.monotonic() <= clock.monotonic()


def test_an_object_is_recorded_as_it_is() -> None:
    assert parsed_arguments('{"x": [1, null]}') == {"x": [1, None]}


@pytest.mark.parametrize("written", ["", "{soon", "[1]", "null", "7", "[" * 100_000, "9" * 5_000])
def test_what_is_no_object_is_recorded_as_it_was_written(written: str) -> None:
    assert parsed_arguments(written) == {UNPARSED: written}


NOON = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)


def test_ids_count_up_for_each_kind() -> None:
    ids = CountingIds()
    assert [ids("percept"), ids("percept"), ids("intent")] == [
        "percept-000001",
        "percept-000002",
        "intent-000001",
    ]


def test_a_prefix_stands_before_every_id() -> None:
    assert CountingIds("run-7/")("intent") == "run-7/intent-000001"


@given(st.lists(st.sampled_from(["percept", "intent", "call"])))
def test_ids_go_on_from_where_they_were_saved(kinds: list[str]) -> None:
    first = CountingIds()
    used = {first(kind) for kind in kinds}
    second = CountingIds(counts=first.save())
    assert all(second(kind) not in used for kind in kinds)


def test_loading_older_counts_never_gives_an_id_twice() -> None:
    ids = CountingIds()
    old = ids.save()
    used = {ids("intent"), ids("intent")}
    ids.load(old)
    assert ids("intent") not in used


def test_saved_counts_do_not_follow_the_source() -> None:
    ids = CountingIds()
    saved = ids.save()
    ids("intent")
    assert saved == {}


@given(name=st.text(max_size=80))
def test_a_run_id_is_a_plain_file_name_whatever_the_agents_name(name: str) -> None:
    assert re.fullmatch(r"20261121-120000-[\w-]{0,40}-[0-9a-f]{6}", new_run_id(NOON, name))


def test_run_ids_sort_by_time_and_differ() -> None:
    assert new_run_id(NOON, "zoe") < new_run_id(LATER, "adam")
    assert len({new_run_id(NOON, "zoe") for _ in range(20)}) == 20


@given(st.lists(st.text(alphabet="ab", max_size=2), max_size=3))
def test_content_ids_are_equal_for_equal_parts_only(parts: list[str]) -> None:
    other = [*parts[:-1], *(parts[-1:] and [parts[-1] + "c"])]
    assert content_id(*parts) == content_id(*list(parts))
    assert (content_id(*parts) == content_id(*other)) == (parts == other)


def test_where_parts_divide_makes_a_difference() -> None:
    assert content_id("ab", "c") != content_id("a", "bc")


def test_a_record_is_the_same_whatever_its_white_space() -> None:
    spaced = record_id(MemoryKind.SEMANTIC, "agent", "  The  wall\nstands ")
    assert spaced == record_id(MemoryKind.SEMANTIC, "agent", "The wall stands")


def test_equal_text_of_another_scope_or_memory_is_another_record() -> None:
    ids = {
        record_id(kind, scope, "The wall stands")
        for kind in MemoryKind
        for scope in ("agent", "other")
    }
    assert len(ids) == 4


MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)


def test_a_time_without_a_zone_is_read_as_utc() -> None:
    assert MOMENT.validate_json('"2026-11-22T07:44:18"') == datetime(
        2026, 11, 22, 7, 44, 18, tzinfo=UTC
    )


def test_a_time_with_a_zone_stays_as_it_is() -> None:
    told = MOMENT.validate_json('"2026-11-22T07:44:18+02:00"')
    assert told.isoformat() == "2026-11-22T07:44:18+02:00"


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_utc_cannot_tell_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="UTC"):
        MOMENT.validate_python(text)


def test_a_cycle_starts_with_retrieval() -> None:
    assert phase_after(None) is Phase.RETRIEVAL


def test_after_execution_the_next_cycle_starts() -> None:
    assert phase_after(Phase.EXECUTION) is Phase.RETRIEVAL


def test_following_the_phases_visits_each_once_in_order() -> None:
    visited: list[Phase] = []
    phase = phase_after(None)
    while phase not in visited:
        visited.append(phase)
        phase = phase_after(phase)
    assert tuple(visited) == PHASES
    assert [str(each) for each in PHASES] == [
        "retrieval",
        "reasoning",
        "proposal",
        "evaluation",
        "selection",
        "execution",
    ]


def test_a_source_goes_on_from_its_state_as_json() -> None:
    source, other = random.Random(7), random.Random(8)
    source.gauss(0, 1)  # one more value is kept in the state
    set_random(other, json.loads(json.dumps(random_state(source))))
    assert [other.gauss(0, 1), other.random()] == [source.gauss(0, 1), source.random()]


@pytest.mark.parametrize(
    "state",
    [
        "abc",
        7,
        {},
        [],
        [3, [1, 2], None],
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


def test_weightiest_parts_come_first_and_what_adds_nothing_is_not_told() -> None:
    parts = ScoreParts(dense=0.2, lexical=0.41, recency=0.001, trust=-0.02)
    assert parts.told() == "lexical +0.41, dense +0.20, trust -0.02"


def test_no_parts_tell_nothing() -> None:
    assert ScoreParts().told() == ""


USAGES = st.builds(
    TokenUsage,
    prompt_tokens=st.integers(0, 99),
    completion_tokens=st.integers(0, 99),
    cached_tokens=st.integers(0, 99),
    calls=st.integers(0, 9),
)


@given(st.lists(st.booleans()))
def test_a_candidate_survives_exactly_if_nothing_forbids_it(answers: list[bool]) -> None:
    verdicts = tuple(
        Verdict.allow() if allowed else Verdict.forbid(f"rule {index}")
        for index, allowed in enumerate(answers)
    )
    evaluation = Evaluation(candidate_id="c1", arguments={}, verdicts=verdicts)
    assert evaluation.survived == all(answers)
    assert evaluation.survived == (evaluation.died_of is None)


def test_a_candidate_dies_of_the_first_rule_that_forbids_it() -> None:
    verdicts = (Verdict.allow(), Verdict.forbid("no charge"), Verdict.forbid("a wall"))
    evaluation = Evaluation(candidate_id="c1", arguments={}, verdicts=verdicts)
    assert evaluation.died_of == Verdict.forbid("no charge")


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_score_lies_between_0_and_1(score: float) -> None:
    with pytest.raises(ValidationError):
        Candidate(id="c1", action="move", draft_score=score)


def test_a_selection_of_nothing_is_an_impasse() -> None:
    now = SteppingClock().now()
    assert SelectionOutcome(cycle=1, at=now).impasse
    assert not SelectionOutcome(cycle=1, at=now, candidate_id="c1").impasse


@given(left=USAGES, right=USAGES)
def test_usage_adds_up_field_by_field(left: TokenUsage, right: TokenUsage) -> None:
    total = left + right
    assert total == right + left
    assert total.prompt_tokens == left.prompt_tokens + right.prompt_tokens
    assert total.completion_tokens == left.completion_tokens + right.completion_tokens
    assert total.cached_tokens == left.cached_tokens + right.cached_tokens
    assert total.calls == left.calls + right.calls
    assert left + TokenUsage() == left
