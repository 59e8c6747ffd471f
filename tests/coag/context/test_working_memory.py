from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.minds import NOW, arrived

from coag._util.json_diff import merge_patch
from coag.context import MemoryLimits, WorkingMemory, rebuild
from coag.context.working_memory import PAST_ACTIONS_LIMIT
from coag.errors import PhaseViolation, StateError
from coag.schema import (
    PHASES,
    Candidate,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
    TraceRecord,
    Verdict,
)


def percept(
    content: str = "hello",
    *,
    kind: PerceptKind = PerceptKind.MESSAGE,
    patch: dict[str, Any] | None = None,
    goal: bool = False,
    name: str = "p1",
) -> Percept:
    patch = {} if patch is None else patch
    return arrived(content, id=name, kind=kind, state_patch=patch, sets_goal=goal)


KINDS: dict[Phase, Any] = {
    Phase.RETRIEVAL: partial(RetrievalOutcome, query="q"),
    Phase.REASONING: partial(ReasoningOutcome, situation="s"),
    Phase.PROPOSAL: ProposalOutcome,
    Phase.EVALUATION: EvaluationOutcome,
    Phase.SELECTION: SelectionOutcome,
    Phase.EXECUTION: partial(ExecutionOutcome, status=ExecutionStatus.NONE),
}


def outcome(phase: Phase, cycle: int, **more: Any) -> Outcome:
    return KINDS[phase](cycle=cycle, at=NOW, **more)


def run_cycle(memory: WorkingMemory, **execution: Any) -> WorkingMemory:
    cycle = memory.cycle + 1
    for phase in PHASES:
        more = execution if phase is Phase.EXECUTION else {}
        memory = memory.commit(outcome(phase, cycle, **more))
    return memory


@given(st.lists(st.sampled_from(PHASES), max_size=14), st.integers(0, 3))
def test_phases_can_be_committed_in_their_one_order_only(
    attempted: list[Phase], skipped: int
) -> None:
    memory = WorkingMemory(activity="main")
    for phase in attempted:
        expected = PHASES[(PHASES.index(memory.phase) + 1) % 6] if memory.phase else PHASES[0]
        cycle = memory.cycle + (1 if phase is Phase.RETRIEVAL else 0) + skipped
        right_cycle = memory.cycle + (1 if expected is Phase.RETRIEVAL else 0)
        if phase is expected and cycle == right_cycle:
            memory = memory.commit(outcome(phase, cycle))
            assert memory.phase is phase
        elif cycle >= 1:
            with pytest.raises(PhaseViolation, match="must come next"):
                memory.commit(outcome(phase, cycle))


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4))
def test_only_a_percept_changes_the_perceptual_state(patch: dict[str, Any]) -> None:
    before = WorkingMemory(activity="main", perceptual_state={"x": 1})

    after = run_cycle(before).perceive(percept(patch=patch))

    assert run_cycle(before).perceptual_state == before.perceptual_state
    assert after.perceptual_state == merge_patch({"x": 1}, patch)


def test_a_percept_without_its_state_change_is_refused() -> None:
    bare = percept().model_copy(update={"state_patch": None})
    with pytest.raises(StateError, match=r"'p1' has no state_patch.*CoagContext.perceive"):
        WorkingMemory(activity="main").perceive(bare)


def test_what_evaluation_rejected_is_kept_until_something_is_done_or_for_three_cycles() -> None:
    memory = WorkingMemory(activity="main")
    candidate = Candidate(id="c1", action="fly", raw_arguments="{}")
    verdict = Verdict(allowed=False, reason="no wings", constraint="wings")
    judged = Evaluation(candidate_id="c1", arguments={}, verdicts=(verdict,))
    for phase in PHASES:
        more: dict[str, Any] = {}
        if phase is Phase.PROPOSAL:
            more = {"candidates": (candidate,)}
        if phase is Phase.EVALUATION:
            more = {"evaluations": (judged,)}
        memory = memory.commit(outcome(phase, 1, **more))

    assert [(gone.action, gone.constraint) for gone in memory.rejections] == [("fly", "wings")]
    done = run_cycle(memory, status=ExecutionStatus.DONE, action="act", arguments={}, result="r")
    assert done.rejections == ()
    idle = [run_cycle(memory)]
    for _ in range(2):
        idle.append(run_cycle(idle[-1]))
    assert [len(each.rejections) for each in idle] == [1, 1, 0]


def test_what_is_kept_is_bounded_however_long_the_run() -> None:
    limits = MemoryLimits(dialogue=300, results=200)
    memory = WorkingMemory(activity="main", limits=limits)
    for number in range(90):
        memory = memory.perceive(percept(f"My number is {number}."))
        memory = run_cycle(
            memory,
            status=ExecutionStatus.DONE,
            action="act",
            arguments={"n": number},
            result=f"result {number} " + "r" * 400,
        )

    assert sum(len(said.content) for said in memory.dialogue) <= 300
    assert memory.dialogue[-1].content == "My number is 89."
    assert len(memory.deeds) == PAST_ACTIONS_LIMIT
    assert memory.deeds[-1].arguments == {"n": 89}
    assert len(memory.deeds[-1].result) > 400
    assert memory.deeds[0].result.endswith("characters is not kept]")
    assert memory.earlier is not None
    assert memory.earlier.messages + len(memory.dialogue) == 90
    assert "user: My number is 71." in memory.earlier.lines()


def test_it_dumps_to_json_and_loads_to_the_same_value_at_every_boundary() -> None:
    memory = WorkingMemory(activity="main", perceptual_state={"at": [1, 2]})
    memory = memory.perceive(percept("hi", goal=True, patch={"at": [2, 2], "seen": {"a": True}}))
    for phase in PHASES:
        memory = memory.commit(outcome(phase, 1))
        assert WorkingMemory.model_validate(memory.to_json()) == memory


def test_it_is_rebuilt_from_recorded_percepts_and_outcomes() -> None:
    start = WorkingMemory(activity="main", perceptual_state={"n": 0})
    memory = start
    records: list[TraceRecord] = []
    for cycle in (1, 2):
        arrived = percept("tick", patch={"n": cycle}, kind=PerceptKind.SIGNAL, name=f"p{cycle}")
        memory = memory.perceive(arrived)
        records.append(arrived)
        for phase in PHASES:
            committed = outcome(phase, cycle)
            memory = memory.commit(committed)
            records.append(committed)

    assert rebuild(start, records) == memory


def test_a_diff_leads_from_one_working_memory_to_the_next() -> None:
    before = WorkingMemory(activity="main", perceptual_state={"n": 0})
    after = run_cycle(before.perceive(percept("hi", patch={"n": 1})))

    changed = merge_patch(before.to_json(), before.diff(after))

    assert WorkingMemory.model_validate(changed) == after
