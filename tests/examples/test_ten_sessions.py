"""Ten sessions of a small game: its characters' memories differ, and can be distinguished."""

from __future__ import annotations

import sys

import pytest

from coag.models import ScriptedModel, StructuredModel, scripted_answers
from coag.store import HashEmbedder, InMemoryStore
from examples.ten_sessions import (
    BlindReading,
    PlayedSession,
    emotional_score,
    load_story,
    play,
    read_pairs,
    script,
)
from examples.ten_sessions.__main__ import main


async def _played(model: StructuredModel | None = None) -> list[PlayedSession]:
    store = InMemoryStore(HashEmbedder())
    return [one async for one in play(load_story(), store, model)]


@pytest.mark.parametrize("scripted", [True, False])
async def test_ten_sessions_are_remembered_by_three_characters(scripted: bool) -> None:
    model = StructuredModel(ScriptedModel(script)) if scripted else None
    played = await _played(model)
    assert [one.name for one in played] == [f"session {n}" for n in range(1, 11)]
    assert [one.end.problems for one in played] == [()] * 10
    for one in played:
        by_event: dict[str, set[str]] = {}
        for kept in one.report.perspectives:
            if kept.how != "objective" and kept.record:
                by_event.setdefault(kept.event, set()).add(kept.record.text)
        assert all(len(texts) >= 2 for texts in by_event.values())
    last = played[-1].end
    assert [one.title for one in last.threads] == ["The debt to Mira"]
    assert [len(recaps) for _, recaps in played[-1].start.recaps] == [3, 3, 3]


async def test_rules_distinguish_the_most_emotional_character_from_the_coolest() -> None:
    pairs: list[tuple[str, str]] = []
    for session in await _played():
        texts = {
            (one.event, one.witness): one.record.text
            for one in session.report.perspectives
            if one.how == "rules" and one.record
        }
        events = dict.fromkeys(event for event, _ in texts)
        pairs += [
            (texts[event, "Lyra"], texts[event, "Holt"])
            for event in events
            if (event, "Lyra") in texts and (event, "Holt") in texts
        ]
    read = await read_pairs(pairs, ["Lyra", "Holt", "Mira"])
    assert read.right >= 0.9 * len(pairs)
    assert len(pairs) >= 12


async def test_a_model_that_says_the_same_in_either_order_has_decided() -> None:
    answers = [{"text": one} for one in ("A", "B", "B", "A", "A", "A")]
    down = RuntimeError("down")
    model = StructuredModel(ScriptedModel(scripted_answers([*answers, down, down])))
    pair = ("I wept.", "It rained.")
    read = await read_pairs([pair] * 4, [], model)
    assert read == BlindReading(right=1, wrong=1, undecided=2)
    assert str(read) == "1 of 4 right, 1 wrong, 2 undecided"


def test_words_of_feeling_make_a_text_emotional() -> None:
    assert emotional_score("I was terrified, and I cried.") > emotional_score("It was counted.")


@pytest.mark.parametrize("rules", [True, False])
async def test_the_example_prints_what_is_remembered(
    rules: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ten_sessions"])
    model = None if rules else StructuredModel(ScriptedModel(script))
    await main(model, sessions=2, readings=2, ends=not rules)
    printed = capsys.readouterr().out
    assert ("recap of Lyra" in printed) is not rules
    assert "===== session 2" in printed
    assert "Blind reading: Lyra (emotional) against Holt" in printed
    assert ("by the model:" in printed) is not rules
