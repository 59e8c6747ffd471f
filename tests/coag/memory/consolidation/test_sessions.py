"""The end of a session in five steps, and what the next one begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.statements import UNTRUSTED, WEB, memory_over, model_of

from coag.errors import RecordStoreError
from coag.memory import said_by_person
from coag.memory.consolidation import (
    EventWitness,
    PerspectiveObserver,
    ScopeEntry,
    SessionEnd,
    WitnessedEvent,
    end_session,
    scope_index,
    start_session,
)
from coag.memory.consolidation.scope_index import ScopeIndex, note_scope
from coag.memory.consolidation.sessions import events_of
from coag.memory.consolidation.threads import threads_of
from coag.memory.dynamics import Traits
from coag.schema import Record, SteppingClock, estimate_tokens
from coag.store import HashEmbedder, InMemoryStore

NARRATOR = said_by_person("narrator")
PEOPLE = (
    ScopeEntry(kind="People", name="Holt", description="captain of the guard"),
    ScopeEntry(kind="Places", name="Millhaven"),
)


class Game:
    """A small world with two witnesses."""

    def __init__(self, store: InMemoryStore | None = None) -> None:
        store, clock = store or InMemoryStore(HashEmbedder()), SteppingClock()
        self.world = memory_over(store, "team:world", clock=clock)
        self.witnesses = [
            EventWitness(
                name=name,
                memory=memory_over(store, name.lower(), clock=clock),
                traits=Traits(emotionality=emotionality),
                feelings={"Vex": -0.8},
            )
            for name, emotionality in (("Lyra", 0.9), ("Holt", 0.1))
        ]

    async def play(self, session: str, *events: WitnessedEvent, by: Any = NARRATOR) -> None:
        observer = PerspectiveObserver(self.world)
        await observer.observe(events, self.witnesses, provenance=by, session=session)

    async def end(self, session: str, *answers: object, **more: Any) -> SessionEnd:
        model = model_of(*answers) if answers else None
        return await end_session(self.world, session, self.witnesses, model=model, **more)


def vex(text: str = "Vex demanded 100 gold of Millhaven.", **fields: Any) -> WitnessedEvent:
    fields = {"entities": ("Vex", "Millhaven"), "thread": "The tribute", **fields}
    return WitnessedEvent(text=text, importance=0.8, **fields)


@pytest.fixture
def game() -> Game:
    return Game()


# ---- The five steps ----


async def test_a_session_ends_in_summary_recaps_threads_scenario_and_index(game: Game) -> None:
    await game.play("s1", vex(), WitnessedEvent(text="Vex flew away.", importance=0.4))
    end = await game.end("s1", exists=PEOPLE)
    assert end.summary is not None
    assert end.scenario is not None
    assert end.summary.text == "s1: Vex demanded 100 gold of Millhaven. Vex flew away."
    assert [one.scope for one in end.recaps] == ["lyra", "holt"]
    assert end.recaps[0].text != end.recaps[1].text
    (thread,) = end.threads
    assert (thread.title, thread.status, thread.progress) == ("The tribute", "open", 0.25)
    assert "The tribute" in end.scenario.text
    assert "Lyra distrusts Vex." in end.scenario.text
    assert [one.name for one in end.index.entries] == ["Holt", "Millhaven", "Vex"]
    assert end.problems == ()


async def test_everything_is_derived_and_goes_with_the_event(game: Game) -> None:
    await game.play("s1", vex())
    end = await game.end("s1")
    (event,) = await events_of(game.world, "s1")
    everyone = await game.world.reaching_all()
    await everyone.revoke(event.id, "It never happened.")
    start = await start_session(game.world, game.witnesses)
    assert (start.scenario, start.recaps, start.threads) == (None, (), ())
    assert [one.name for one in start.index.entries] == []
    assert end.summary is not None
    assert await game.world.store.get([end.summary.id]) == []


async def test_untrusted_events_make_an_untrusted_beginning(game: Game) -> None:
    await game.play("s1", vex(), by=WEB)
    await game.end("s1")
    start = await start_session(game.world, game.witnesses)
    assert start.trust is UNTRUSTED
    await game.play("s2", vex("Vex demanded 200 gold."))
    assert (await start_session(game.world)).index.trust is UNTRUSTED


async def test_what_strangers_say_settles_no_thread_of_trusted_events(game: Game) -> None:
    await game.play("s1", vex(thread="The tribute"))
    await game.end("s1")
    await game.play("s2", vex("It is paid.", thread="The tribute", settles=True), by=WEB)
    second = await game.end("s2")
    (still,) = second.threads
    assert (still.status, still.session) == ("open", "s1")
    assert await game.end("s2") == second
    await game.play("s3", vex("Vex is gone.", thread="The tribute", settles=True))
    assert (await game.end("s3")).threads == ()


async def test_what_strangers_say_of_a_name_does_not_replace_what_is_trusted(game: Game) -> None:
    await note_scope(game.world, PEOPLE, provenance=NARRATOR)
    king = ScopeEntry(kind="People", name="Holt", description="the king")
    await note_scope(game.world, [king], provenance=WEB)
    assert set((await scope_index(game.world)).entries) == set(PEOPLE)


async def test_ending_twice_changes_nothing(game: Game) -> None:
    await game.play("s1", vex(), vex("Vex burned a barn."))
    first = await game.end("s1", exists=PEOPLE)
    assert await game.end("s1", exists=PEOPLE) == first


async def test_a_session_without_events_leaves_what_there_was(game: Game) -> None:
    await game.play("s1", vex())
    before = await game.end("s1")
    empty = await game.end("s2")
    assert (empty.summary, empty.scenario, empty.threads) == (None, None, before.threads)


async def test_a_session_without_a_name_is_refused(game: Game) -> None:
    with pytest.raises(ValueError, match="needs a name, not ' '"):
        await game.end(" ")
    with pytest.raises(ValueError, match="must not be negative, not -1"):
        await start_session(game.world, recaps=-1)


@dataclass
class Failing:
    """Fails once at the write of a given number."""

    at: int
    writes: int = 0

    def __call__(self) -> None:
        self.writes += 1
        if self.writes == self.at:
            raise RecordStoreError("The disk is full.")


class FailingStore(InMemoryStore):
    """A store in RAM that can fail at any write."""

    failing: Failing | None = None

    async def add(self, records: Sequence[Record]) -> list[str]:
        if self.failing:
            self.failing()
        return await super().add(records)

    async def supersede(self, old_id: str, new: Record) -> Record:
        if self.failing:
            self.failing()
        return await super().supersede(old_id, new)


def _left(game: Game, end: SessionEnd) -> list[object]:
    records = [end.summary, *end.recaps, end.scenario]
    texts = [one and one.text for one in records]
    return [*texts, [one.describe() for one in end.threads], end.index]


@pytest.mark.parametrize("at", range(1, 9))
async def test_an_end_that_failed_anywhere_continues_where_it_stopped(at: int) -> None:
    whole = Game()
    store = FailingStore(HashEmbedder())
    game = Game(store)
    events = vex(), vex("Holt found a map.", thread="The map", entities=("Holt",))
    for one in (whole, game):
        await one.play("s1", *events)
    expected = _left(whole, await whole.end("s1", exists=PEOPLE))
    store.failing = Failing(at)
    with pytest.raises(RecordStoreError):
        await game.end("s1", exists=PEOPLE)
    assert _left(game, await game.end("s1", exists=PEOPLE)) == expected


# ---- Threads ----


async def test_threads_open_move_on_settle_and_open_again(game: Game) -> None:
    seen: list[tuple[str, float]] = []
    for number, event in enumerate(
        (
            vex("Vex came."),
            vex("Vex came again.", progress=0.6),
            vex("Vex was paid.", settles=True),
            vex("Vex wants more."),
        )
    ):
        await game.play(f"s{number}", event)
        await game.end(f"s{number}")
        (thread,) = await threads_of(game.world, settled=True)
        seen.append((thread.status, thread.progress))
    assert seen == [("open", 0.25), ("open", 0.6), ("settled", 1.0), ("open", 0.9)]
    (thread,) = await threads_of(game.world)
    assert (thread.opened, thread.session) == ("s0", "s3")
    assert thread.participants == ("Vex", "Millhaven")
    assert len(await game.world.history(thread.record)) == 4


async def test_revoking_a_session_brings_the_thread_before_back(game: Game) -> None:
    await game.play("s1", vex("Vex came."))
    await game.end("s1")
    await game.play("s2", vex("Vex was paid.", settles=True))
    end = await game.end("s2")
    assert end.threads == ()
    assert end.summary is not None
    await game.world.revoke(end.summary.id, "It was a dream.")
    (thread,) = await threads_of(game.world)
    assert (thread.session, thread.status) == ("s1", "open")


async def test_a_thread_that_is_not_touched_goes_out_of_sight(game: Game) -> None:
    await game.play("s1", vex("Holt lost a ring.", thread="The ring"))
    await game.end("s1")
    texts: list[str] = []
    for number in (2, 3):
        await game.play(f"s{number}", vex(f"Vex came {number} times."))
        scenario = (await game.end(f"s{number}")).scenario
        assert scenario is not None
        texts.append(scenario.text)
    assert ["Out of sight since s1: The ring." in text for text in texts] == [False, True]


# ---- By a model ----

SUMMARY = {"summary": "Vex demanded 100 gold."}
RECAPS = {"recap": "I was afraid of Vex."}, {"recap": "I counted 100 gold."}
SCENARIO = {"situation": "Millhaven owes 100 gold.", "hooks": ["Vex returns.", "We ask Zorro."]}


def threads(*titles: str, settled: bool = False) -> dict[str, object]:
    each = {"summary": "Vex waits.", "progress": 0.5, "participants": ["Vex"], "settled": settled}
    return {"threads": [{"title": title, **each} for title in titles]}


async def test_a_model_writes_every_step(game: Game) -> None:
    await game.play("s1", vex(thread=""))
    end = await game.end("s1", SUMMARY, *RECAPS, threads("A demand"), SCENARIO)
    assert end.summary is not None
    assert end.scenario is not None
    assert end.summary.text == "s1: Vex demanded 100 gold."
    assert end.recaps[1].text == "s1: I counted 100 gold."
    assert [one.title for one in end.threads] == ["A demand"]
    assert "Could come next: Vex returns." in end.scenario.text
    assert "Zorro" not in end.scenario.text
    assert end.problems == (
        "The model's hook of the scenario was left out, since nothing names 'Zorro'.",
    )


async def test_a_model_moves_on_an_open_thread_by_its_title(game: Game) -> None:
    await game.play("s1", vex(thread=""))
    await game.end("s1", SUMMARY, *RECAPS, threads("A demand"), SCENARIO)
    await game.play("s2", vex("Vex was paid.", thread=""))
    end = await game.end(
        "s2",
        {"summary": "Vex was paid."},
        {"recap": "I saw it."},
        {"recap": "I paid."},
        threads("a  DEMAND", settled=True),
        {"situation": "Vex is paid.", "hooks": []},
    )
    assert end.threads == ()
    (thread,) = await threads_of(game.world, settled=True)
    assert (thread.title, thread.opened, thread.session) == ("A demand", "s1", "s2")


async def test_a_model_that_speaks_of_something_else_or_lists_events_is_left_out(
    game: Game,
) -> None:
    await game.play("s1", vex(thread=""))
    end = await game.end(
        "s1",
        {"summary": "Material to work on."},
        {"recap": "Lyra was afraid of Vex."},
        RECAPS[1],
        threads("Vex demanded 100 gold of Millhaven."),
        {"situation": "Vex demanded gold.", "hooks": ["Lyra distrusts Vex."]},
    )
    assert end.summary is not None
    assert end.summary.text == "s1: Vex demanded 100 gold of Millhaven."
    assert end.threads == ()
    assert end.scenario is not None
    assert "Could come next" not in end.scenario.text
    assert "speaks of something else" in end.problems[0]
    assert "recap of Lyra was left out: it is not in the first person" in end.problems[1]
    assert "that is an event" in end.problems[2]


async def test_what_events_say_of_a_thread_counts_more_than_the_model(game: Game) -> None:
    await game.play("s1", vex(progress=0.1))
    end = await game.end("s1", SUMMARY, *RECAPS, threads("the tribute", "A plan"), SCENARIO)
    assert {one.title: one.progress for one in end.threads} == {"The tribute": 0.1, "A plan": 0.5}


async def test_each_step_that_fails_is_done_by_rules_and_says_so(game: Game) -> None:
    await game.play("s1", vex())
    end = await game.end("s1", *[RuntimeError("down")] * 5)
    by_rules = Game()
    await by_rules.play("s1", vex())
    assert _left(game, end) == _left(by_rules, await by_rules.end("s1"))
    assert [one.partition(" was made")[0] for one in end.problems] == [
        "The summary",
        "The recap of Lyra",
        "The recap of Holt",
        "The threads",
        "The scenario",
    ]


async def test_a_step_that_invents_names_is_left_out(game: Game) -> None:
    await game.play("s1", vex())
    strange = threads("The tribute", "A plot")
    strange["threads"][1]["summary"] = "It was Zorro."  # type: ignore[index]
    end = await game.end(
        "s1",
        {"summary": "We met Zorro."},
        {"recap": "I love Zorro."},
        RECAPS[1],
        strange,
        {"situation": "It is Zorro.", "hooks": []},
    )
    assert len(end.problems) == 4
    assert all("Zorro" in one for one in end.problems)
    assert end.scenario is not None
    assert "Zorro" not in end.scenario.text


# ---- The beginning of the next ----


async def test_the_beginning_keeps_to_its_budget(game: Game) -> None:
    for number in range(1, 5):
        await game.play(f"s{number}", vex(f"Vex took {number} cows."))
        await game.end(f"s{number}", exists=PEOPLE)
    start = await start_session(game.world, game.witnesses)
    full = start.render(5_000)
    assert full.index("Where things stand") < full.index("What they remember")
    assert "### People (1)\n- Holt: captain of the guard" in full
    for budget in (0, 1, 5, 20, 60, 100, 200, 400, 800):
        assert estimate_tokens(start.render(budget)) <= budget
    some = start.render(500)
    assert "s4: " in some  # the newest recap is the last to be left out


_ENTRIES = st.builds(
    ScopeEntry,
    kind=st.sampled_from(["People", "Places", "Others"]),
    name=st.text("abc ", min_size=1, max_size=12),
    description=st.text("xyz ", max_size=90),
)


@given(st.lists(_ENTRIES, max_size=60), st.integers(0, 600))
def test_an_index_never_exceeds_its_budget_headings_counted(
    entries: list[ScopeEntry], budget: int
) -> None:
    assert estimate_tokens(ScopeIndex(entries=tuple(entries)).render(budget)) <= budget
