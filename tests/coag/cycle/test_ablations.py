"""What is left of a cycle from which the settings leave parts out."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from kits.minds import TestMind, make_mind, proposal, reasoning, scores
from pydantic import BaseModel, ValidationError

from coag.context import CoagContext
from coag.cycle import Ablation, Bounds, CycleSettings
from coag.memory import LongTermMemory
from coag.schema import (
    PHASES,
    Candidate,
    CountingIds,
    MemoryKind,
    Phase,
    Prompt,
    Provenance,
    SteppingClock,
    Trust,
    Verdict,
)
from coag.store import HashEmbedder, InMemoryStore

PARTS: tuple[Ablation, ...] = get_args(Ablation)


async def step(far: int) -> str:
    """Takes a step."""
    return f"{far} further"


NEAR = ("step", '{"far": 1}')
FAR = ("step", '{"far": 9}')


class Place(BaseModel):
    at: int = 0


class Road(CoagContext[Place]):
    """Predicts where a step leads to."""

    def _project(self, candidate: Candidate, state: Place) -> Place | None:
        assert candidate.arguments is not None
        return Place(at=state.at + candidate.arguments["far"])


def no_far_steps(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    """Nobody goes beyond 5."""
    return Verdict.allow() if projection.at <= 5 else Verdict.forbid("too far")


def walker(*candidates: tuple[str, str], **further: Any) -> TestMind:
    replies = {
        Phase.REASONING: reasoning("A road."),
        Phase.PROPOSAL: proposal(*candidates),
        Phase.EVALUATION: scores(*([0.1, 0.9][: len(candidates)])),
        Phase.SELECTION: {"reason": "because", "choice": 2},
    }
    context = Road(clock=SteppingClock(), ids=CountingIds())
    return make_mind(replies, tools=[step], context=context, **further)


def prompt_of(phase: Phase, mind: TestMind) -> Prompt | None:
    return next((prompt for asked, prompt in mind.asking.asked if asked is phase), None)


@pytest.mark.parametrize("rendering", ["isolated", "growing"])
@hypothesis_settings(max_examples=16, deadline=None)
@given(without=st.frozensets(st.sampled_from(PARTS)), kept=st.booleans())
async def test_every_cycle_is_six_phases_whatever_is_left_out(
    rendering: Any, without: frozenset[Ablation], kept: bool
) -> None:
    rules = (no_far_steps,) if kept else ()
    mind = walker(NEAR, FAR, ablations=without, constraints=rules, selection="model")
    mind.context.rendering = rendering
    outcomes = await mind.live()
    assert tuple(outcomes) == PHASES
    assert outcomes[Phase.EXECUTION].action == "step"
    left_out = [r.details["part"] for r in mind.trace.records if r.record == "note"]
    assert sorted(left_out) == sorted(without)
    asked = {phase for phase, _ in mind.asking.asked}
    expected = {Phase.REASONING, Phase.PROPOSAL}
    if not kept:
        expected |= {Phase.EVALUATION, Phase.SELECTION}
    assert asked == expected - {Phase(part) for part in without if part != "rewriting"}


async def test_without_retrieval_nothing_is_recalled_and_what_holds_is_pinned() -> None:
    memory = LongTermMemory(InMemoryStore(HashEmbedder(64)), scope="walker")
    source = Provenance(
        run="r", activity="a", cycle=1, source="me", source_kind="agent", trust=Trust.USER
    )
    await memory.remember(MemoryKind.SEMANTIC, "Walk on the left.", provenance=source)
    recalled = (await walker(NEAR, memory=memory).live())[Phase.RETRIEVAL]
    left_out = (
        await walker(
            NEAR, memory=memory, ablations=["retrieval"], constraints=[no_far_steps]
        ).live()
    )[Phase.RETRIEVAL]
    assert [hit.record.text for hit in recalled.records] == ["Walk on the left."]
    assert not left_out.records
    assert left_out.procedures == recalled.procedures
    assert left_out.constraints == ("no_far_steps",)


async def test_without_evaluation_constraints_judge_by_predictions_that_nobody_is_shown() -> None:
    mind = walker(NEAR, ("step", '{"far": 2}'), FAR, ablations=["evaluation"])
    mind.deps.constraints.add(no_far_steps)
    outcomes = await mind.live()
    near, second, far = outcomes[Phase.EVALUATION].evaluations
    assert (near.score, near.projection) == (None, {"at": 1})
    assert far.rejected_by.constraint == "no_far_steps"
    prompt = prompt_of(Phase.SELECTION, mind)
    assert prompt is not None
    assert "predicted state" not in str(prompt)
    assert outcomes[Phase.SELECTION].candidate_id == second.candidate_id


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"ablations": ["reasoning"], "depth": "compact"}, "use depth='full'"),
        ({"ablations": ["evaluation"], "minimum_score": 0.3}, "minimum_score=0.3 needs the scores"),
        ({"ablations": ["execution"]}, "'retrieval', 'reasoning', 'evaluation' or 'rewriting'"),
    ],
)
def test_an_impossible_ablation_is_refused(settings: dict[str, Any], error: str) -> None:
    with pytest.raises(ValidationError, match=error):
        CycleSettings.model_validate(settings)


@given(without=st.frozensets(st.sampled_from(PARTS)))
def test_settings_are_the_same_text_in_any_order(without: frozenset[Ablation]) -> None:
    settings = CycleSettings(ablations=without, bounds=Bounds(cycles=3))
    dumped = settings.model_dump(mode="json")
    assert dumped["ablations"] == sorted(without)
    assert CycleSettings.model_validate_json(json.dumps(dumped)) == settings
