from __future__ import annotations

from datetime import UTC, datetime, timedelta

from case_study.measures import figures_of
from coag.schema import (
    ModelCall,
    Note,
    OutputMode,
    Phase,
    TokenUsage,
    TraceRecord,
    TurnEnd,
    TurnStart,
)

AT = datetime(2026, 1, 1, tzinfo=UTC)


def _call(number: int, phase: Phase | None, error: str | None = None) -> ModelCall:
    return ModelCall(
        id=f"call-{number}",
        at=AT,
        cycle=1,
        phase=phase,
        model="m",
        rung=OutputMode.TEXT,
        attempt=1,
        messages=(),
        raw="?",
        usage=TokenUsage(),
        error=error,
    )


def test_an_answer_counts_as_unusable_once_and_only_if_it_stayed_so() -> None:
    records: list[TraceRecord] = [
        _call(1, Phase.REASONING, "not JSON"),
        _call(2, Phase.REASONING),
        _call(3, Phase.PROPOSAL, "not JSON"),
        _call(4, Phase.PROPOSAL, "not JSON"),
        Note(at=AT, cycle=1, about="fallback", text="The model proposed nothing usable."),
        Note(at=AT, cycle=1, about="repair", text="A comma."),
    ]
    figures = figures_of(records, ())
    assert (figures.model_calls, figures.questions, figures.unusable_answers) == (4, 2, 1)
    twice = figures + figures
    assert (twice.questions, twice.unusable_answers) == (4, 2)


def test_each_call_of_a_plain_agent_is_a_question() -> None:
    figures = figures_of([_call(1, None), _call(2, None)], ())
    assert (figures.questions, figures.unusable_answers) == (2, 0)


def test_the_time_between_a_break_and_the_going_on_is_nobodys() -> None:
    def after(seconds: int) -> datetime:
        return AT + timedelta(seconds=seconds)

    records: list[TraceRecord] = [
        TurnStart(at=after(0), turn=1, cycle=1),
        Note(at=after(4), cycle=1, about="memory", text="The last that was written."),
        Note(at=after(3_604), cycle=1, about="resume", text="Another process goes on."),
        TurnEnd(at=after(3_610), turn=1, cycle=2, response="Done.", reason="answered"),
        Note(at=after(9_000), cycle=2, about="resume", text="Between turns nothing is counted."),
        TurnStart(at=after(9_001), turn=2, cycle=2),
        TurnEnd(at=after(9_003), turn=2, cycle=3, response="Done.", reason="answered"),
    ]

    assert figures_of(records, ()).seconds == 4 + 6 + 2
