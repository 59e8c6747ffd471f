"""A turn: where it ends, and that nothing is lost however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kits.minds import TestMind, make_mind, proposal, reasoning, scores

from coag.context import CoagContext, WorkingMemory, rebuild
from coag.cycle import TurnResult, run_turn
from coag.errors import ModelCallError, TraceError
from coag.schema import (
    PHASES,
    Candidate,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Prompt,
    ReceiptStatus,
    SelectionOutcome,
    TraceRecord,
    TurnEnd,
    Verdict,
)
from coag.tracing import MemoryTrace

RESPOND = ("respond", '{"text": "Here you are."}')
WAVE = ("wave", "{}")
FLY = ("fly", "{}")


async def wave() -> str:
    """Waves."""
    return "waved"


async def stumble() -> str:
    """Fails."""
    raise OSError("a stone")


def script(*cycles: tuple[tuple[str, str], ...]) -> dict[Phase, Any]:
    """Replies that propose other candidates in each cycle, the last ones for ever."""
    remaining = list(cycles)

    def propose(_prompt: Prompt) -> Mapping[str, Any]:
        now = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        return proposal(*now)

    return {
        Phase.REASONING: reasoning("The hall is quiet."),
        Phase.PROPOSAL: propose,
        Phase.EVALUATION: scores(0.9, 0.5, 0.4, 0.3),
        Phase.SELECTION: {"reason": "why not", "choice": 1},
    }


def phases_by_cycle(mind: TestMind) -> dict[int, list[Phase]]:
    phases: dict[int, list[Phase]] = {}
    for record in mind.trace.records:
        if record.record == "outcome":
            phases.setdefault(record.cycle, []).append(record.phase)
    return phases


def ends(mind: TestMind) -> list[str]:
    return [r.reason for r in mind.trace.records if isinstance(r, TurnEnd)]


def is_whole(mind: TestMind) -> bool:
    """Six outcomes a cycle, nothing left over, and the trace holds the same as the context."""
    memory = mind.context.working_memory
    whole = all(tuple(phases) == PHASES for phases in phases_by_cycle(mind).values())
    rebuilt = rebuild(WorkingMemory(activity="main", perceptual_state=START), mind.trace.records)
    return whole and not memory.in_cycle and not memory.queued and rebuilt == memory


START = CoagContext[Any]().working_memory.perceptual_state


# ---- how a turn ends ----


async def test_the_answer_closes_the_goal_and_the_next_message_sets_a_new_one() -> None:
    mind = make_mind(script((RESPOND,)))
    await mind.turn("First.")
    assert not mind.context.working_memory.goal_open
    await mind.turn("Second.")
    assert mind.context.working_memory.goal == "Second."


@pytest.mark.parametrize(
    ("cycles", "bounds", "reason", "count", "parts"),
    [
        ((WAVE,), {}, "cycles", 20, ("after 20 cycles", "The hall is quiet.", "waved")),
        ((WAVE,), {"cycles": 3, "impasses": 1}, "cycles", 3, ("after 3 cycles",)),
        ((FLY, WAVE, FLY), {}, "impasses", 5, ("in 3 cycles in a row no action was possible",)),
        ((WAVE,), {"actions": 2}, "actions", 2, ("waved",)),
    ],
)
async def test_a_bound_ends_a_turn_with_what_is_known(
    cycles: tuple[tuple[str, str], ...],
    bounds: dict[str, int],
    reason: str,
    count: int,
    parts: tuple[str, ...],
) -> None:
    mind = make_mind(script(*((one,) for one in cycles)), tools=[wave], bounds=bounds)
    _, result = await mind.turn()
    assert (result.reason, result.cycles, result.answered) == (reason, count, False)
    assert [part for part in parts if part not in result.response] == []
    assert is_whole(mind)
    last = PerceptKind.IMPASSE if reason == "impasses" else PerceptKind.TOOL_RETURN
    assert mind.context.working_memory.percepts[-1].kind is last


async def test_what_an_action_brought_is_perceived_before_the_turn_ends() -> None:
    mind = make_mind(script((WAVE,)), tools=[wave], bounds={"actions": 1})
    await mind.turn()
    memory = mind.context.working_memory
    assert [p.content for p in memory.percepts] == ["waved"]
    assert mind.context.state.tool_calls == 1
    tags = [record.record for record in mind.trace.records]
    assert tags[-2:] == ["percept", "turn_end"]


# ---- cancellation ----


async def cancel_when(mind: TestMind, reached: asyncio.Event) -> None:
    task = asyncio.create_task(mind.turn("Wave."))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def stall_in(mind: TestMind, stalling: Phase) -> asyncio.Event:
    """Makes the first question of a phase hang; the event is set when it does."""
    original, reached = mind.deps.ask, asyncio.Event()

    async def ask(prompt: Prompt, answer: Any, /, *, phase: Phase, cycle: int) -> Any:
        if phase is stalling and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()
        return await original(prompt, answer, phase=phase, cycle=cycle)

    object.__setattr__(mind.deps, "ask", ask)
    return reached


@pytest.mark.parametrize(
    "phase", [Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION, Phase.SELECTION]
)
async def test_cancelled_while_it_thinks_a_turn_leaves_a_whole_cycle(phase: Phase) -> None:
    mind = make_mind(script((WAVE, RESPOND)), tools=[wave], selection="model")
    reached = stall_in(mind, phase)
    await cancel_when(mind, reached)
    assert ends(mind) == ["cancelled"]
    assert is_whole(mind)
    assert not mind.records("intent")
    executed = mind.context.working_memory.cognitive_state.execution
    assert executed is not None
    assert (executed.status, executed.result) == (ExecutionStatus.NONE, "The turn was cancelled.")
    mind.asking.replies = script((RESPOND,))
    _, result = await mind.turn("Once more.")
    assert result.reason == "respond"
    assert is_whole(mind)


@pytest.mark.parametrize("late", [False, True])
async def test_an_action_that_was_cancelled_has_a_receipt_and_is_perceived_as_unknown(
    late: bool,
) -> None:
    reached, limit = asyncio.Event(), asyncio.timeout(None)

    async def dig() -> str:
        """Digs for ever; the time that it may take is over as soon as it has begun."""
        reached.set()
        if late:
            limit.reschedule(0)
        await asyncio.Event().wait()
        return "never"

    mind = make_mind(script((("dig", "{}"),), (RESPOND,)), tools=[dig])
    if late:
        with pytest.raises(TimeoutError):
            async with limit:
                await mind.turn("Wave.")
    else:
        await cancel_when(mind, reached)
    assert ends(mind) == ["cancelled"]
    (receipt,) = (r for r in mind.trace.records if r.record == "receipt")
    assert receipt.status is ReceiptStatus.CANCELLED
    executed = mind.context.working_memory.cognitive_state.execution
    assert executed is not None
    assert (executed.status, executed.action) == (ExecutionStatus.FAILED, "dig")
    (percept,) = mind.context.working_memory.percepts
    assert percept.kind is PerceptKind.UNKNOWN_OUTCOME
    assert percept.caused_by == executed.intent_id == receipt.intent_id
    assert is_whole(mind)
    _, result = await mind.turn("And now?")
    assert result.reason == "respond"
    prompt = next(p for phase, p in reversed(mind.asking.asked) if phase is Phase.REASONING)
    assert "It may or may not have had its effect" in prompt[-1].content


async def test_cancelled_while_it_perceives_a_turn_loses_no_message() -> None:
    module = Sleeper()
    mind = make_mind(script((RESPOND,)), modules=[module], module_seconds=5)
    turn = run_turn([mind.message("one"), mind.message("two")], mind.context, mind.deps)

    async def go() -> None:
        async for _ in turn:
            pass

    task = asyncio.create_task(go())
    await module.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [said.content for said in mind.context.working_memory.dialogue] == ["one", "two"]
    assert ends(mind) == ["cancelled"]


class Sleeper:
    """A module that hangs at its first notification."""

    name = "sleeper"

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    async def observe(self, event: Percept | Outcome) -> None:
        if not self.reached.is_set():
            self.reached.set()
            await asyncio.Event().wait()

    async def contribute(self, phase: Phase, situation: Any, budget: int) -> None:
        return None

    def save_state(self) -> Mapping[str, Any]:
        return {}

    def load_state(self, state: Mapping[str, Any]) -> None:
        return None


@pytest.mark.parametrize("seen", range(1, 7))
async def test_a_reader_who_stops_in_the_middle_leaves_a_whole_cycle(seen: int) -> None:
    mind = make_mind(script((WAVE, RESPOND)), tools=[wave])
    async with aclosing(run_turn([mind.message("Wave.")], mind.context, mind.deps)) as turn:
        for _ in range(seen):
            await anext(turn)
    assert ends(mind) == ["cancelled"]
    assert is_whole(mind)


# ---- errors ----


@pytest.mark.parametrize(
    "phase", [Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION, Phase.SELECTION]
)
async def test_a_model_that_cannot_be_asked_ends_the_turn_with_a_whole_cycle(phase: Phase) -> None:
    def gone(_prompt: Prompt) -> Mapping[str, Any]:
        raise ModelCallError("tiny", "connection refused")

    replies = {**script((WAVE, RESPOND)), phase: gone}
    mind = make_mind(replies, tools=[wave], selection="model")
    with pytest.raises(ModelCallError, match="connection refused"):
        await mind.turn()
    assert ends(mind) == ["error"]
    assert is_whole(mind)
    mind.asking.replies = script((RESPOND,))
    _, result = await mind.turn()
    assert result.reason == "respond"


async def test_a_hook_that_raises_ends_the_turn_with_a_whole_cycle() -> None:
    class Broken(CoagContext[Any]):
        def _get_state_description(self, state: Any) -> str:
            raise ZeroDivisionError("no description")

    mind = make_mind(script((WAVE,)), tools=[wave], context=Broken())
    with pytest.raises(ZeroDivisionError):
        await mind.turn()
    assert ends(mind) == ["error"]
    assert is_whole(mind)


async def test_without_a_trace_no_action_is_run() -> None:
    acted: list[str] = []

    async def act() -> str:
        """Acts."""
        acted.append("act")
        return "done"

    class FullDisk(MemoryTrace):
        def write(self, record: TraceRecord) -> None:
            if record.record == "intent":
                raise TraceError(path, "cannot be written to: No space left on device")
            super().write(record)

    path = Path("trace.jsonl")
    mind = make_mind(script((("act", "{}"),)), tools=[act])
    object.__setattr__(mind.deps, "trace", FullDisk())
    with pytest.raises(TraceError, match="No space left"):
        await mind.turn()
    assert acted == []


# ---- whatever a model says ----

ACTIONS = ("wave", "stumble", "fly", "respond", "banned")
ARGUMENTS = ("{}", '{"text": "so"}', "[]", "no json", '{"text": 5}')
candidate = st.tuples(st.sampled_from(ACTIONS), st.sampled_from(ARGUMENTS))
reply = st.one_of(st.none(), st.lists(candidate, max_size=4))


async def banned() -> str:
    """Is never to be run."""
    raise AssertionError("A constraint forbids this.")


def no_banned(tried: Candidate, state: Any, projection: Any) -> Verdict:
    return Verdict.forbid("banned") if tried.action == "banned" else Verdict.allow()


class Boundaries(CoagContext[Any]):
    """Checks at every boundary that working memory is its own JSON."""

    def commit(self, outcome: Outcome) -> None:
        super().commit(outcome)
        self.check()

    def perceive(self, percept: Percept) -> Percept:
        perceived = super().perceive(percept)
        self.check()
        return perceived

    def check(self) -> None:
        memory = self.working_memory
        assert WorkingMemory.model_validate(memory.to_json()) == memory


@given(
    turns=st.lists(st.lists(reply, min_size=1, max_size=4), min_size=1, max_size=3),
    choice=st.integers(-1, 5),
    judged=st.lists(st.floats(0, 1), max_size=4),
    depth=st.sampled_from(["full", "compact"]),
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_the_model_says_every_turn_keeps_the_invariants(
    turns: list[list[Any]], choice: int, judged: list[float], depth: str
) -> None:
    asyncio.run(live(turns, choice, judged, depth))


async def live(turns: list[list[Any]], choice: int, judged: list[float], depth: str) -> None:
    said = [one for turn in turns for one in turn]

    def next_reply(_prompt: Prompt) -> Mapping[str, Any] | None:
        now = said.pop(0) if said else [RESPOND]
        return None if now is None else {**reasoning(), **proposal(*now)}

    compact = depth == "compact"
    replies: dict[Phase, Any] = {
        Phase.REASONING: next_reply if compact else reasoning(),
        Phase.PROPOSAL: next_reply,
        Phase.EVALUATION: scores(*judged) if judged else None,
        Phase.SELECTION: {"choice": choice},
    }
    mind = make_mind(
        replies,
        tools=[wave, stumble, banned],
        constraints=[no_banned],
        context=Boundaries(),
        depth=depth,
    )
    for _ in turns:
        _, result = await mind.turn()
        assert isinstance(result, TurnResult)
        assert result.reason in {"respond", "impasses", "cycles"}
        assert result.response
        assert is_whole(mind)
    assert_ancestry(mind)


def assert_ancestry(mind: TestMind) -> None:
    """Every executed action was selected in its cycle and survived every verdict."""
    cycles: dict[int, dict[Phase, Any]] = {}
    for record in mind.trace.records:
        if record.record == "outcome":
            cycles.setdefault(record.cycle, {})[record.phase] = record
    intents = [r for r in mind.trace.records if r.record == "intent"]
    assert len({intent.cycle for intent in intents}) == len(intents)
    for phases in cycles.values():
        executed: ExecutionOutcome = phases[Phase.EXECUTION]
        selected: SelectionOutcome = phases[Phase.SELECTION]
        if executed.action is None:
            assert selected.impasse
            continue
        assert executed.candidate_id == selected.candidate_id
        (judged,) = (
            e
            for e in phases[Phase.EVALUATION].evaluations
            if e.candidate_id == executed.candidate_id
        )
        assert judged.survived
        assert "no_banned" in {verdict.constraint for verdict in judged.verdicts}
