"""Texts beside earlier versions of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coag.inspector.tracks import diff

TEXT = st.lists(st.sampled_from(["one", "two", "three", ""]), min_size=1).map("\n".join)


@given(TEXT, TEXT, st.integers(0, 3))
def test_a_diff_rebuilds_both_texts(old: str, new: str, around: int) -> None:
    lines = diff(old, new, around=None)
    assert [line.text for line in lines if line.sort in ("same", "removed")] == old.split("\n")
    assert [line.text for line in lines if line.sort in ("same", "added")] == new.split("\n")
    folded = diff(old, new, around=around)
    changes = [line for line in lines if line.sort in ("added", "removed")]
    assert [line for line in folded if line.sort in ("added", "removed")] == changes
    skipped = sum(int(line.text) for line in folded if line.sort == "skipped")
    assert skipped + sum(line.sort != "skipped" for line in folded) == len(lines)


def test_lines_tell_their_numbers_in_both_texts() -> None:
    told = [(line.sort, line.old, line.new, line.text) for line in diff("a\nb", "a\nc")]
    assert told == [("same", 1, 1, "a"), ("removed", 2, None, "b"), ("added", None, 2, "c")]


def test_what_is_far_from_a_change_is_skipped() -> None:
    old = "\n".join(map(str, range(20)))
    lines = diff(old, old.replace("10", "ten"), around=1)
    assert [line.sort for line in lines] == [
        "skipped", "same", "removed", "added", "same", "skipped",
    ]  # fmt: skip
    assert lines[0].text == "9"


def test_long_texts_are_compared_in_bounds() -> None:
    lines = diff("x\n" * 5_000, "y" * 1_000_000, around=None)
    assert len(lines) == 2_002
    assert max(len(line.text) for line in lines) == 2_000
