"""The seam: modules observe and contribute, and never break a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from kits.minds import TestMind, make_mind, proposal, reasoning, scores

from coag.cycle import ModuleHost
from coag.errors import RecordStoreError, StateError
from coag.schema import (
    PHASES,
    ActionCall,
    ActionResult,
    ActionSpec,
    Candidate,
    Constraint,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Prompt,
    Section,
    Situation,
    Verdict,
)

RESPOND = ("respond", '{"text": "Done."}')


class Notebook:
    """A module that writes down what it is told and hands in one section."""

    def __init__(self, name: str = "notebook", text: str = "Mind the step.") -> None:
        self.name = name
        self.text = text
        self.events: list[Percept | Outcome] = []
        self.situations: list[Situation] = []
        self.loaded: Mapping[str, Any] | None = None

    async def observe(self, event: Percept | Outcome) -> None:
        self.events.append(event)

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        self.situations.append(situation)
        return Section(title=f"From {self.name}", text=self.text, source=self.name, budget=9_000)

    def save_state(self) -> Mapping[str, Any]:
        return {"events": len(self.events)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.loaded = state


def answers(*cycles: tuple[tuple[str, str], ...]) -> dict[Phase, Any]:
    remaining = list(cycles)

    def propose(_prompt: Prompt) -> Mapping[str, Any]:
        return proposal(*remaining.pop(0))

    return {
        Phase.REASONING: reasoning(),
        Phase.PROPOSAL: propose,
        Phase.EVALUATION: scores(0.9, 0.5),
        Phase.SELECTION: {"choice": 1},
    }


async def greet() -> str:
    """Greets."""
    return "hello"


GREET = ("greet", "{}")


async def test_a_module_is_told_of_everything_in_the_order_of_the_trace() -> None:
    module = Notebook()
    mind = make_mind(answers((GREET,), (RESPOND,)), tools=[greet], modules=[module])
    await mind.turn("Greet.")
    written = [r for r in mind.trace.records if r.record == "percept" or r.record == "outcome"]  # noqa: PLR1714 - narrows the type
    assert module.events == written
    kinds = [e.phase.value if e.record == "outcome" else e.kind.value for e in module.events]
    six = [phase.value for phase in PHASES]
    assert kinds == ["message", *six, "tool_return", *six]


# ---- modules that fail ----


class Broken(Notebook):
    """Raises whenever it is called."""

    def __init__(self) -> None:
        super().__init__("broken")

    async def observe(self, event: Percept | Outcome) -> None:
        raise KeyError("observe")

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        raise ZeroDivisionError("contribute")

    def save_state(self) -> Mapping[str, Any]:
        raise OSError("save")


class BrokenAtOnce(Broken):
    """Raises before there is anything to wait for."""

    def observe(self, event: Percept | Outcome) -> Any:
        raise KeyError("observe")

    def contribute(self, phase: Phase, situation: Situation, budget: int) -> Any:
        raise ZeroDivisionError("contribute")


class Late(Notebook):
    """Takes for ever to contribute."""

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        await asyncio.Event().wait()
        return None


class Cancelling(Notebook):
    """Cancels itself."""

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        raise asyncio.CancelledError


class Impatient(Notebook):
    """Raises a time-out of its own."""

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        raise TimeoutError("the weather service")


class Talking(Notebook):
    """Gives a text where a section is wanted."""

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Any:
        return "words"


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        (Broken(), "contribute raised ZeroDivisionError: contribute"),
        (BrokenAtOnce(), "contribute raised ZeroDivisionError: contribute"),
        (Late("late"), "contribute took longer than 0.05 s"),
        (Cancelling("cancelling"), "contribute was cancelled by itself"),
        (Impatient("impatient"), "contribute raised TimeoutError: the weather service"),
        (Talking("talking"), "contribute gave a str instead of a Section"),
    ],
)
async def test_a_module_that_fails_is_left_out_and_named(module: Notebook, problem: str) -> None:
    mind = make_mind(answers((RESPOND,)), modules=[module, Notebook("sound")], module_seconds=0.05)
    _, result = await mind.turn()
    assert result.reason == "respond"
    assert result.failed_modules == (module.name,)
    assert f"{module.name} {problem}" in mind.problems
    for _, prompt in mind.asking.asked:
        assert "From sound" in prompt[-1].content
        assert f"From {module.name}" not in prompt[-1].content


async def test_a_module_that_cannot_be_saved_is_left_out_of_the_snapshot() -> None:
    mind = make_mind(answers((RESPOND,)), modules=[Broken(), Notebook("sound")])
    await mind.turn()
    (snapshot,) = (r for r in mind.trace.records if r.record == "snapshot")
    assert snapshot.modules == {"sound": {"events": 1}}
    assert "broken save_state raised OSError: save" in mind.problems


def test_saved_states_go_back_to_their_modules() -> None:
    one, two = Notebook("one"), Notebook("two")
    ModuleHost([one, two]).load_state({"one": {"events": 7}, "gone": {}})
    assert one.loaded == {"events": 7}
    assert two.loaded is None


class Forgetful(Notebook):
    """One that can be reset, or says that it cannot."""

    def __init__(self, name: str, problem: Exception | None = None) -> None:
        super().__init__(name)
        self.problem = problem
        self.reset = 0

    def reset_state(self) -> None:
        if self.problem is not None:
            raise self.problem
        self.reset += 1


def test_modules_that_can_be_reset_are_and_the_others_go_on() -> None:
    forgetful, old = Forgetful("forgetful"), Notebook("old")
    ModuleHost([old, forgetful]).reset_state()
    assert forgetful.reset == 1


def test_a_module_that_cannot_forget_is_told_of_once_the_others_have() -> None:
    broken, sound = Forgetful("broken", OSError("jammed")), Forgetful("sound")
    with pytest.raises(StateError, match=r"Module 'broken' has not forgotten: .*jammed"):
        ModuleHost([broken, sound]).reset_state()
    assert sound.reset == 1


# ---- modules that bring constraints and actions ----


class Warden(Notebook):
    """Forbids greeting from its second cycle on."""

    def __init__(self) -> None:
        super().__init__("warden")
        self.fails = False

    def constraints(self) -> Sequence[Constraint]:
        if self.fails:
            raise LookupError("the rule book")

        def silence(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
            return Verdict.forbid("hush") if candidate.action == "greet" else Verdict.allow()

        return [silence] if any(e.record == "outcome" for e in self.events) else []


async def test_a_modules_constraints_are_in_force_from_the_next_cycle() -> None:
    mind = make_mind(answers((GREET,), (GREET, RESPOND)), tools=[greet], modules=[Warden()])
    _, result = await mind.turn()
    assert result.reason == "respond"
    pinned = [
        r.constraints
        for r in mind.trace.records
        if r.record == "outcome" and r.phase is Phase.RETRIEVAL
    ]
    assert pinned == [(), ("silence",)]


async def test_where_a_module_cannot_tell_its_constraints_nothing_passes() -> None:
    warden = Warden()
    warden.fails = True
    mind = make_mind(answers(*[(GREET, RESPOND)] * 3), tools=[greet], modules=[warden])
    _, result = await mind.turn()
    assert result.reason == "impasses"
    assert result.failed_modules == ("warden",)
    assert not mind.records("intent")
    (rejection, *_) = mind.context.working_memory.rejections
    assert rejection.constraint == "warden_constraints"
    assert "LookupError: the rule book" in rejection.reason


class Bell(Notebook):
    """Brings an action of its own."""

    def __init__(self, problem: Exception | None = None) -> None:
        super().__init__("bell")
        self.problem = problem
        self.offers = True

    def action_specs(self) -> Sequence[ActionSpec]:
        if not self.offers:
            raise LookupError("no bell")
        return [ActionSpec(name="ring", description="Rings.", internal=True)]

    async def run_action(self, call: ActionCall) -> ActionResult:
        if self.problem is not None:
            raise self.problem
        return ActionResult(content="ding")


RING = ("ring", "{}")


def last_deed(mind: TestMind) -> tuple[str, str, str]:
    deed = mind.context.working_memory.deeds[0]
    return deed.action, deed.status.value, deed.result


async def test_a_modules_action_runs_between_intent_and_receipt_and_is_no_percept() -> None:
    mind = make_mind(answers((RING,), (RESPOND,)), modules=[Bell()])
    await mind.turn()
    assert last_deed(mind) == ("ring", "done", "ding")
    (intent,), (receipt,) = mind.records("intent"), mind.records("receipt")
    assert intent.record == "intent"
    assert receipt.record == "receipt"
    assert (intent.action, intent.internal) == ("ring", True)
    assert (receipt.intent_id, receipt.content) == (intent.id, "ding")
    heard = [one.kind for one in mind.trace.records if isinstance(one, Percept)]
    assert heard == [PerceptKind.MESSAGE]


async def test_a_modules_repeatable_action_needs_no_intent() -> None:
    class Poster(Bell):
        def action_specs(self) -> Sequence[ActionSpec]:
            return [spec.model_copy(update={"repeatable": True}) for spec in super().action_specs()]

    mind = make_mind(answers((RING,), (RESPOND,)), modules=[Poster()])
    await mind.turn()
    assert last_deed(mind) == ("ring", "done", "ding")
    assert not mind.records("intent")


async def test_a_modules_action_that_never_returns_is_given_up_with_unknown_outcome() -> None:
    class Hanging(Bell):
        async def run_action(self, call: ActionCall) -> ActionResult:
            await asyncio.Event().wait()
            raise AssertionError

    mind = make_mind(answers((RING,), (RESPOND,)), modules=[Hanging()], action_seconds=0.05)
    async with asyncio.timeout(5):
        _, result = await mind.turn()
    assert result.reason == "respond"
    deed = ("ring", "failed", "ring gave no answer within 0.05 s; it may have acted.")
    assert last_deed(mind) == deed
    heard = [one.kind for one in mind.trace.records if isinstance(one, Percept)]
    assert heard == [PerceptKind.MESSAGE, PerceptKind.UNKNOWN_OUTCOME]


async def test_a_modules_action_that_raises_is_a_failed_action() -> None:
    mind = make_mind(answers((RING,), (RESPOND,)), modules=[Bell(ValueError("cracked"))])
    _, result = await mind.turn()
    assert result.reason == "respond"
    assert last_deed(mind) == ("ring", "failed", "ring raised ValueError: cracked")


async def test_an_error_of_our_own_in_an_action_is_not_hidden() -> None:
    mind = make_mind(answers((RING,)), modules=[Bell(RecordStoreError("disk full"))])
    with pytest.raises(RecordStoreError, match="disk full"):
        await mind.turn()
    assert not mind.context.working_memory.in_cycle


async def test_a_module_that_cannot_list_its_actions_offers_none() -> None:
    bell = Bell()
    bell.offers = False
    mind = make_mind(answers((RING, RESPOND)), modules=[bell])
    _, result = await mind.turn()
    assert (result.reason, result.failed_modules) == ("respond", ("bell",))
    rejected = mind.context.working_memory.rejections
    assert [gone.constraint for gone in rejected] == ["action_exists"]


async def test_an_action_that_nobody_offers_any_more_fails() -> None:
    call = ActionCall(id="i1", action="ring", arguments={})
    result = await ModuleHost([Notebook()]).run_action(call)
    assert result.is_error
    assert result.content == "No module offers 'ring' any more."


# ---- modules that do not stop ----


class Stubborn(Notebook):
    """Swallows its cancellation."""

    def __init__(self) -> None:
        super().__init__("stubborn")
        self.let_go = asyncio.Event()

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await self.let_go.wait()
        return None


async def test_a_module_that_swallows_its_cancellation_is_given_up_all_the_same() -> None:
    module, problems = Stubborn(), list[str]()
    seam = ModuleHost(
        [module, Notebook()], seconds=0.05, on_problem=lambda _, p: problems.append(p)
    )
    situation = Situation(activity="main", goal="", cycle=1, phase=Phase.REASONING, query="")
    async with asyncio.timeout(5):
        sections = await seam.contribute(Phase.REASONING, situation, 100)
    module.let_go.set()
    assert [section.source for section in sections] == ["notebook"]
    assert problems == ["contribute took longer than 0.05 s"]


async def test_a_modules_action_that_cancels_itself_is_a_failed_action() -> None:
    class Quitter(Bell):
        async def run_action(self, call: ActionCall) -> ActionResult:
            raise asyncio.CancelledError

    result = await ModuleHost([Quitter()]).run_action(
        ActionCall(id="i", action="ring", arguments={})
    )
    assert result.is_error
    assert result.content == "ring was cancelled by itself."


async def test_what_a_module_does_to_the_arguments_of_its_action_stays_with_it() -> None:
    class Scribbler(Notebook):
        def action_specs(self) -> Sequence[ActionSpec]:
            return (ActionSpec(name="note", description="Notes.", internal=True),)

        async def run_action(self, call: ActionCall) -> ActionResult:
            call.arguments["lines"].append("scribble")
            return ActionResult(content="noted")

    call = ActionCall(id="1", action="note", arguments={"lines": []})
    assert (await ModuleHost([Scribbler()]).run_action(call)).content == "noted"
    assert call.arguments == {"lines": []}
