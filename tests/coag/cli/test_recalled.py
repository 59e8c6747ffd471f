"""What the log tells of recalled records."""

from __future__ import annotations

from datetime import UTC, datetime

from kits.remembered import remembered

from coag.cli._lines import RunLines
from coag.schema import RecalledRecord, RetrievalOutcome, ScoreParts

HIT = RecalledRecord(
    record=remembered("A wall stands at (2,1)."),
    score=0.6,
    why=ScoreParts(dense=0.2, lexical=0.41, recency=0.001, trust=-0.02),
)


def test_log_tells_why_each_record_came_and_what_had_no_room() -> None:
    outcome = RetrievalOutcome(
        cycle=1,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        query="walls",
        records=(HIT,),
        left_out=("0123456789abcdef",),
    )
    lines = [text.plain.strip() for text in RunLines().of(outcome)]
    assert lines[2:] == [
        "why: lexical +0.41, dense +0.20, trust -0.02",
        "no room in the prompt for: 0123456789ab",
    ]


def test_a_record_of_which_no_reason_is_known_stands_without_one() -> None:
    outcome = RetrievalOutcome(
        cycle=1,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        query="walls",
        records=(HIT.model_copy(update={"why": None}),),
    )
    assert not any("why" in text.plain for text in RunLines().of(outcome))
