"""What a recalled record says of itself."""

from __future__ import annotations

from coag.schema import ScoreParts


def test_weightiest_parts_come_first_and_what_adds_nothing_is_not_told() -> None:
    parts = ScoreParts(dense=0.2, lexical=0.41, recency=0.001, trust=-0.02)
    assert parts.told() == "lexical +0.41, dense +0.20, trust -0.02"


def test_no_parts_tell_nothing() -> None:
    assert ScoreParts().told() == ""
