from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.situated import SignalRecord
from coag.situated.calls import SignalLog

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def log_of(count: int, *, keep: int = 10_000, epoch: str = "a1") -> SignalLog:
    log = SignalLog("pump", epoch, keep)
    for number in range(1, count + 1):
        log.append("beat", {"number": number}, rev=number, timestamp=NOW, cause=f"key-{number}")
    return log


def numbers(events: tuple[SignalRecord, ...]) -> list[int]:
    return [event.data["number"] for event in events]


def test_a_record_has_its_place_and_an_id_that_no_other_tool_or_epoch_gives() -> None:
    first, second = log_of(2).after(None).events

    assert (first.event_id, first.cursor) == ("pump/a1/1", "a1:1")
    assert (second.event_id, second.cursor, second.rev) == ("pump/a1/2", "a1:2", 2)
    assert second.cause == "key-2"


@given(
    count=st.integers(0, 60),
    keep=st.integers(1, 20),
    start=st.integers(0, 60),
    limit=st.integers(1, 25),
)
def test_following_the_pages_gives_every_signal_that_is_kept_once_and_in_order(
    count: int, keep: int, start: int, limit: int
) -> None:
    log = log_of(count, keep=keep)
    cursor: str | None = f"a1:{min(start, count)}"
    expected = list(range(max(min(start, count), count - keep) + 1, count + 1))
    found: list[int] = []
    first = True

    while True:
        page = log.after(cursor, limit)
        assert len(page.events) <= limit
        assert page.truncated is (first and min(start, count) < count - keep)
        if not page.events:
            break
        found, cursor, first = found + numbers(page.events), page.cursor, False

    assert found == expected
    assert cursor == log.end or count == min(start, count)


@given(
    count=st.integers(0, 40),
    keep=st.integers(1, 20),
    other=st.text("0123456789abcdef:", min_size=1, max_size=8),
    number=st.integers(0, 80),
)
def test_a_cursor_of_another_epoch_reads_all_that_is_kept_and_says_that_signals_are_missing(
    count: int, keep: int, other: str, number: int
) -> None:
    log = log_of(count, keep=keep, epoch="mine")

    page = log.after(f"{other}:{number}")

    assert page.truncated
    assert page.events == log.after(None).events
    assert page.cursor == log.end


def test_a_cursor_beyond_the_end_is_none_that_the_log_gave() -> None:
    page = log_of(3).after("a1:4")

    assert page.truncated
    assert numbers(page.events) == [1, 2, 3]


@given(st.lists(st.integers(1, 30), max_size=6), st.integers(1, 20))
def test_a_reader_that_keeps_up_misses_nothing_whatever_is_kept(
    bursts: list[int], keep: int
) -> None:
    log = SignalLog("pump", "a1", keep)
    cursor, found, sent = log.end, list[int](), 0
    for burst in bursts:
        for _ in range(min(burst, keep)):
            sent += 1
            log.append("beat", {"number": sent}, rev=0, timestamp=NOW)
        page = log.after(cursor)
        assert not page.truncated
        found, cursor = found + numbers(page.events), page.cursor

    assert found == list(range(1, sent + 1))


@pytest.mark.parametrize("text", ["", "17", ":17", "a1:", "a1:-1", "a1:x", "a1:1.5"])
def test_a_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no cursor"):
        log_of(3).after(text)


def test_a_log_keeps_at_least_one_signal_and_a_page_holds_one() -> None:
    with pytest.raises(ValueError, match="keep=0"):
        SignalLog("pump", "a1", 0)
    with pytest.raises(ValueError, match="limit=0"):
        log_of(1).after(None, 0)
