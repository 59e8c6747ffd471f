"""Several witnesses of one event: gates, fallbacks, lineage, and voices that differ by traits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.statements import UNTRUSTED, WEB, memory_over, model_of

from coag.errors import ConfigurationError
from coag.memory import said_by_person
from coag.memory.consolidation import (
    EventWitness,
    PerspectiveObserver,
    PerspectiveReport,
    WitnessedEvent,
)
from coag.memory.consolidation.perspectives import character_of
from coag.memory.consolidation.voices import in_first_person, told_by, tone_of
from coag.memory.dynamics import (
    MemoryDynamics,
    MemoryDynamicsSettings,
    Reconsolidation,
    Traits,
)
from coag.models import ScriptedModel, StructuredModel, scripted_answers
from coag.schema import Mood
from coag.store import HashEmbedder, InMemoryStore

NARRATOR = said_by_person("narrator")
ATTACK = WitnessedEvent(
    text="The dragon Vex attacked Millhaven and burned the granary.",
    importance=0.9,
    entities=("Vex", "Millhaven"),
)
_FEELINGS = "terrified afraid fear cried tears felt heart moved worry relief overjoyed"
_FEELING = frozenset(_FEELINGS.split())


class Stage:
    """A world with witnesses over one store in RAM."""

    def __init__(self) -> None:
        self.store = InMemoryStore(HashEmbedder())
        self.events = memory_over(self.store, "team:world")

    def witness(self, name: str, **fields: Any) -> EventWitness:
        fields.setdefault("feelings", {"Vex": -0.8})
        return EventWitness(name=name, memory=memory_over(self.store, name.lower()), **fields)

    async def observe(
        self,
        *witnesses: EventWitness,
        events: tuple[WitnessedEvent, ...] = (ATTACK,),
        model: StructuredModel | None = None,
        **fields: Any,
    ) -> PerspectiveReport:
        fields = {"provenance": NARRATOR, **fields}
        return await PerspectiveObserver(self.events, model=model).observe(
            events, witnesses, **fields
        )


@pytest.fixture
def stage() -> Stage:
    return Stage()


def memories(*texts: str) -> dict[str, object]:
    return {"memories": [{"number": n, "text": text} for n, text in enumerate(texts, 1)]}


def felt(text: str) -> int:
    return sum(text.casefold().count(one) for one in _FEELING)


# ---- What is kept ----


async def test_revoking_an_event_takes_its_perspectives(stage: Stage) -> None:
    report = await stage.observe(stage.witness("Lyra"), stage.witness("Holt"))
    everyone = await stage.events.reaching_all()
    await everyone.revoke(report.events[0].id, "It never happened.")
    assert await stage.store.get([one.record.id for one in report.perspectives if one.record]) == []


async def test_a_perspective_is_trusted_no_more_than_its_event(stage: Stage) -> None:
    report = await stage.observe(stage.witness("Lyra"), provenance=WEB)
    record = report.perspectives[0].record
    assert record is not None
    assert record.provenance.trust is UNTRUSTED


async def test_observing_twice_keeps_once_and_another_session_keeps_again(stage: Stage) -> None:
    lyra = stage.witness("Lyra")
    first = await stage.observe(lyra, session="s1")
    assert await stage.observe(lyra, session="s1") == first
    later = await stage.observe(lyra, session="s2")
    assert later.events[0].text == f"{ATTACK.text} (Again, in s2.)"
    assert later.events[0].metadata["session"] == "s2"


async def test_another_store_than_the_events_is_refused(stage: Stage) -> None:
    stranger = EventWitness(name="Zed", memory=memory_over(scope="zed"))
    with pytest.raises(ConfigurationError, match="witness 'Zed' is over another store"):
        await stage.observe(stranger)


def test_a_least_importance_out_of_range_is_refused(stage: Stage) -> None:
    with pytest.raises(ValueError, match=r"0 to 1, not 1\.5"):
        PerspectiveObserver(stage.events, least_importance=1.5)


# ---- The gates ----


@pytest.mark.parametrize(
    ("event", "fields", "how", "reason"),
    [
        (ATTACK, {"tier": "combatant"}, "objective", "of the tier 'combatant'"),
        (ATTACK, {"tier": "background"}, "nothing", "of the tier 'background'"),
        (
            ATTACK.model_copy(update={"importance": 0.29}),
            {},
            "objective",
            "importance 0.29 is below 0.3",
        ),
        (ATTACK.model_copy(update={"importance": 0.3}), {}, "rules", ""),
        (ATTACK, {"feelings": {"Carl": 1.0}}, "objective", "knows nobody"),
        (ATTACK, {"feelings": {"vex": 0.0}}, "rules", ""),
        (WitnessedEvent(text="Lyra lost a ring."), {"feelings": {}}, "rules", ""),
    ],
)
async def test_a_gate_says_why_an_event_is_not_rewritten(
    stage: Stage, event: WitnessedEvent, fields: dict[str, Any], how: str, reason: str
) -> None:
    lyra = stage.witness("Lyra", **fields)
    (one,) = (await stage.observe(lyra, events=(event,))).perspectives
    assert one.how == how
    assert reason in one.reason
    assert bool(one.reason) is bool(reason)
    assert (one.record is None) is (how == "nothing")
    if how == "objective":
        assert one.record is not None
        assert one.record.text == event.text


# ---- By a model ----


async def test_a_model_writes_the_perspectives_of_a_witness_in_one_question(stage: Stage) -> None:
    second = ATTACK.model_copy(update={"text": "Vex left with the cattle."})
    model = model_of(memories("I was afraid of Vex.", "I wept as Vex left."))
    lyra = stage.witness("Lyra", traits=Traits(emotionality=0.9))
    report = await stage.observe(lyra, events=(ATTACK, second), model=model)
    assert report.calls == 1
    assert [one.record and one.record.text for one in report.perspectives] == [
        "I was afraid of Vex.",
        "I wept as Vex left.",
    ]
    assert {one.how for one in report.perspectives} == {"model"}


async def test_an_event_that_the_model_left_out_alone_falls_back(stage: Stage) -> None:
    second = ATTACK.model_copy(update={"text": "Vex left with the cattle."})
    third = ATTACK.model_copy(update={"text": "Vex came back."})
    fourth = ATTACK.model_copy(update={"text": "Vex slept."})
    fifth = ATTACK.model_copy(update={"text": "Vex woke up."})
    answer = {
        "memories": [
            {"number": 1, "text": "I was afraid of Vex."},
            {"number": 2, "text": "Vex left with the cattle. Vex came back."},
            {"number": 4, "text": "I was afraid of Vex."},
            {"number": 5, "text": "Lyra was afraid when Vex woke up."},
            {"number": 7, "text": "I saw a seventh event."},
        ]
    }
    report = await stage.observe(
        stage.witness("Lyra"), events=(ATTACK, second, third, fourth, fifth), model=model_of(answer)
    )
    assert [(one.how, one.reason) for one in report.perspectives] == [
        ("model", ""),
        ("rules", "The model repeated the event."),
        ("rules", "The model wrote nothing about it."),
        ("rules", "The model wrote the same of another event."),
        ("rules", "The model did not write in the first person."),
    ]


async def test_a_model_that_fails_for_one_witness_is_asked_for_the_next(stage: Stage) -> None:
    model = model_of(RuntimeError("down"), memories("I counted the losses."))
    report = await stage.observe(stage.witness("Lyra"), stage.witness("Holt"), model=model)
    assert [one.how for one in report.perspectives] == ["rules", "model"]
    assert "down" in report.perspectives[0].reason
    assert report.calls == 2


async def test_a_memory_that_was_cut_off_ends_with_its_last_sentence(stage: Stage) -> None:
    long = f"I saw it. {'I ran and ran and ran. ' * 40}"[:500]
    assert not long.endswith(".")
    report = await stage.observe(stage.witness("Lyra"), model=model_of(memories(long)))
    record = report.perspectives[0].record
    assert record is not None
    assert record.text.endswith("I ran and ran and ran.")


async def test_the_model_is_given_the_character(stage: Stage) -> None:
    model = ScriptedModel(scripted_answers([memories("I saw it.")]))
    lyra = stage.witness(
        "Lyra", traits=Traits(emotionality=0.9, honesty=0.3), mood=Mood(valence=-0.5, arousal=0.5)
    )
    await stage.observe(lyra, model=StructuredModel(model))
    assert character_of(lyra) == (
        "Lyra feels strongly and is soon afraid, worried or moved to tears; "
        "looks for an advantage. Lyra would say, for example: "
        '"I was terrified, and my hands would not stop shaking." '
        '"I felt uneasy about it, and I could not say why." '
        '"I looked for a way to gain something from it." '
        "Lyra was in low spirits. Lyra distrusts Vex."
    )
    assert character_of(lyra) in model.requests[0].system_text
    plain = stage.witness("Bo", feelings={})
    assert character_of(plain) == "Bo is an ordinary person."


# ---- Voices by rules ----


@pytest.mark.parametrize(
    "text",
    [ATTACK.text, "The council met in the hall.", "Holt found the ring and we were saved."],
)
def test_the_emotional_one_tells_more_of_feelings(text: str) -> None:
    tender = told_by("Lyra", text, traits=Traits(emotionality=0.9))
    cool = told_by("Lyra", text, traits=Traits(emotionality=0.1))
    nobody = told_by("Lyra", text, traits=Traits())
    assert felt(tender) > felt(nobody) >= felt(cool)


@pytest.mark.parametrize(
    ("trait", "high", "low"),
    [
        ("conscientiousness", "list|noted|planned|wrote", "prepared nothing|plans to others"),
        ("openness", "wondered|never seen", "old ways"),
        ("agreeableness", "blame anybody|talked over", "forgive|own fault"),
        ("extraversion", "shouted|together", "said nothing"),
        ("honesty", "said openly", "gain"),
    ],
)
def test_each_trait_shows_in_its_own_direction(trait: str, high: str, low: str) -> None:
    much = told_by("Lyra", ATTACK.text, traits=Traits(**{trait: 0.9}))
    little = told_by("Lyra", ATTACK.text, traits=Traits(**{trait: 0.1}))
    assert any(one in much for one in high.split("|"))
    assert any(one in little for one in low.split("|"))


def test_feelings_and_mood_show_and_weak_ones_do_not() -> None:
    low, good = Mood(valence=-0.5, arousal=0.5), Mood(valence=0.5, arousal=0.5)
    text = told_by("Lyra", ATTACK.text, traits=Traits(), mood=low, feelings={"Vex": -0.8})
    assert "low spirits" in text
    assert text.count("Vex") >= 2
    fond = told_by("Lyra", ATTACK.text, traits=Traits(), mood=good, feelings={"Vex": 0.8})
    assert "good spirits" in fond
    assert fond.count("Vex") == 2
    none = told_by("Lyra", ATTACK.text, traits=Traits(), feelings={"Vex": 0.1})
    assert none == f"I was there, and I remember it. {ATTACK.text}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Holt closed the gate.", "I closed the gate."),
        ("Lyra found Holt's sword and gave it to Holt.", "Lyra found my sword and gave it to me."),
        ("The bell rang, and Holt is afraid.", "The bell rang, and I was afraid."),
        ("Then Holt has gone.", "Then I had gone."),
        ("Holtby is a town.", "Holtby is a town."),
    ],
)
def test_the_witness_tells_in_the_first_person(text: str, expected: str) -> None:
    assert in_first_person(text, "Holt") == expected


def test_an_event_is_good_or_bad_by_words_or_by_an_appraisal() -> None:
    assert tone_of(ATTACK.text) == "bad"
    assert tone_of("We were rescued.") == "good"
    assert tone_of("It rained.") == "plain"
    for valence, tone in ((-0.9, "bad"), (0.9, "good"), (0.0, "plain")):
        mood = Mood(valence=valence, arousal=0.5)
        assert tone_of("It rained.", lambda _, mood=mood: mood) == tone


@given(st.text(min_size=1, max_size=200), st.builds(Traits))
def test_any_event_can_be_put_in_words_and_twice_the_same(text: str, traits: Traits) -> None:
    line = told_by("Lyra", text, traits=traits)
    assert line
    assert line == told_by("Lyra", text, traits=traits)


# ---- With dynamics ----


async def test_a_perspective_drifts_at_half_the_rate_of_an_event() -> None:
    drift: dict[str, float] = {}
    for tier in ("important", "combatant"):
        store = InMemoryStore(HashEmbedder())
        dynamics = MemoryDynamics(
            MemoryDynamicsSettings(reconsolidation=Reconsolidation(), traits=Traits(), mood=True),
            appraise=lambda _: Mood(valence=-0.2, arousal=0.5),
        )
        lyra = EventWitness(
            name="Lyra",
            memory=memory_over(store, "lyra", dynamics=dynamics),
            feelings={"Vex": -0.8},
            tier=tier,  # type: ignore[arg-type]
        )
        events = memory_over(store, "team:world")
        observer = PerspectiveObserver(events)
        report = await observer.observe([ATTACK], [lyra], provenance=NARRATOR)
        record = report.perspectives[0].record
        assert record is not None
        assert dynamics.states.get([record.id])[record.id].perspective is (tier == "important")
        dynamics.feel(Mood(valence=0.9, arousal=0.6))
        await lyra.memory.recall("Vex attacked Millhaven")
        drift[tier] = dynamics.states.get([record.id])[record.id].drift
    assert drift["important"] == pytest.approx(drift["combatant"] / 2, rel=0.2)
    assert drift["important"] > 0
