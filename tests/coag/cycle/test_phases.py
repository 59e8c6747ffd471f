from __future__ import annotations

import json
from typing import Any

import pytest
from kits.minds import make_mind, proposal, reasoning, scores

from coag.context import CoagContext
from coag.errors import PhaseViolation, StateError
from coag.memory import RuleChange
from coag.schema import (
    PHASES,
    ActionCall,
    Candidate,
    DecidedBy,
    Percept,
    Phase,
    Verdict,
)


async def look(where: str) -> str:
    """Looks somewhere."""
    return f"nothing in the {where}"


async def wave() -> str:
    """Waves."""
    return "waved"


LOOK = ("look", '{"where": "hall"}')
WAVE = ("wave", "{}")


def replies(*candidates: tuple[str, str], judged: Any = None, choice: int = 1) -> dict[Phase, Any]:
    return {
        Phase.REASONING: reasoning(),
        Phase.PROPOSAL: proposal(*candidates),
        Phase.EVALUATION: judged or scores(*([0.5] * len(candidates))),
        Phase.SELECTION: {"reason": "because", "choice": choice},
    }


def without(**reasons: str) -> Any:
    """A constraint that forbids these actions for these reasons."""

    def forbids(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        reason = reasons.get(candidate.action)
        return Verdict.forbid(reason) if reason else Verdict.allow()

    return forbids


async def test_a_cycle_is_the_six_phases_in_order() -> None:
    mind = make_mind(replies(LOOK, WAVE), tools=[look, wave])
    outcomes = await mind.live()
    assert tuple(outcomes) == PHASES
    assert [phase for phase, _ in mind.asking.asked] == [
        Phase.REASONING,
        Phase.PROPOSAL,
        Phase.EVALUATION,
        Phase.SELECTION,
    ]


async def test_an_external_action_runs_between_intent_and_receipt() -> None:
    mind = make_mind(replies(LOOK), tools=[look])
    executed = (await mind.live())[Phase.EXECUTION]
    tags = [r.record for r in mind.trace.records]
    assert tags.index("intent") < tags.index("receipt")
    (intent,), (receipt,) = mind.records("intent"), mind.records("receipt")
    assert intent.record == "intent"
    assert intent.id == executed.intent_id
    assert receipt.record == "receipt"
    assert receipt.intent_id == intent.id


async def test_acting_outside_execution_is_a_violation() -> None:
    mind = make_mind(replies(LOOK), tools=[look])
    call = ActionCall(id="i1", action="look", arguments={"where": "hall"})
    with pytest.raises(PhaseViolation, match="run in no phase; actions run in execution only"):
        await mind.deps.actions.execute(call)
    mind.deps.actions.enter(Phase.PROPOSAL)
    with pytest.raises(PhaseViolation, match="run in proposal"):
        await mind.deps.actions.execute(call)


async def test_no_model_output_overrides_a_constraint() -> None:
    rule = without(wave="hands full")
    mind = make_mind(
        replies(WAVE, LOOK, judged=scores(1.0, 0.0)), tools=[look, wave], constraints=[rule]
    )
    outcomes = await mind.live()
    assert outcomes[Phase.RETRIEVAL].constraints == ("forbids",)
    assert outcomes[Phase.EXECUTION].action == "look"


class Foreseeing(CoagContext[Any]):
    """Predicts fixed values of a state and of a candidate."""

    def __init__(self, predicts: Any) -> None:
        super().__init__()
        self.predicts = predicts

    def _project(self, candidate: Candidate, state: Any) -> Any:
        return self.predicts(candidate, state)


async def test_a_constraint_can_judge_by_the_projection() -> None:
    def by_projection(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        assert projection is not None
        return Verdict.forbid("no") if projection.last_tool == "after wave" else Verdict.allow()

    def foreseen(candidate: Candidate, state: Any) -> Any:
        return state.model_copy(update={"last_tool": f"after {candidate.action}"})

    mind = make_mind(
        replies(WAVE, LOOK),
        tools=[look, wave],
        constraints=[by_projection],
        context=Foreseeing(foreseen),
    )
    evaluated = (await mind.live())[Phase.EVALUATION]
    assert [e.survived for e in evaluated.evaluations] == [False, True]
    assert evaluated.evaluations[1].projection["last_tool"] == "after look"


def raising(candidate: Candidate, state: Any) -> Any:
    raise ZeroDivisionError("no model")


def no_state(candidate: Candidate, state: Any) -> Any:
    return {"place": "east"}


def meddling(candidate: Candidate, state: Any) -> Any:
    assert candidate.arguments is not None
    candidate.arguments["far"] = True
    return state


@pytest.mark.parametrize(
    ("predicts", "constraint", "reason"),
    [
        (raising, "projection", "ZeroDivisionError: no model"),
        (no_state, "projection", "not a state or None"),
        (meddling, "arguments_unchanged", "changed the arguments"),
    ],
)
async def test_without_a_prediction_that_can_be_relied_on_nothing_passes(
    predicts: Any, constraint: str, reason: str
) -> None:
    mind = make_mind(replies(WAVE), tools=[wave], context=Foreseeing(predicts))
    (judged,) = (await mind.live())[Phase.EVALUATION].evaluations
    assert judged.rejected_by.constraint == constraint
    assert reason in judged.rejected_by.reason
    assert judged.arguments == {}


async def test_a_candidate_below_the_minimum_score_does_not_survive() -> None:
    mind = make_mind(replies(WAVE, judged=scores(0.1)), tools=[wave], minimum_score=0.3)
    evaluated = (await mind.live())[Phase.EVALUATION]
    assert evaluated.evaluations[0].rejected_by.constraint == "minimum_score"


class Grounded(CoagContext[Any]):
    def _propose_grounded(self, state: Any) -> list[Candidate]:
        hall = Candidate(id="g2", action="look", raw_arguments='{"where":"hall"}')
        return [Candidate(id="g1", action="wave"), hall]


def drafting(action: str, arguments: str = "{}") -> dict[Phase, Any]:
    drafted = {"action": action, "arguments": arguments, "score": 0.8, "reason": "see"}
    return {Phase.REASONING: {**reasoning(), "candidates": [drafted]}}


async def test_compact_grounded_candidates_have_the_scores_that_the_model_gave_them() -> None:
    mind = make_mind(
        drafting("look", '{"where": "hall"}'),
        tools=[look, wave],
        context=Grounded(),
        proposal="grounded",
        depth="compact",
    )
    outcomes = await mind.live()
    proposed = outcomes[Phase.PROPOSAL].candidates
    assert [(each.draft_score, each.reason) for each in proposed] == [(None, ""), (0.8, "see")]
    assert outcomes[Phase.EXECUTION].action == "look"


async def peek() -> str:
    """Peeks."""
    return "seen"


def offered(mind: Any) -> str:
    return json.dumps(mind.asking.forms[-1].model_json_schema())


async def test_what_was_rejected_is_not_offered_again_until_something_is_done() -> None:
    mind = make_mind(
        drafting("peek"),
        tools=[peek, wave],
        constraints=[without(peek="no")],
        depth="compact",
        enumerate_actions="calls",
        answers="brief",
    )
    for shown in (True, False):
        await mind.live()
        assert ('"peek"' in offered(mind)) is shown


async def test_what_a_rule_forbids_now_is_not_offered_and_the_trace_says_so() -> None:
    mind = make_mind(
        drafting("peek"),
        tools=[peek, wave, look],
        constraints=[without(peek="no", respond="work")],
        depth="compact",
        enumerate_actions="allowed",
    )
    outcomes = await mind.live()
    names = ('"wave"', '"look"', '"peek"', '"respond"')
    assert [name in offered(mind) for name in names] == [True, True, False, False]
    (note,) = mind.notes("not_offered")
    assert "peek {}: forbids: no" in note
    assert outcomes[Phase.SELECTION].candidate_id is None


async def test_where_rules_forbid_all_but_one_call_all_are_offered() -> None:
    mind = make_mind(
        drafting("wave"),
        tools=[wave],
        constraints=[without(respond="no")],
        depth="compact",
        enumerate_actions="allowed",
    )
    await mind.live()
    assert '"respond"' in offered(mind)
    (note,) = mind.notes("not_offered")
    assert note.startswith("Forbidden now, but offered, for lack of others: respond")


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        (Phase.REASONING, "no usable answer"),
        (Phase.PROPOSAL, "proposed nothing usable"),
        (Phase.EVALUATION, "evaluation was unusable"),
        (Phase.SELECTION, "selection was unusable"),
    ],
)
async def test_an_unusable_answer_falls_back_visibly(phase: Phase, message: str) -> None:
    script = {**replies(WAVE, LOOK), phase: None}
    mind = make_mind(script, tools=[look, wave])
    outcomes = await mind.live()
    assert tuple(outcomes) == PHASES
    (note,) = mind.notes("fallback")
    assert message in note
    assert "prose instead of JSON" in note


async def test_versions_of_procedures_are_pinned_for_the_cycle() -> None:
    mind = make_mind(replies(WAVE), tools=[wave])
    pinned = (await mind.live())[Phase.RETRIEVAL].procedures
    assert pinned["reasoning"] == 1
    change = RuleChange(operation="add", rule="Look twice.")
    mind.deps.procedures.change_rule("reasoning", change, author="test", reason="so")
    assert (await mind.live())[Phase.RETRIEVAL].procedures["reasoning"] == 2


async def test_a_hook_that_cannot_read_a_return_ends_the_turn_and_loses_nothing() -> None:
    class Context(CoagContext[Any]):
        def _update_state_from_function_result(self, state: Any, percept: Percept) -> Any:
            raise ValueError("no number in it")

    script = {**replies(WAVE), Phase.PROPOSAL: proposal(WAVE)}
    mind = make_mind(script, tools=[wave], context=Context())
    with pytest.raises(StateError, match=r"ValueError: no number in it.*out of date"):
        await mind.turn("Wave.")
    assert not mind.context.working_memory.in_cycle
    assert [r.content for r in mind.trace.records if r.record == "percept"] == ["Wave.", "waved"]
    assert "no number in it" in mind.notes("hook")[0]


@pytest.mark.parametrize(
    ("settings", "judged", "decided_by", "done"),
    [
        ({}, (0.2, 0.9), DecidedBy.RANK, "look"),
        ({}, (0.5, 0.5), DecidedBy.MODEL, "look"),
        ({"selection": "rank"}, (0.5, 0.5), DecidedBy.RANK, "wave"),
        ({"selection": "model"}, (0.9, 0.2), DecidedBy.MODEL, "look"),
    ],
)
async def test_the_model_selects_only_among_equals_unless_set_otherwise(
    settings: Any, judged: tuple[float, float], decided_by: DecidedBy, done: str
) -> None:
    mind = make_mind(
        replies(WAVE, LOOK, judged=scores(*judged), choice=2), tools=[look, wave], **settings
    )
    outcomes = await mind.live()
    assert outcomes[Phase.SELECTION].decided_by is decided_by
    assert outcomes[Phase.EXECUTION].action == done
