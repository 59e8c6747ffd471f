"""Readings that are kept are not asked for again, and a failed one stays failed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from case_study.awareness import CachedPerception
from coag.awareness import AwarenessState, ConversationAdapter, RulePerception, new_state
from coag.errors import ConfigurationError, ModelAnswerError
from coag.schema import SteppingClock

TEXT = "I want to learn Python."


class Counting:
    """Reads by rules, counts, and finds nothing usable in what it is told to."""

    def __init__(self, fails_on: str = "") -> None:
        self.asked: list[str] = []
        self._fails_on = fails_on

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        self.asked.append(text)
        if text == self._fails_on:
            raise ModelAnswerError(expected="conversation", problem="no JSON", raw="?", attempts=2)
        return await RulePerception().perceive(text, state)


@pytest.fixture
def state() -> AwarenessState:
    return new_state(ConversationAdapter(), SteppingClock())


async def test_what_was_read_is_not_asked_again_by_another_process(
    tmp_path: Path, state: AwarenessState
) -> None:
    file = tmp_path / "readings.jsonl"
    first = await CachedPerception(Counting(), file, "one").perceive(TEXT, state)
    later = Counting()
    assert await CachedPerception(later, file, "one").perceive(TEXT, state) == first
    assert later.asked == []


async def test_another_reader_or_another_state_is_asked(
    tmp_path: Path, state: AwarenessState
) -> None:
    file, counting = tmp_path / "readings.jsonl", Counting()
    await CachedPerception(counting, file, "one").perceive(TEXT, state)
    other = CachedPerception(counting, file, "another")
    await other.perceive(TEXT, state)
    await other.perceive(f"{TEXT} Now.", state)
    assert len(counting.asked) == 3
    assert len(file.read_text().splitlines()) == 3


async def test_a_reading_that_failed_fails_alike_without_being_asked_again(
    tmp_path: Path, state: AwarenessState
) -> None:
    file, counting = tmp_path / "readings.jsonl", Counting(fails_on=TEXT)
    said: list[str] = []
    for _ in range(2):
        with pytest.raises(ModelAnswerError, match="no JSON") as caught:
            await CachedPerception(counting, file, "one").perceive(TEXT, state)
        said.append(str(caught.value))
    assert counting.asked == [TEXT]
    assert said[0] == said[1]


async def test_a_line_that_was_cut_off_is_read_again(
    tmp_path: Path, state: AwarenessState, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "readings.jsonl"
    await CachedPerception(Counting(), file, "one").perceive(TEXT, state)
    file.write_bytes(file.read_bytes()[:-9])
    counting = Counting()
    await CachedPerception(counting, file, "one").perceive(TEXT, state)
    assert counting.asked == [TEXT]
    assert "was cut off" in caplog.text
    later = Counting()
    await CachedPerception(later, file, "one").perceive(TEXT, state)
    assert later.asked == []


@pytest.mark.parametrize("text", ["hello\n", '{"my": "config"}', "one\ntwo", "\n\n", "\udc80"])
def test_a_file_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path, text: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_bytes(held := text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigurationError, match=r"holds no readings.*Give another file"):
        CachedPerception(Counting(), file, "one")
    assert file.read_bytes() == held


async def test_texts_with_any_line_separators_are_read_again(
    tmp_path: Path, state: AwarenessState
) -> None:
    file, text = tmp_path / "readings.jsonl", "I want to learn\u2028Python.\x85Now."
    await CachedPerception(Counting(), file, "one").perceive(text, state)
    later = Counting()
    await CachedPerception(later, file, "one").perceive(text, state)
    assert later.asked == []


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Readings cannot be read"):
        CachedPerception(Counting(), tmp_path, "one")
