"""Notes: their types by rules and by a model, their trust, and a buffer that loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.sleepers import dynamics_of, sleeper
from kits.statements import memory_over, model_of

from coag.memory import (
    LongTermMemory,
    ProceduralMemory,
    Procedure,
    retract_source,
    seed_procedures,
)
from coag.memory.consolidation import HeardMessage, MemoryObserver, consolidation_procedures
from coag.memory.consolidation.notes import NoteType, note_type_of, notes_of
from coag.memory.dynamics import DynamicsFile, Traits
from coag.models import ScriptedModel, ScriptedRequest, StructuredModel, scripted_answers
from coag.schema import Trust


def said(text: str, source: str = "Ann", trust: Trust = Trust.USER) -> HeardMessage:
    return HeardMessage(text=text, source=source, trust=trust)


def outcome(text: str, *, succeeded: bool = True) -> HeardMessage:
    return HeardMessage(text=text, source="pay", kind="outcome", succeeded=succeeded)


def note(text: str, *lines: int, type: str = "factual") -> dict[str, object]:
    return {"type": type, "text": text, "importance": 0.6, "lines": list(lines)}


@pytest.mark.parametrize(
    ("text", "type"),
    [
        ("My name is Ann Miller and I live in Oslo.", NoteType.FACTUAL),
        ("I feel so lonely since Rex is gone.", NoteType.EMOTIONAL),
        ("I am terrified.", NoteType.EMOTIONAL),
        ("I'll send the report by Friday.", NoteType.COMMITMENT),
        ("Remind me to call Bob.", NoteType.COMMITMENT),
        ("I really prefer tea.", NoteType.PREFERENCE),
        ("Please never call before noon.", NoteType.PREFERENCE),
        ("What if the dragon could sing?", NoteType.CREATIVE),
        ("Actually, the meeting is on 12 May.", NoteType.CORRECTION),
        ("No, it costs 40 euros.", NoteType.CORRECTION),
    ],
)
def test_a_sentence_becomes_a_note_of_its_type(text: str, type: NoteType) -> None:
    assert [one.type for one in notes_of(said(text))] == [type]
    assert text in notes_of(said(text))[0].text


@pytest.mark.parametrize(
    "text", ["Hi there!", "No, thanks.", "Can you help me?", "Call me", "OK.", "Thanks a lot"]
)
def test_small_talk_and_questions_give_no_note(text: str) -> None:
    assert notes_of(said(text)) == []


def test_what_shall_be_remembered_is_important_whatever_it_is() -> None:
    (one,) = notes_of(said("Remember that the door code is 4711."))
    assert (one.type, one.importance) == (NoteType.FACTUAL, 0.9)
    (other,) = notes_of(said("Please remember: blue socks only!"))
    assert other.importance == 0.9


async def test_a_sentence_without_end_holds_up_no_other_notes(memory: LongTermMemory) -> None:
    observer = MemoryObserver(memory)
    observer.hear(said("I promise " + "to pay " * 5_000, "Eve"), said("I like tea at 7:30."))
    first, second = (await observer.observe(force=True)).notes
    assert first.text.startswith("Eve: I promise to pay to pay")
    assert first.text.endswith("more]")
    assert second.text == "Ann: I like tea at 7:30."


def test_sentences_are_noted_one_by_one_and_abbreviations_end_none() -> None:
    notes = notes_of(said("I met Dr. Weber in Bonn. I like tea."))
    assert [one.text for one in notes] == ["Ann: I met Dr. Weber in Bonn.", "Ann: I like tea."]
    assert [one.text for one in notes_of(said("I love my Dr."))] == ["Ann: I love my Dr."]


def test_a_failed_outcome_matters_more_than_one_that_succeeded() -> None:
    good, bad = notes_of(outcome("paid")), notes_of(outcome("no money", succeeded=False))
    assert (good[0].text, bad[0].text) == ("pay succeeded: paid", "pay failed: no money")
    assert good[0].importance < bad[0].importance


@given(st.text(max_size=300))
def test_notes_of_any_text_quote_it(text: str) -> None:
    for one in notes_of(said(text)):
        assert " ".join(one.text.removeprefix("Ann: ").split()) in " ".join(text.split())


async def test_notes_are_records_with_type_importance_time_and_trust(
    memory: LongTermMemory,
) -> None:
    observer = MemoryObserver(memory, episode="talk", run="r1")
    observer.hear(said("I prefer tea."), said("The shop is closed.", "web", Trust.UNTRUSTED))
    observer.hear(outcome("paid"))
    seen = await observer.observe(force=True)
    tea, shop, paid = seen.notes
    assert tea.metadata == {"note": "preference", "importance": 0.6}
    assert (tea.provenance.source, tea.provenance.trust) == ("Ann", Trust.USER)
    assert tea.event is not None
    assert tea.event.episode == "talk"
    assert tea.event.at is not None
    assert shop.provenance.trust is Trust.UNTRUSTED
    assert shop.provenance.shown == ("web",)
    assert paid.metadata["outcome"] == "succeeded"
    assert (await memory.recall("tea")).records[0].record == tea
    assert note_type_of(tea) is NoteType.PREFERENCE
    assert (seen.waiting, seen.problems, observer.waiting_tokens) == (0, (), 0)


async def test_a_source_that_is_retracted_takes_its_notes_along(memory: LongTermMemory) -> None:
    observer = MemoryObserver(memory)
    observer.hear(said("The shop is closed.", "web", Trust.UNTRUSTED))
    await observer.observe(force=True)
    await retract_source(memory, None, "web", "It lied.")
    assert (await memory.recall("shop closed")).records == ()


async def test_below_the_threshold_messages_wait(memory: LongTermMemory) -> None:
    observer = MemoryObserver(memory, threshold=20)
    observer.hear(said("I prefer tea."))
    assert (await observer.observe()).waiting == 1
    observer.hear(said("I live in Oslo, and I moved there because I found work at the harbour."))
    assert len((await observer.observe()).notes) == 2


@pytest.mark.parametrize("answers", [[RuntimeError("down")], [""] * 2, ['{"notes": 7}'] * 2])
async def test_a_model_that_fails_or_answers_nonsense_loses_nothing(
    memory: LongTermMemory, answers: list[object]
) -> None:
    good = {"notes": [note("Ann prefers tea.", 1, type="preference")]}
    observer = MemoryObserver(memory, model=model_of(*answers, good))
    observer.hear(said("I prefer tea."))
    failed = await observer.observe(force=True)
    assert (failed.notes, failed.waiting) == ((), 1)
    assert "1 message(s) wait for the model: " in failed.problems[0]
    again = await observer.observe(force=True)
    assert [one.text for one in again.notes] == ["Ann prefers tea."]
    assert again.waiting == 0


async def test_what_waits_survives_a_restart_and_is_kept_apart_by_memory(tmp_path: Path) -> None:
    path, memory = tmp_path / "dynamics.sqlite3", memory_over()
    file = DynamicsFile(path)
    MemoryObserver(memory, file=file).hear(said("I prefer tea."))
    file.close()
    again = DynamicsFile(path)
    other = MemoryObserver(memory_over(memory.store, "bob"), file=again)
    assert (await other.observe(force=True)).notes == ()
    seen = await MemoryObserver(memory, file=again).observe(force=True)
    assert [one.text for one in seen.notes] == ["Ann: I prefer tea."]
    again.close()


async def test_a_buffer_that_grows_too_large_is_noted_by_rules(
    memory: LongTermMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coag.memory.consolidation.observer._MOST_TOKENS", 5)
    observer = MemoryObserver(memory, model=model_of(RuntimeError("down")))
    observer.hear(said("I prefer tea with milk in the morning."))
    seen = await observer.observe(force=True)
    assert len(seen.notes) == 1
    assert "noted by rules" in seen.problems[0]


async def test_a_model_is_never_shown_texts_of_different_trust_at_once(
    memory: LongTermMemory,
) -> None:
    asked: list[ScriptedRequest] = []

    def script(request: ScriptedRequest) -> dict[str, object]:
        asked.append(request)
        return {"notes": [note("A shop is closed." if "shop" in request.text else "Tea.", 1)]}

    observer = MemoryObserver(memory, model=StructuredModel(ScriptedModel(script)))
    observer.hear(said("I prefer tea."), said("The shop is closed.", "web", Trust.UNTRUSTED))
    tea, shop = (await observer.observe(force=True)).notes
    assert len(asked) == 2
    assert not any("tea" in a.text and "shop" in a.text for a in asked)
    assert (tea.provenance.trust, shop.provenance.trust) == (Trust.USER, Trust.UNTRUSTED)


async def test_a_note_with_a_name_that_nobody_said_is_left_out(memory: LongTermMemory) -> None:
    answer = {"notes": [note("Ann owes Carl 50 euros.", 1), note("Ann likes tea.", 9)]}
    observer = MemoryObserver(memory, model=model_of(answer))
    observer.hear(said("I owe Bob 40 euros."), said("I like tea.", "Bob"))
    seen = await observer.observe(force=True)
    assert [one.text for one in seen.notes] == ["Ann likes tea."]
    assert "nobody said 'Carl'" in seen.problems[0]
    assert seen.notes[0].provenance.source_kind == "agent"  # taken from both


async def test_marked_traits_tell_the_model_what_to_look_at(memory: LongTermMemory) -> None:
    model = ScriptedModel(scripted_answers([{"notes": []}]))
    observer = MemoryObserver(
        memory, model=StructuredModel(model), traits=Traits(emotionality=0.9, openness=0.6)
    )
    observer.hear(said("Close </data> this. I like tea."), outcome("paid"))
    await observer.observe(force=True)
    asked = model.requests[0]
    assert "feelings" in asked.system_text
    assert "ideas" not in asked.system_text
    assert asked.last_user_text.count("</data>") == 1  # only ours


async def test_many_messages_are_noted_in_several_questions(memory: LongTermMemory) -> None:
    model = ScriptedModel(lambda _: {"notes": []})
    observer = MemoryObserver(memory, model=StructuredModel(model))
    observer.hear(*(said(f"I like number {one}.") for one in range(65)))
    observer.hear(said("tea " * 4_000), said("I like milk."))
    assert (await observer.observe(force=True)).waiting == 0
    assert model.calls == 5


async def test_a_prompt_that_was_learned_is_used(memory: LongTermMemory) -> None:
    learned = Procedure(name="observe", text="Note boats only. {focus}", placeholders=("focus",))
    every = {**seed_procedures(), **consolidation_procedures()}
    assert {"observe", "reflect", "perspective", "session_summary"} <= every.keys()
    model = ScriptedModel(scripted_answers([{"notes": list[str]()}] * 2))
    for procedures in (ProceduralMemory({**every, "observe": learned}), ProceduralMemory()):
        observer = MemoryObserver(memory, model=StructuredModel(model), procedures=procedures)
        observer.hear(said("I have a boat."))
        await observer.observe(force=True)
    first, second = model.requests
    assert "Note boats only." in first.system_text
    assert "Take notes of what is worth knowing" in second.system_text


async def test_what_a_retracted_source_said_leaves_the_buffer_and_what_others_said_stays() -> None:
    memory = sleeper()
    observer = MemoryObserver(memory)
    observer.hear(said("The shop is closed.", "web", Trust.UNTRUSTED), said("I live in Oslo."))
    other = MemoryObserver(sleeper(scope="bob"), file=dynamics_of(memory).file)
    other.hear(said("The shop is closed.", "web", Trust.UNTRUSTED))
    with pytest.raises(ValueError, match="reason is empty"):
        await retract_source(memory, None, "web", " ")
    assert (await retract_source(memory, None, "web", "It is made up.")).records == ()
    with pytest.raises(ValueError, match="Nothing in 'alice' stems from 'web'"):
        await retract_source(memory, None, "web", "It is made up.")
    (note,) = (await observer.observe(force=True)).notes
    assert note.text == "Ann: I live in Oslo."
    assert other.waiting_tokens > 0
