"""Notes that are merged, and what they show beyond one conversation."""

from __future__ import annotations

from pathlib import Path

import pytest
from kits.statements import UNTRUSTED, USER, memory_over, model_of

from coag.memory import LongTermMemory
from coag.memory.consolidation import HeardMessage, MemoryObserver, reflect, sleep
from coag.memory.consolidation.compressor import Triage, compress, triage_of
from coag.memory.consolidation.literals import (
    invented,
    literals_of,
    missing_literals,
    with_literals,
)
from coag.memory.consolidation.reflector import ReflectionKind, ReflectStep
from coag.memory.dynamics import DynamicsFile, MemoryDynamics, Traits
from coag.schema import Record, Trust

TALK = (
    "I prefer green tea in the morning.",
    "I like green tea best, in the morning at 7:30.",
    "I usually walk to the harbour on Sunday.",
    "I was angry at Bob on Monday.",
    "I am so worried about Bob.",
    "I'll finish the boat for Carla by 12 May.",
    "I promise that the boat will be ready for Carla, for 400 euros.",
)


async def noted(
    memory: LongTermMemory,
    *texts: str,
    trust: Trust = USER,
    source: str = "Ann",
    file: DynamicsFile | None = None,
) -> tuple[Record, ...]:
    observer = MemoryObserver(memory, file=file)
    observer.hear(*(HeardMessage(text=text, source=source, trust=trust) for text in texts))
    return (await observer.observe(force=True)).notes


async def outcomes(memory: LongTermMemory, *went: bool) -> None:
    observer = MemoryObserver(memory)
    for number, one in enumerate(went):
        observer.hear(
            HeardMessage(text=f"order {number}", source="pay", kind="outcome", succeeded=one)
        )
    await observer.observe(force=True)


# ---- What must be kept letter by letter ----


@pytest.mark.parametrize(
    ("text", "literals"),
    [
        ("Ann owes Bob 40 euros since 12 May 2026.", ("Bob", "40 euros", "12 May 2026")),
        ('She said "never again" in San Marino.', ('"never again"', "San Marino")),
        ("The boat is ready. On Friday I pay $12.50.", ("Friday", "$12.50")),
        ("Bob left. We like Bob.", ("Bob",)),
        ("It was Holt's sword.", ("Holt",)),
        ("i like tea", ()),
    ],
)
def test_names_dates_amounts_and_quotations_are_literals(
    text: str, literals: tuple[str, ...]
) -> None:
    assert set(literals_of(text)) == set(literals)


def test_what_a_text_lost_or_made_up_is_found() -> None:
    sources = ["I owe Bob 40 euros.", "We meet on 12 May."]
    assert missing_literals("The debt to bob", sources) == ("40 euros", "12 May")
    assert invented("We owe Carl 40 euros", sources) == ("Carl",)
    assert with_literals("A debt to Bob", sources) == "A debt to Bob [40 euros; 12 May]"
    assert with_literals("Bob, 40 euros, 12 May", sources) == "Bob, 40 euros, 12 May"


# ---- Merging ----


async def test_triage_by_traits_decides_what_is_kept_whole(memory: LongTermMemory) -> None:
    notes = await noted(memory, "I feel sad about the boat.", "What if the boat had wings?")
    feeling, idea = notes
    tender, dreamer = Traits(emotionality=1.0, openness=0.0), Traits(emotionality=0.0, openness=1.0)
    assert (triage_of(feeling, tender), triage_of(feeling, dreamer)) == (
        Triage.CRITICAL,
        Triage.INFORMATIONAL,
    )
    assert triage_of(idea, dreamer) is Triage.IMPORTANT
    assert (await compress(notes, traits=tender, ratio=2)).text == feeling.text
    assert (await compress(notes, traits=dreamer, ratio=2)).text == idea.text


async def test_a_models_text_is_taken_with_what_it_lost(memory: LongTermMemory) -> None:
    notes = await noted(memory, *TALK[5:])
    short = await compress(notes, model=model_of({"text": "Ann builds a boat for Carla."}))
    assert short.by_model
    assert short.text == "Ann builds a boat for Carla. [12 May; 400 euros]"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"text": "A boat for Dora."}, "'Dora', which no note names"),
        ({"text": "boat " * 90}, "longer than the notes"),
        (RuntimeError("down"), "down"),
    ],
)
async def test_a_model_that_fails_or_invents_is_replaced_by_rules(
    memory: LongTermMemory, answer: object, problem: str
) -> None:
    notes = await noted(memory, *TALK[5:])
    short = await compress(notes, model=model_of(answer))
    assert problem in short.problem
    assert not short.by_model
    assert "Carla" in short.text
    assert "12 May" in short.text


async def test_compressing_nothing_or_by_a_wrong_ratio_is_refused(memory: LongTermMemory) -> None:
    with pytest.raises(ValueError, match="no notes"):
        await compress([])
    with pytest.raises(ValueError, match="between 1 and 10, not 11"):
        await compress(await noted(memory, "I like tea."), ratio=11)


# ---- Reflecting ----


async def test_reflections_by_rules_are_of_five_kinds(memory: LongTermMemory) -> None:
    await noted(memory, *TALK)
    await outcomes(memory, True, False, True)
    done = await reflect(memory)
    kinds = {str(one.metadata["reflection"]): one for one in done.reflections}
    assert set(kinds) == {kind.value for kind in ReflectionKind}
    assert "7:30" in kinds["preference"].text
    assert "harbour on Sunday" in kinds["behaviour"].text
    assert kinds["relationship"].text.startswith("Relationship to Bob")
    assert "12 May" in kinds["goal"].text
    assert "400 euros" in kinds["goal"].text
    assert "pay succeeded 2 of 3 times" in kinds["capability"].text
    assert "order 1" in kinds["capability"].text


async def test_a_reflection_is_trusted_no_more_than_its_notes(memory: LongTermMemory) -> None:
    await noted(memory, *TALK[:2], trust=UNTRUSTED, source="web")
    await noted(memory, *TALK[5:])
    done = await reflect(memory)
    trust = {str(one.metadata["reflection"]): one.provenance.trust for one in done.reflections}
    assert trust == {"preference": UNTRUSTED, "goal": USER}


async def test_revoking_a_note_revokes_its_reflections(memory: LongTermMemory) -> None:
    notes = await noted(memory, *TALK[:2])
    (one,) = (await reflect(memory)).reflections
    assert set(one.lineage.derived_from) == {note.id for note in notes}
    await memory.revoke(notes[0].id, "It was a joke.")
    assert await memory.store.get([one.id]) == []


@pytest.mark.parametrize("file", [None, DynamicsFile()], ids=["by lineage", "by file"])
async def test_notes_are_reflected_on_once(file: DynamicsFile | None) -> None:
    memory = memory_over()
    await noted(memory, *TALK[:2], file=file)
    assert len((await reflect(memory, file=file)).reflections) == 1
    again = await reflect(memory, file=file)
    assert (again.reflections, again.looked_at) == ((), 0)


async def test_a_note_that_was_revoked_does_not_wait(memory: LongTermMemory) -> None:
    file = DynamicsFile()
    notes = await noted(memory, *TALK[:2], file=file)
    await memory.revoke(notes[0].id, "It was a joke.")
    assert (await reflect(memory, file=file, least=1)).looked_at == 1


async def test_a_new_conclusion_replaces_the_earlier_one(memory: LongTermMemory) -> None:
    await noted(memory, *TALK[:2])
    (old,) = (await reflect(memory)).reflections
    await noted(memory, "I prefer green tea at noon.", "I like green tea in the morning now.")
    (new,) = (await reflect(memory)).reflections
    assert new.supersedes == old.id
    found = (await memory.recall("green tea", k=9)).records
    assert [hit.record.id for hit in found if hit.record.type == "reflection"] == [new.id]


async def test_a_model_reflects_and_conclusions_without_notes_are_left_out(
    memory: LongTermMemory,
) -> None:
    await noted(memory, *TALK[:2])

    def one(text: str, *notes: int) -> dict[str, object]:
        return {"kind": "preference", "text": text, "notes": notes, "confidence": 0.9}

    answer = {
        "reflections": [
            one("Ann drinks green tea in the morning.", 1, 2),
            one("Ann drinks tea with Zoe.", 1),
            one("Ann is kind.", 7),
        ]
    }
    done = await reflect(memory, model_of(answer))
    assert [each.text for each in done.reflections] == ["Ann drinks green tea in the morning."]
    assert done.reflections[0].metadata == {"reflection": "preference", "confidence": 0.9}
    assert "'Zoe'" in done.problems[0]
    assert "based on no note" in done.problems[1]


async def test_where_the_model_fails_the_rest_waits_for_the_next_time(
    memory: LongTermMemory,
) -> None:
    file = DynamicsFile()
    await noted(memory, *(f"I like number {one}." for one in range(50)), file=file)
    empty: dict[str, object] = {"reflections": []}
    merged = {"text": "Numbers."}
    failed = await reflect(memory, model_of(empty, merged, RuntimeError("down")), file=file)
    assert failed.looked_at == 40
    assert "10 note(s) wait for the model" in failed.problems[-1]
    done = await reflect(memory, model_of(empty, merged), file=file)
    assert (done.looked_at, done.problems) == (10, ())


@pytest.mark.parametrize("answer", ["", "I cannot do that.", "[1, 2"])
async def test_a_model_that_answers_nothing_or_nonsense_loses_no_note(
    memory: LongTermMemory, answer: str
) -> None:
    file = DynamicsFile()
    await noted(memory, *TALK[:2], file=file)
    failed = await reflect(memory, model_of(answer, answer), file=file)
    assert (failed.looked_at, failed.reflections) == (0, ())
    assert "2 note(s) wait for the model" in failed.problems[0]
    assert (await reflect(memory, file=file)).looked_at == 2


async def test_three_related_notes_are_merged_into_a_summary(memory: LongTermMemory) -> None:
    notes = await noted(
        memory,
        "The boat was painted red at the pier.",
        "The boat was painted at the pier by Bob.",
        "The painted boat was at the pier again.",
    )
    (summary,) = (await reflect(memory)).summaries
    assert set(summary.lineage.derived_from) == {one.id for one in notes}
    assert summary.type == "observation_summary"
    assert "Bob" in summary.text


# ---- In a sleep ----


async def test_a_sleep_reflects_on_what_was_observed(tmp_path: Path) -> None:
    dynamics = MemoryDynamics("assistant", path=tmp_path / "dynamics.sqlite3")
    memory = memory_over(dynamics=dynamics)
    await noted(memory, *TALK)
    planned = await sleep(memory, dry_run=True, steps=[ReflectStep()])
    assert (planned.steps[0].examined, planned.changed) == (7, 0)
    report = await sleep(memory)
    done = next(one for one in report.steps if one.step == "reflect")
    assert (done.ended, done.examined, done.changed) == ("done", 7, 4)
    again = next(one for one in (await sleep(memory)).steps if one.step == "reflect")
    assert (again.ended, again.examined) == ("done", 0)
    dynamics.close()


async def test_a_sleep_may_stop_between_two_batches_of_notes() -> None:
    memory = memory_over(dynamics=MemoryDynamics("assistant"))
    await noted(memory, *(f"I like number {one}." for one in range(60)))
    stopped = await sleep(memory, most_records=40, steps=[ReflectStep()])
    assert (stopped.stopped_at, stopped.steps[0].examined) == ("reflect", 40)
    done = await sleep(memory, steps=[ReflectStep()])
    assert (done.finished, done.steps[0].examined) == (True, 20)
