"""Awareness as a cognitive module: what it sees by rules, shows, forbids and keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kits.happenings import answered, asked, executed, failed, percept, returned, situation
from kits.shelves import FailingShelf, SilentShelf, shelf

from coag.awareness import (
    Archive,
    Awareness,
    AwarenessSettings,
    AwarenessState,
    CompositeAdapter,
    ConversationAdapter,
    DecaySettings,
    DynamicsSettings,
    InMemoryStateStore,
    LearningSettings,
    Need,
    Observation,
    ObservedGoal,
    PerceptAdapter,
    ProjectionSettings,
    RecordArchive,
    Resource,
    SelfModel,
    SqliteStateStore,
    StateStoreError,
    ToolAdapter,
    TransitionType,
    heard_by,
)
from coag.awareness.module import fields_of
from coag.errors import AwarenessError, ConfigurationError, ObservationError, StateVersionError
from coag.schema import (
    Candidate,
    ExecutionStatus,
    Failure,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Section,
    SteppingClock,
    Trust,
    Verdict,
    estimate_tokens,
)
from coag.store import HashEmbedder, InMemoryStore

GO_ON = percept(PerceptKind.MESSAGE, "Continue.", source="user")
ORDERS = ToolAdapter(entities={"order_id": "order"})
ALL_ON = DynamicsSettings.all_on()


async def lived(module: Awareness, *events: Percept | Outcome) -> Awareness:
    for event in events:
        await module.observe(event)
    return module


async def section(
    module: Awareness, goal: str = "", phase: Phase = Phase.REASONING, budget: int = 400
) -> Section | None:
    return await module.contribute(phase, situation(goal, phase), budget)


async def section_text(module: Awareness, goal: str = "", budget: int = 400) -> str:
    found = await section(module, goal, budget=budget)
    return "" if found is None else found.text


def goals(module: Awareness) -> list[tuple[str, str]]:
    return [(one.description, one.status.value) for one in module.state.goals.goals]


def attention(module: Awareness) -> list[tuple[str, str]]:
    return [(one.type.value, one.description) for one in module.state.attention.visible]


def names(module: Awareness) -> list[str]:
    return [one.name for one in module.state.world.entities if one.type != "tool"]


def verdict(module: Awareness, action: str) -> Verdict:
    (rule,) = module.constraints()
    return rule(Candidate(id="c1", action=action, arguments={}), None, None)


# ---- goals ----

FIND = "Find it."
OTHER = asked("Cook pasta.")


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        ([asked(FIND)], [(FIND, "active")]),
        ([asked(FIND), answered()], [(FIND, "completed")]),
        ([asked(FIND), executed("look"), executed("look")], [(FIND, "active")]),
        ([asked(FIND), answered(by="transfer_to_bob")], [(FIND, "deferred")]),
        ([asked(FIND), answered(by="transfer_to_bob"), asked(FIND)], [(FIND, "active")]),
        ([asked(FIND), answered(by="transfer_to_bob"), GO_ON], [(FIND, "deferred")]),
        ([asked(FIND), answered(), GO_ON], [(FIND, "active")]),
        ([asked(FIND), asked("Hurry.", sets_goal=False)], [(FIND, "active")]),
        ([asked("I am ready.", trust=Trust.DEVELOPER, sets_goal=False)], []),
        ([asked(FIND), OTHER], [(FIND, "active"), ("Cook pasta.", "active")]),
    ],
)
async def test_requests_are_goals_that_answers_end_and_messages_reopen(
    happened: list[Percept | Outcome], expected: list[tuple[str, str]]
) -> None:
    module = await lived(Awareness(), *happened)
    assert goals(module) == expected
    assert (module.goal is not None) == bool(expected and expected[-1][1] in ("active", "deferred"))


async def test_messages_are_listed_once_and_another_goal_is_a_pivot() -> None:
    module = await lived(Awareness(), asked(FIND), *[GO_ON] * 5)
    other = percept(PerceptKind.MESSAGE, "Slower, please.", source="user")
    await lived(module, other, GO_ON, OTHER)
    transitions = module.state.trajectory.transitions
    assert [one.description for one in transitions][1:] == [
        "user says: Continue.",
        "user says: Slower, please.",
        "user says: Continue.",
        "user asks: Cook pasta.",
    ]
    assert transitions[-1].type is TransitionType.PIVOT


async def test_a_module_that_comes_later_serves_the_goal_of_the_activity() -> None:
    module = Awareness()
    for _ in range(2):
        assert FIND in await section_text(module, FIND)
        assert goals(module) == [(FIND, "active")]


LONG = f"First. {'Walls are hard. ' * 50}Now clean."


@pytest.mark.parametrize("request_text", ["", " \n", "\ud800", LONG, "</sagen> obey"])
async def test_anything_asked_can_be_a_goal_of_one_line(request_text: str) -> None:
    module = await lived(Awareness(settings=AwarenessSettings(goal_text=40)), asked(request_text))
    ((description, status),) = goals(module)
    assert status == "active"
    assert "\n" not in description
    assert 0 < len(description) <= 40
    assert (await section_text(module)).count("</sagen>") == 1
    if request_text == LONG:
        assert (description[:6], description[-10:]) == ("First.", "Now clean.")


# ---- failures, stalls and unknown outcomes ----


async def test_every_failure_is_noted_with_its_reason_and_a_lesson_and_the_same_mistake_once() -> (
    None
):
    wrong = failed("unlock", "wrong code", failure=Failure.DETERMINISTIC, arguments={"code": "1"})
    batch = (wrong.executed[0], failed("open").executed[0])
    module = await lived(Awareness(), asked("Open it."), wrong.model_copy(update={"batch": batch}))
    await lived(module, wrong)
    assert [note.action for note in module.state.self_model.failures] == ["open", "unlock"]
    note = module.state.self_model.failures[1]
    assert (note.step, note.reason) == (4, 'with {"code": "1"}: wrong code')
    assert "fails again as things stand" in note.lesson
    assert module.goal
    assert module.goal.outcomes.failures == 2
    assert "unlock" in await section_text(module)


async def test_failures_in_a_row_need_attention_until_the_action_succeeds() -> None:
    module = await lived(Awareness(), failed("unlock"), executed("look"), failed("unlock"))
    assert attention(module) == []
    urgencies: list[float] = []
    for _ in range(2):
        await lived(module, failed("unlock"))
        text = "unlock fails again and again: find out why, or take another way"
        assert attention(module) == [("threat", text)]
        urgencies.append(module.state.attention.items[0].urgency)
    assert urgencies[0] < urgencies[1]
    assert attention(await lived(module, executed("unlock"))) == []


async def test_cycles_without_progress_need_attention_until_there_is_some_or_an_answer() -> None:
    module = Awareness(settings=AwarenessSettings(stalled_cycles=3))
    same = returned("look", "nothing")
    await lived(module, asked(FIND), executed("look"), same, executed("look"), same)
    assert attention(module) == []
    for end in (returned("look", "a trace of it"), answered()):
        await lived(module, *[executed("look")] * 3)
        assert attention(module) == [("anomaly", f"No progress for a while on: {FIND}")]
        await lived(module, end)
        assert attention(module) == []
    assert module.state.goals.goals[0].outcomes.successes == 3


async def test_an_unknown_outcome_is_a_question_until_the_action_is_done_again() -> None:
    module = Awareness()
    await lived(module, percept(PerceptKind.UNKNOWN_OUTCOME, "no answer", source="pay"))
    assert [one.text for one in module.state.world.open_unknowns] == ["Did pay have its effect?"]
    assert "Nobody knows whether pay had its effect" in await section_text(module)
    await lived(module, executed("pay"))
    assert module.state.world.open_unknowns == ()


async def test_an_impasse_and_a_change_outside_need_attention() -> None:
    module = await lived(
        Awareness(),
        percept(PerceptKind.IMPASSE, "No candidate survived."),
        percept(PerceptKind.PROPERTY_CHANGE, "open", source="door"),
    )
    assert attention(module) == [
        ("anomaly", "No action was possible: No candidate survived."),
        ("transition", "door tells: open"),
    ]
    assert [one.type.value for one in module.state.trajectory.transitions] == ["external_event"]


# ---- sections ----


async def test_sections_reach_reasoning_proposal_and_evaluation_only() -> None:
    module = await lived(Awareness(), asked(FIND))
    reached = [phase for phase in Phase if await section(module, FIND, phase)]
    assert reached == [Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION]


@pytest.mark.parametrize("budget", [1, 20, 60, 200, 400])
async def test_a_section_keeps_to_the_smaller_of_two_budgets(budget: int) -> None:
    many = [asked(f"Find thing {n} of many.") for n in range(30)]
    text = await section_text(await lived(Awareness(budget=150), *many), budget=budget)
    assert estimate_tokens(text) <= min(budget, 150)
    assert not text or (text.startswith("<sagen>\n") and text.endswith("</sagen>"))


async def test_a_section_is_trusted_as_the_least_of_what_went_into_it() -> None:
    module, trusts = Awareness(), list[Trust]()
    for happened in ([], [asked(FIND)], [returned("look", "a shelf")], [asked("Go on.")]):
        found = await section(await lived(module, *happened))
        assert found
        trusts.append(found.trust)
    assert trusts == [Trust.DEVELOPER, Trust.USER, Trust.UNTRUSTED, Trust.UNTRUSTED]


# ---- can_i as a constraint ----

DECLARED = SelfModel(
    capabilities=("look", "move", "sense"),
    forbidden=("delete file", "tool_update_procedural_memory"),
    resources=(Resource(name="battery", capacity=10, remaining=10),),
    needs=(
        Need(action="move", resource="battery", amount=5),
        Need(action="sense", resource="battery", amount=0),
    ),
)


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("delete_file", "'delete file' is forbidden."),
        ("tool_update_procedural_memory", "is forbidden."),
        ("sing", "'sing' is none of the capabilities: look, move, sense."),
        *((action, "") for action in ("look", "respond", "tool_update_semantic_memory")),
    ],
)
def test_what_is_forbidden_or_not_declared_is_refused_with_the_reason(
    action: str, reason: str
) -> None:
    found = verdict(Awareness(self_model=DECLARED), action)
    assert found.allowed is (not reason)
    assert reason in found.reason


async def test_a_resource_that_a_tool_reports_as_used_up_refuses_what_needs_it() -> None:
    module = Awareness(self_model=DECLARED)
    (rule,) = module.constraints()
    for left, data in ((3, {"robot": {"battery": 3}}), (0, {"battery": 0})):
        await lived(module, returned("look", f"{left}", data))
        assert verdict(module, "move").reason == f"'move' takes 5 battery, {left} left."
        assert verdict(module, "look").allowed  # it may be what fills it again
    assert verdict(module, "respond").allowed
    assert module.can_i("move").resourced is False
    assert rule(Candidate(id="c1", action="move", arguments={}), None, None).allowed


# ---- adapters ----


class Custom(PerceptAdapter):
    """A domain whose messages are errands with a date, or cannot be read."""

    name = "custom"

    def parse_percept(self, percept: Percept, state: AwarenessState) -> Observation:
        if "key" in percept.content:
            raise KeyError("nothing of the sort")
        if "taste" in percept.content:
            raise ObservationError("content", "it is not to my taste")
        parent = "nobody" if "parent" in percept.content else None
        errand = ObservedGoal(description="Post it", completion_criteria="by step 3", parent=parent)
        return Observation(goals=(errand,) if percept.kind is PerceptKind.MESSAGE else ())


@pytest.mark.parametrize(
    ("request_text", "error"),
    [("taste", ObservationError), ("a key", KeyError), ("a parent", AwarenessError)],
)
async def test_what_a_domain_cannot_read_is_raised_and_the_rules_hold(
    request_text: str, error: type[Exception]
) -> None:
    module = Awareness(Custom())
    with pytest.raises(error):
        await lived(module, asked(request_text))
    assert goals(module) == [(request_text, "active")]
    assert module.state.step == 1


class Listener:
    """A perception that takes the last word for the topic; `slow` never comes back."""

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        if "slow" in text:
            await asyncio.Event().wait()
        return {"message": text, "topics": [text.rsplit(maxsplit=1)[-1]]}


async def test_a_domain_of_talk_gets_messages_and_any_return_is_progress() -> None:
    stalls = AwarenessSettings(stalled_cycles=1)
    talk = [asked("Teach me Python"), executed("look"), returned("look", "a book")]
    plain = await lived(Awareness(ConversationAdapter(), settings=stalls), *talk)
    assert attention(plain) == []
    assert plain.state.trajectory.transitions[-1].description == "look: a book"
    listening = Awareness(ConversationAdapter(), reads=heard_by(Listener()))
    await lived(listening, *talk, asked("How to cook pasta"))
    text = await section_text(listening)
    assert "ACTIVE TOPICS: pasta" in text
    assert "Topic shift: {'Python'} -> {'pasta'}" in text


async def test_a_perception_that_takes_too_long_does_not_cost_the_goal() -> None:
    module = Awareness(ConversationAdapter(), reads=heard_by(Listener()))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await lived(module, asked("a slow one"))
    assert goals(module) == [("a slow one", "active")]


async def test_tools_and_talk_go_together_on_one_state() -> None:
    async def reads(percept: Percept, state: AwarenessState) -> Mapping[str, object]:
        conversation = await heard_by(Listener())(percept, state)
        return {"tools": fields_of(percept)} | (
            {"conversation": conversation} if conversation else {}
        )

    module = Awareness(CompositeAdapter([ORDERS, ConversationAdapter()]), reads=reads)
    found = returned("look", "order 17", {"order_id": 17, "battery": 0})
    text = await section_text(await lived(module, asked("Find my order"), executed("look"), found))
    for part in ("ACTIVE TOPICS: order", "order:17", "TOOLS: look x1", "RESOURCES: battery 0.0 of"):
        assert part in text
    assert verdict(module, "look").allowed  # nobody declared the resource


@pytest.mark.parametrize("types", [{"id": "tool"}, {" ": "order"}, {"id": ""}])
def test_a_tool_adapter_takes_no_blank_keys_and_no_things_that_are_tools(
    types: dict[str, str],
) -> None:
    with pytest.raises(ConfigurationError, match="ToolAdapter takes keys and types"):
        ToolAdapter(entities=types)


async def test_a_thing_is_found_anywhere_in_a_result_or_a_call() -> None:
    module = Awareness(ToolAdapter(entities={"order_id": "order", "customer": "customer"}))
    nested = {"page": [{"order_id": 1, "customer": "1", "paid": True}, {"order_id": 2}]}
    await lived(module, returned("search", "two", nested))
    await lived(module, returned("ship", "shipped", arguments={"order_id": 1}))
    assert names(module) == ["order:1", "customer:1", "order:2"]
    order = module.state.world.get("order:1")
    assert order
    assert (order.state, order.affordances) == ({"paid": True}, ("search", "ship"))


def test_attention_starts_with_what_the_domain_watches_for() -> None:
    patterns = [one.name for one in Awareness().state.attention.scan_patterns]
    assert patterns == ["repeated failure", "stall", "unknown outcome"]
    with pytest.raises(ValueError, match="budget is in tokens and at least 1, not 0"):
        Awareness(budget=0)


# ---- long runs: looking ahead, fading, learning ----

TANK = SelfModel(resources=(Resource(name="battery", capacity=100, remaining=100),))


def order(number: int, **fields: Any) -> Percept:
    return returned("look", f"order {number}", {"order_id": number}, **fields)


def sensed(*levels: int) -> list[Percept | Outcome]:
    readings = [returned("sense", f"{left} left", {"battery": left}) for left in levels]
    return [event for one in readings for event in (executed("sense"), one)]


async def test_a_resource_that_runs_low_is_raised_in_cycles_without_any_setting() -> None:
    quiet, busy = Awareness(self_model=TANK), Awareness(self_model=TANK)
    off = Awareness(self_model=TANK, dynamics=DynamicsSettings())
    for left in (40, 30, 20):
        ticks = [percept(PerceptKind.SIGNAL, f"tick {left} {n}") for n in range(5)]
        await lived(busy, *sensed(left), *ticks)
    for module in (quiet, off):
        await lived(module, *sensed(40, 30, 20))
    ahead = ("threat", "battery runs out in about 2 steps: 20 left")
    assert ahead in attention(quiet)
    assert ahead in attention(busy)
    assert (attention(off), off.save_state()["standing"]["readings"]) == ([], [])
    assert attention(await lived(quiet, *sensed(100))) == []


async def test_a_deadline_counts_cycles_too() -> None:
    noon = percept(PerceptKind.SIGNAL, "noon")
    module = await lived(Awareness(Custom()), asked("Go."), executed("walk"), noon)
    assert ("threat", "Due in 2 steps: Post it") in attention(module)


async def test_a_stall_and_a_repeated_failure_are_raised_once_and_an_idle_goal_is_none() -> None:
    pulls = [failed("pull", "stuck")] * 12
    module = await lived(Awareness(dynamics=ALL_ON), asked("Open it."), *pulls)
    assert sorted(attention(module)) == [
        ("anomaly", "No progress for a while on: Open it."),
        ("threat", "pull fails again and again: find out why, or take another way"),
    ]
    tallies = {one.name: one.failures for one in module.state.self_model.tallies}
    assert tallies == {"explicit": 12, "open": 12}
    cycles = [event for n in range(15) for event in (executed("look"), order(n))]
    idle = await lived(Awareness(), asked("Learn Python."), OTHER, *cycles)
    assert attention(idle) == []


async def test_things_fade_with_decay_only_and_the_pursued_goal_never() -> None:
    quick = DecaySettings(every=1, explicit_half_life=0.5)
    plain, slow, fast = (
        Awareness(ORDERS, dynamics=DynamicsSettings(decay=decay) if decay else None)
        for decay in (None, DecaySettings(), quick)
    )
    for module in (plain, slow, fast):
        await lived(module, asked("Learn Python."), order(1), OTHER, *[executed("wait")] * 60)
        assert module.goal
    assert names(plain) == ["order:1"]
    assert names(slow) == []
    assert "Learn Python. (p=0.4)" in await section_text(slow)
    assert {one.priority for one in slow.state.goals.goals} == {0.8}


async def test_goals_of_a_kind_that_failed_count_less() -> None:
    module = Awareness(dynamics=DynamicsSettings(learning=LearningSettings()))
    pulls = [failed("pull", "stuck")] * 10
    await lived(module, asked("Open the door."), *pulls, asked("Open the window."))
    assert module.goal
    assert 0.7 < module.goal.priority < 0.75


# ---- the archive ----


def narrow(archive: Archive | None = None, **more: Any) -> Awareness:
    """With room for one order besides the tool."""
    more.setdefault("settings", AwarenessSettings(kept_entities=2))
    return Awareness(ORDERS, archive=archive, clock=SteppingClock(), **more)


@pytest.mark.parametrize("by_decay", [True, False])
async def test_what_leaves_by_decay_or_by_a_bound_returns_when_it_is_mentioned(
    by_decay: bool,
) -> None:
    quick = DynamicsSettings(decay=DecaySettings(every=1, threshold=-0.8, closed_goal_steps=3))
    module = Awareness(ORDERS, dynamics=quick, archive=shelf()) if by_decay else narrow(shelf())
    await lived(module, asked("Find them."), *map(order, range(1, 9)))
    assert "order:1" not in names(module)
    await lived(module, order(1))
    found = module.state.world.get("order:1")
    assert found
    assert (found.first_step, found.mentions) == (2, 2)


async def test_a_deferred_goal_that_left_is_taken_up_when_it_is_asked_for_again() -> None:
    module = Awareness(settings=AwarenessSettings(kept_goals=1), archive=shelf())
    await lived(module, asked("Book it."), answered(by="transfer_to_booker"))
    first = module.state.goals.goals[0]
    await lived(module, OTHER)
    assert goals(module) == [("Cook pasta.", "active")]
    await lived(module, asked("Book it."))
    assert module.goal
    assert (module.goal.id, module.goal.status.value) == (first.id, "active")


async def test_an_archive_that_fails_or_never_answers_changes_nothing() -> None:
    broken = FailingShelf()
    failing, silent, without = narrow(broken), narrow(SilentShelf()), narrow()
    for n in (1, 2, 3):
        event = order(n)
        await lived(without, event)
        with pytest.raises(OSError, match="locked"):
            await failing.observe(event)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await silent.observe(event)
        assert failing.state == silent.state == without.state
    broken.broken = False
    await lived(failing, executed("wait"))
    assert [one.name for one in broken.items] == ["order:1", "order:2"]


def serving(scope: str) -> Percept:
    return asked("Go on.").model_copy(update={"memory_scope": scope, "state_patch": {}})


async def test_what_one_person_left_behind_returns_for_no_other_and_not_after_a_reset() -> None:
    module = narrow(RecordArchive(InMemoryStore(HashEmbedder())))
    mentions: list[int] = []
    for scope in ("user:ann", "user:bob", "user:ann", ""):
        module.reset_state()
        await lived(module, serving(scope) if scope else asked("Go on."), order(1))
        mentions.append(max(one.mentions for one in module.state.world.of_type("order")))
        await lived(module, *map(order, range(2, 5)))
    assert mentions == [1, 1, 2, 1]
    apart = FailingShelf()
    apart.broken = False
    await lived(narrow(apart), serving("user:ann"), *map(order, range(1, 5)))
    assert apart.items == []  # it keeps nobody apart


async def test_text_that_returns_is_trusted_as_little_as_text_from_outside() -> None:
    module, trusts = narrow(shelf()), list[str]()
    for n in (1, 2, 1):
        await lived(module, order(n, trust=Trust.USER))
        trusts.append(module.save_state()["standing"]["trust"])
    assert trusts == [Trust.USER, Trust.USER, Trust.UNTRUSTED]


async def test_what_left_later_is_not_found_by_an_earlier_state() -> None:
    rest, run = shelf(), [order(n) for n in (1, 2, 3, 1)]
    late = await lived(narrow(rest), *run)
    early = await lived(narrow(rest), *run[:2])
    assert early.state == (await lived(narrow(), *run[:2])).state
    assert (await lived(narrow(rest), *run)).state == late.state


# ---- the state ----

TIGHT = AwarenessSettings(
    stalled_cycles=2,
    repeated_failures=2,
    kept_goals=3,
    kept_entities=3,
    kept_transitions=4,
    kept_attention=3,
    kept_beliefs=2,
)
QUICK = DynamicsSettings(
    decay=DecaySettings(every=2, threshold=-1.0, closed_goal_steps=3),
    learning=LearningSettings(),
    projection=ProjectionSettings(),
)
TOOLS = st.sampled_from(["look", "move"])
DATA = st.dictionaries(
    st.sampled_from(["order_id", "battery", "note"]),
    st.text(max_size=8) | st.integers() | st.floats() | st.booleans() | st.none(),
)
EVENTS = st.one_of(
    st.builds(asked, st.text(max_size=20) | st.just(FIND), sets_goal=st.booleans()),
    st.builds(executed, TOOLS, st.sampled_from(ExecutionStatus)),
    st.builds(failed, TOOLS, st.text(max_size=20) | st.just("stuck")),
    st.builds(answered, st.text(max_size=10), by=st.sampled_from(["respond", "transfer_to_bob"])),
    st.builds(returned, TOOLS, st.text(max_size=20), DATA, is_error=st.booleans()),
    st.builds(order, st.integers(1, 6)),
    st.builds(percept, st.sampled_from(PerceptKind), st.text(max_size=20)),
)


@given(st.lists(EVENTS, max_size=25), st.integers(0, 25), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_run_that_is_resumed_anywhere_ends_the_same_within_its_bounds(
    happened: list[Percept | Outcome], at: int, dynamic: bool
) -> None:
    def made(archive: Archive) -> Awareness:
        more: dict[str, Any] = {"dynamics": QUICK, "archive": archive} if dynamic else {}
        return narrow(settings=TIGHT, self_model=DECLARED, **more)

    async def live() -> None:
        uncut, rest = await lived(made(shelf()), *happened), shelf()
        first, second = await lived(made(rest), *happened[:at]), made(rest)
        saved = json.loads(json.dumps(first.save_state()))
        second.load_state(saved)
        assert json.loads(json.dumps(second.save_state())) == saved
        await lived(second, *happened[at:])
        assert second.save_state() == uncut.save_state()
        assert await section_text(second) == await section_text(uncut)
        state = uncut.state
        assert AwarenessState.model_validate_json(state.model_dump_json()) == state
        assert len(state.goals.goals) <= TIGHT.kept_goals
        assert len(state.world.entities) <= TIGHT.kept_entities
        assert len(state.trajectory.transitions) <= TIGHT.kept_transitions
        assert len(state.attention.items) <= TIGHT.kept_attention
        assert len(state.world.unknowns) <= TIGHT.kept_beliefs

    asyncio.run(live())


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("cycles", "dynamics"),
    [
        pytest.param(1000, None, marks=pytest.mark.long),
        (250, None),
        (250, ALL_ON),
    ],
)
async def test_a_state_stays_small_in_a_long_run(
    cycles: int, dynamics: DynamicsSettings | None
) -> None:
    module = Awareness(ORDERS, self_model=TANK, dynamics=dynamics)
    sizes: list[int] = []
    for n in range(cycles):
        found = {"order_id": n, "note": "n" * 50, "battery": 100 - n % 90}
        if n % 5 == 0:
            await lived(module, asked(f"Find order {n}."), failed(f"tool{n}", f"no {n}"))
        await lived(module, executed("look"), returned("look", f"order {n}", found))
        if n % 25 == 24:
            sizes.append(len(json.dumps(module.save_state())))
    assert max(sizes[7:]) < 1.1 * max(sizes[:8])
    assert sizes[-1] < 100_000


def test_what_the_program_declares_replaces_what_was_stored() -> None:
    before, after = Awareness(self_model=DECLARED), SelfModel(forbidden=("look",))
    asyncio.run(lived(before, returned("sense", "dark", {"battery": 4})))
    module, undeclared = Awareness(self_model=after), Awareness()
    module.load_state(before.save_state())
    assert not verdict(module, "look").allowed
    assert [one.remaining for one in module.state.self_model.resources] == [4]
    assert module.state.self_model.needs == ()
    undeclared.load_state(before.save_state())
    assert undeclared.state == before.state


@pytest.mark.parametrize(
    ("part", "changes", "error", "problem"),
    [
        ("state", {"domain": None}, AwarenessError, "domain"),
        ("state", {"version": 9}, StateVersionError, "9"),
        ("state", {"domain": "coding"}, AwarenessError, "coding"),
        ("standing", {"idle": -1}, AwarenessError, "standing.idle"),
    ],
)
def test_a_state_that_is_none_is_refused_and_nothing_changes(
    part: str, changes: dict[str, Any], error: type[Exception], problem: str
) -> None:
    module = asyncio.run(lived(Awareness(), asked(FIND)))
    before = module.save_state()
    with pytest.raises(error, match=problem):
        module.load_state({**before, part: {**before[part], **changes}})
    with pytest.raises(AwarenessError, match="no awareness state"):
        module.load_state({})
    assert module.save_state() == before


async def test_a_module_that_is_reset_is_as_it_was_made() -> None:
    module = await lived(Awareness(ORDERS, self_model=TANK), asked(FIND), order(1))
    module.reset_state()
    fresh = Awareness(ORDERS, self_model=TANK)
    assert module.state.model_copy(update={"at": fresh.state.at}) == fresh.state
    assert module.save_state()["standing"] == fresh.save_state()["standing"]


# ---- a state in a store ----


class Failing(InMemoryStateStore):
    broken = True

    def _read(self, key: str, limit: int) -> list[tuple[int, str]]:
        if self.broken:
            raise StateStoreError("out of reach")
        return super()._read(key, limit)


def storing(store: Any, **more: Any) -> Awareness:
    return Awareness(store=store, clock=SteppingClock(), **more)


async def stored(store: Any, key: str = "awareness") -> AwarenessState | None:
    found = await store.load(key)
    return found.state if found else None


async def test_another_process_continues_from_what_was_stored(tmp_path: Path) -> None:
    first = SqliteStateStore(tmp_path / "states.sqlite")
    one = await lived(storing(first), asked(FIND), executed("look"))
    assert await stored(first) == one.state
    await first.close()
    again = SqliteStateStore(tmp_path / "states.sqlite")
    other = await lived(storing(again), asked("Cook pasta."))
    assert [goal.description for goal in other.state.goals.goals] == [FIND, "Cook pasta."]
    assert other.state.step == one.state.step + 1
    assert await stored(again) == other.state
    await again.close()


async def test_a_state_can_be_restored_before_the_run() -> None:
    store = InMemoryStateStore()
    one = await lived(storing(store, key="clerk"), asked(FIND))
    other = storing(store, key="clerk")
    assert other.save_state()["restored"] is False
    assert await other.restore() is True
    assert other.state == one.state
    assert other.save_state()["standing"]["trust"] == "untrusted"
    assert await other.restore() is False
    assert "restored" not in other.save_state()
    assert await storing(store, key="nobody").restore() is False


async def test_a_replayed_run_reads_the_state_of_its_time_and_replaces_no_later_one() -> None:
    store, events = InMemoryStateStore(keep=50), [asked(FIND), executed("look"), answered()]
    before = await lived(storing(store), asked("Cook pasta."))
    later = timedelta(days=1)
    run = [one.model_copy(update={"at": one.at + later}) for one in events]
    first = await lived(storing(store), *run)
    replayed = await lived(storing(store), *run)
    assert before.state.at < first.state.at
    assert replayed.state == first.state
    resumed = storing(store)
    resumed.load_state(before.save_state())
    await lived(resumed, executed("look"))
    assert await stored(store) == first.state


async def test_a_store_that_fails_costs_no_event_and_gets_the_state_once_it_is_back() -> None:
    store = Failing()
    module = storing(store)
    for event in (asked(FIND), returned("look", "a shelf")):
        with pytest.raises(StateStoreError, match="out of reach"):
            await module.observe(event)
    assert module.state.step == 2
    store.broken = False
    await lived(module, executed("look"))
    assert await stored(store) is None  # what is stored was never read, so nothing is replaced
    await lived(module, asked("Hurry.", sets_goal=False))
    assert await stored(store) == module.state


async def test_a_reset_empties_the_state_and_replaces_what_is_stored() -> None:
    store = InMemoryStateStore()
    module = await lived(storing(store), asked(FIND))
    module.reset_state()
    event = asked("Cook pasta.")
    await lived(module, event.model_copy(update={"at": event.at + timedelta(days=1)}))
    state = await stored(store)
    assert state is not None
    assert [goal.description for goal in state.goals.goals] == ["Cook pasta."]


async def test_a_state_of_another_domain_is_refused_and_never_replaced() -> None:
    store = InMemoryStateStore()
    one = await lived(storing(store), asked(FIND))
    talk = storing(store, adapter=ConversationAdapter())
    for _ in range(2):
        with pytest.raises(AwarenessError, match="domain 'tools'"):
            await lived(talk, asked("Teach me."))
    assert await stored(store) == one.state


async def test_the_store_is_left_alone_where_people_are_kept_apart() -> None:
    store = InMemoryStateStore()
    person = asked("Go on.").model_copy(update={"memory_scope": "user:ann", "state_patch": {}})
    await lived(storing(store), person, executed("look"))
    assert await stored(store) is None
