"""Modules observe and contribute, and never break a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
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

RESPOND, GREET, RING = ("respond", '{"text": "Done."}'), ("greet", "{}"), ("ring", "{}")
CALL = ActionCall(id="i1", action="ring", arguments={})


def raising(error: BaseException) -> Callable[..., Any]:
    async def later(*given: Any) -> Any:
        raise error

    return later


async def hang(*given: Any) -> Any:
    await asyncio.Event().wait()


class Module:
    """Writes down what it observes and contributes one section, or does as its methods say."""

    def __init__(self, name: str = "module", **methods: Callable[..., Any]) -> None:
        self.name = name
        self.events: list[Percept | Outcome] = []
        self.loaded: Mapping[str, Any] | None = None
        vars(self).update(methods)

    async def observe(self, event: Percept | Outcome) -> None:
        self.events.append(event)

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        text = f"From {self.name}"
        return Section(title=text, text="Mind the step.", source=self.name, budget=9_000)

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


async def test_a_module_observes_everything_in_the_order_of_the_trace() -> None:
    module = Module()
    mind = make_mind(answers((GREET,), (RESPOND,)), tools=[greet], modules=[module])
    await mind.turn("Greet.")
    written = [r for r in mind.trace.records if r.record == "percept" or r.record == "outcome"]  # noqa: PLR1714 - narrows the type
    assert module.events == written
    kinds = [e.phase.value if e.record == "outcome" else e.kind.value for e in module.events]
    six = [phase.value for phase in PHASES]
    assert kinds == ["message", *six, "tool_return", *six]


# ---- modules that fail ----


def at_once(*given: Any) -> Any:
    raise ZeroDivisionError("contribute")


async def words(*given: Any) -> Any:
    return "words"


@pytest.mark.parametrize(
    ("contribute", "problem"),
    [
        (raising(ZeroDivisionError("contribute")), "raised ZeroDivisionError: contribute"),
        (at_once, "raised ZeroDivisionError: contribute"),
        (hang, "took longer than 0.05 s"),
        (raising(asyncio.CancelledError()), "was cancelled by itself"),
        (raising(TimeoutError("the weather service")), "raised TimeoutError: the weather service"),
        (words, "gave a str instead of a Section"),
    ],
)
async def test_a_module_that_fails_is_left_out_and_named(contribute: Any, problem: str) -> None:
    modules = [Module("faulty", contribute=contribute), Module("sound")]
    mind = make_mind(answers((RESPOND,)), modules=modules, module_seconds=0.05)
    _, result = await mind.turn()
    assert (result.reason, result.failed_modules) == ("respond", ("faulty",))
    assert f"faulty contribute {problem}" in mind.problems
    for _, prompt in mind.asking.asked:
        assert "From sound" in prompt[-1].content
        assert "From faulty" not in prompt[-1].content


async def test_a_module_that_cannot_be_saved_is_left_out_of_the_snapshot() -> None:
    def save_state() -> Any:
        raise OSError("save")

    mind = make_mind(
        answers((RESPOND,)), modules=[Module("broken", save_state=save_state), Module("sound")]
    )
    await mind.turn()
    (snapshot,) = (r for r in mind.trace.records if r.record == "snapshot")
    assert snapshot.modules == {"sound": {"events": 1}}
    assert "broken save_state raised OSError: save" in mind.problems


def test_saved_states_go_back_to_their_modules_and_the_others_are_reset() -> None:
    reset: list[str] = []
    one, two = Module("one"), Module("two", reset_state=lambda: reset.append("two"))
    ModuleHost([one, two]).load_state({"one": {"events": 7}, "gone": {}})
    assert (one.loaded, two.loaded, reset) == ({"events": 7}, None, ["two"])


def test_a_module_that_cannot_be_reset_is_named_when_the_others_are() -> None:
    reset: list[str] = []

    def jam() -> None:
        raise OSError("jammed")

    broken = Module("broken", reset_state=jam)
    sound = Module("sound", reset_state=lambda: reset.append("sound"))
    with pytest.raises(StateError, match=r"Module 'broken' has not forgotten: .*jammed"):
        ModuleHost([Module("old"), broken, sound]).reset_state()
    assert reset == ["sound"]


# ---- modules that bring constraints and actions ----


class Warden(Module):
    """Forbids greeting from its second cycle on."""

    def constraints(self) -> Sequence[Constraint]:
        def silence(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
            return Verdict.forbid("hush") if candidate.action == "greet" else Verdict.allow()

        return [silence] if any(e.record == "outcome" for e in self.events) else []


async def test_a_modules_constraints_are_in_force_from_the_next_cycle() -> None:
    mind = make_mind(answers((GREET,), (GREET, RESPOND)), tools=[greet], modules=[Warden()])
    _, result = await mind.turn()
    assert result.reason == "respond"
    outcomes = [r for r in mind.trace.records if r.record == "outcome"]
    pinned = [r.constraints for r in outcomes if r.phase is Phase.RETRIEVAL]
    assert pinned == [(), ("silence",)]


async def test_where_a_module_cannot_give_its_constraints_nothing_passes() -> None:
    def constraints() -> Any:
        raise LookupError("the rule book")

    warden = Warden("warden", constraints=constraints)
    mind = make_mind(answers(*[(GREET, RESPOND)] * 3), tools=[greet], modules=[warden])
    _, result = await mind.turn()
    assert (result.reason, result.failed_modules) == ("impasses", ("warden",))
    assert not mind.records("intent")
    (rejection, *_) = mind.context.working_memory.rejections
    assert rejection.constraint == "warden_constraints"
    assert "LookupError: the rule book" in rejection.reason


class Bell(Module):
    """Brings an action of its own."""

    def __init__(self, repeatable: bool = False, **methods: Callable[..., Any]) -> None:
        super().__init__("bell", **methods)
        self.spec = ActionSpec(
            name="ring", description="Rings.", internal=True, repeatable=repeatable
        )

    def action_specs(self) -> Sequence[ActionSpec]:
        return [self.spec]

    async def run_action(self, call: ActionCall) -> ActionResult:
        return ActionResult(content="ding")


def last_action(mind: TestMind) -> tuple[str, str, str]:
    past = mind.context.working_memory.deeds[0]
    return past.action, past.status.value, past.result


def percepts(mind: TestMind) -> list[PerceptKind]:
    return [one.kind for one in mind.trace.records if isinstance(one, Percept)]


@pytest.mark.parametrize("repeatable", [False, True])
async def test_a_modules_action_is_no_percept_and_has_intent_and_receipt_unless_repeatable(
    repeatable: bool,
) -> None:
    mind = make_mind(answers((RING,), (RESPOND,)), modules=[Bell(repeatable)])
    await mind.turn()
    assert last_action(mind) == ("ring", "done", "ding")
    assert percepts(mind) == [PerceptKind.MESSAGE]
    intents = [(r.action, r.internal) for r in mind.trace.records if r.record == "intent"]
    receipts = [r.content for r in mind.trace.records if r.record == "receipt"]
    assert (intents, receipts) == (([], []) if repeatable else ([("ring", True)], ["ding"]))


@pytest.mark.parametrize(
    ("does", "said", "unknown"),
    [
        (hang, "ring gave no answer within 0.05 s; it may have acted.", True),
        (raising(ValueError("cracked")), "ring raised ValueError: cracked", False),
        (raising(asyncio.CancelledError()), "ring was cancelled by itself.", False),
    ],
)
async def test_a_modules_action_that_raises_or_never_returns_is_a_failed_action(
    does: Any, said: str, unknown: bool
) -> None:
    bell = Bell(run_action=does)
    mind = make_mind(answers((RING,), (RESPOND,)), modules=[bell], action_seconds=0.05)
    async with asyncio.timeout(5):
        _, result = await mind.turn()
    assert result.reason == "respond"
    assert last_action(mind) == ("ring", "failed", said)
    assert (PerceptKind.UNKNOWN_OUTCOME in percepts(mind)) is unknown


async def test_an_error_of_our_own_in_an_action_is_not_hidden() -> None:
    bell = Bell(run_action=raising(RecordStoreError("disk full")))
    mind = make_mind(answers((RING,)), modules=[bell])
    with pytest.raises(RecordStoreError, match="disk full"):
        await mind.turn()
    assert not mind.context.working_memory.in_cycle


async def test_a_module_that_cannot_list_its_actions_offers_none() -> None:
    def action_specs() -> Any:
        raise LookupError("no bell")

    mind = make_mind(answers((RING, RESPOND)), modules=[Bell(action_specs=action_specs)])
    _, result = await mind.turn()
    assert (result.reason, result.failed_modules) == ("respond", ("bell",))
    rejected = mind.context.working_memory.rejections
    assert [one.constraint for one in rejected] == ["action_exists"]


async def test_an_action_that_nobody_offers_any_more_fails() -> None:
    result = await ModuleHost([Module()]).run_action(CALL)
    assert (result.is_error, result.content) == (True, "No module offers 'ring' any more.")


async def test_a_module_that_swallows_its_cancellation_is_given_up_all_the_same() -> None:
    let_go, problems = asyncio.Event(), list[str]()

    async def contribute(*given: Any) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await let_go.wait()

    modules = [Module("stubborn", contribute=contribute), Module()]
    host = ModuleHost(modules, seconds=0.05, on_problem=lambda _, p: problems.append(p))
    situation = Situation(activity="main", goal="", cycle=1, phase=Phase.REASONING, query="")
    async with asyncio.timeout(5):
        sections = await host.contribute(Phase.REASONING, situation, 100)
    let_go.set()
    assert [section.source for section in sections] == ["module"]
    assert problems == ["contribute took longer than 0.05 s"]


async def test_what_a_module_does_to_the_arguments_of_its_action_stays_with_it() -> None:
    async def run_action(call: ActionCall) -> ActionResult:
        call.arguments["lines"].append("scribble")
        return ActionResult(content="noted")

    call = CALL.model_copy(update={"arguments": {"lines": []}})
    host = ModuleHost([Bell(run_action=run_action)])
    assert (await host.run_action(call)).content == "noted"
    assert call.arguments == {"lines": []}
