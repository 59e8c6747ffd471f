from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from case_study.maintainability import effort_of

LINES = st.lists(st.sampled_from(["a", "b", "c", "-- d", "++ e", ""]), max_size=8)
TEXTS = st.dictionaries(st.sampled_from(["x.py", "y.md", "z.md"]), LINES.map("\n".join))


def test_a_changed_line_is_one_gone_and_one_new() -> None:
    found = effort_of({"a.md": "one\ntwo\n", "b.md": "same"}, {"a.md": "one\n2\n", "b.md": "same"})
    assert (found.files, found.added, found.removed, found.lines) == (1, 1, 1, 2)
    assert found.diff.splitlines()[:2] == ["--- a/a.md", "+++ b/a.md"]


def test_a_new_file_counts_with_all_its_lines() -> None:
    found = effort_of({}, {"a.md": "one\ntwo\n"})
    assert (found.files, found.added, found.removed) == (1, 2, 0)


@given(TEXTS, TEXTS)
def test_lines_that_are_new_less_those_that_are_gone_are_the_growth(
    before: dict[str, str], after: dict[str, str]
) -> None:
    found = effort_of(before, after)
    sizes = [sum(len(text.splitlines()) for text in side.values()) for side in (before, after)]
    assert found.added - found.removed == sizes[1] - sizes[0]
    assert effort_of(before, before).lines == 0
