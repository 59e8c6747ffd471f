"""Names for things."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from coag.schema import CountingIds, MemoryKind, content_id, new_run_id, record_id

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
