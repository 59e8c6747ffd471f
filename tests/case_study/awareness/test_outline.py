from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_study.awareness import Section, parseable, read_outline, write_outline

OUTLINE = """\
<notes>
GOALS:
  [explicit] Learn Python (p=0.7)
    Install it
  Cook, soon

TOPICS: {'a', 'b'}, "one, two", three
[2 more left out]
</notes>
"""


def test_sections_and_items_come_back() -> None:
    goals, topics = read_outline(OUTLINE).sections
    assert goals == Section(
        heading="GOALS",
        items=("[explicit] Learn Python (p=0.7)", "Install it", "Cook, soon"),
        depths=(0, 2, 0),
    )
    assert topics.items == ("{'a', 'b'}", '"one, two"', "three")
    assert parseable(OUTLINE) == 1


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("", 0.0),
        ("They want to learn Python.", 0.0),
        ("GOALS:\n  Learn\nand then some prose", 0.0),
        ("User: Hello.\nAssistant: Hello.\nUser: Bye.", 0.5),
        ("Goal: learn\nMood: happy", 1.0),
        ("Goals:\n- learn\n- cook", 1.0),
    ],
)
def test_prose_is_not_parsed_a_transcript_in_part_and_an_outline_whole(
    text: str, worth: float
) -> None:
    assert parseable(text) == worth


_WORDS = st.text(st.sampled_from("abcdefgh XYZ"), min_size=1, max_size=12).map(str.strip)
_ITEMS = st.lists(_WORDS.filter(bool), min_size=1, max_size=4)


@given(st.dictionaries(_WORDS.filter(bool), _ITEMS, min_size=1, max_size=4))
def test_what_is_written_as_an_outline_is_read_back(sections: dict[str, list[str]]) -> None:
    text = "\n".join(
        "\n".join([f"{heading}:", *(f"  {item}" for item in items)])
        for heading, items in sections.items()
    )
    outline = read_outline(text)
    assert {one.heading: list(one.items) for one in outline.sections} == sections
    assert write_outline(outline) == text
