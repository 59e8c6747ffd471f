from __future__ import annotations

import json
from typing import Any

import pytest
from kits.minds import make_mind, proposal, reasoning, scores

from coag.context import CoagContext
from coag.cycle import run_cycle
from coag.errors import PhaseViolation, StateError
from coag.memory import RuleChange
from coag.schema import (
    PHASES,
    ActionCall,
    Candidate,
    DecidedBy,
    ExecutionStatus,
    Note,
    Outcome,
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


async def live(mind: Any) -> dict[Phase, Any]:
    await mind.hear("Look around.")
    outcomes: list[Outcome] = [outcome async for outcome in run_cycle(mind.context, mind.deps)]
    return {outcome.phase: outcome for outcome in outcomes}


async def test_a_cycle_is_the_six_phases_in_order() -> None:
    mind = make_mind(replies(LOOK, WAVE), tools=[look, wave])
    outcomes = await live(mind)
    assert tuple(outcomes) == PHASES
    assert [phase for phase, _ in mind.asking.asked] == [
        Phase.REASONING,
        Phase.PROPOSAL,
        Phase.EVALUATION,
        Phase.SELECTION,
    ]


async def test_an_external_action_stands_between_intent_and_receipt() -> None:
    mind = make_mind(replies(LOOK), tools=[look])
    executed = (await live(mind))[Phase.EXECUTION]
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
    def no_waving(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        return Verdict.forbid("hands full") if candidate.action == "wave" else Verdict.allow()

    mind = make_mind(
        replies(WAVE, LOOK, judged=scores(1.0, 0.0)), tools=[look, wave], constraints=[no_waving]
    )
    outcomes = await live(mind)
    assert outcomes[Phase.RETRIEVAL].constraints == ("no_waving",)
    assert outcomes[Phase.EXECUTION].action == "look"


async def test_a_cycle_without_survivor_is_an_impasse_that_the_next_one_perceives() -> None:
    mind = make_mind(replies(("fly", "{}"), ("swim", "{}")))
    outcomes = await live(mind)
    assert outcomes[Phase.SELECTION].impasse
    executed = outcomes[Phase.EXECUTION]
    assert executed.status is ExecutionStatus.NONE
    (percept,) = executed.queued
    assert percept.kind.value == "impasse"
    assert "there is no action 'fly'" in percept.content


async def test_a_constraint_can_judge_by_the_projection() -> None:
    class Context(CoagContext[Any]):
        def _project(self, candidate: Candidate, state: Any) -> Any:
            return state.model_copy(update={"last_tool": f"after {candidate.action}"})

    def by_projection(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        assert projection is not None
        return Verdict.forbid("no") if projection.last_tool == "after wave" else Verdict.allow()

    mind = make_mind(
        replies(WAVE, LOOK), tools=[look, wave], constraints=[by_projection], context=Context()
    )
    evaluated = (await live(mind))[Phase.EVALUATION]
    assert [e.survived for e in evaluated.evaluations] == [False, True]
    assert evaluated.evaluations[1].projection["last_tool"] == "after look"


async def test_without_a_prediction_of_a_broken_forward_model_nothing_passes() -> None:
    class Context(CoagContext[Any]):
        def _project(self, candidate: Candidate, state: Any) -> Any:
            raise ZeroDivisionError("no model")

    evaluated = (await live(make_mind(replies(WAVE), tools=[wave], context=Context())))[
        Phase.EVALUATION
    ]
    (judged,) = evaluated.evaluations
    assert judged.died_of.constraint == "projection"
    assert "ZeroDivisionError: no model" in judged.died_of.reason


async def test_a_forward_model_that_changes_the_arguments_forbids() -> None:
    class Context(CoagContext[Any]):
        def _project(self, candidate: Candidate, state: Any) -> Any:
            assert candidate.arguments is not None
            candidate.arguments["far"] = True
            return state

    mind = make_mind(replies(WAVE), tools=[wave], context=Context())
    (judged,) = (await live(mind))[Phase.EVALUATION].evaluations
    assert judged.died_of.constraint == "arguments_unchanged"
    assert judged.arguments == {}


async def test_ranking_takes_the_highest_score() -> None:
    mind = make_mind(
        replies(WAVE, LOOK, judged=scores(0.2, 0.9)), tools=[look, wave], selection="rank"
    )
    outcomes = await live(mind)
    assert outcomes[Phase.SELECTION].decided_by is DecidedBy.RANK
    assert outcomes[Phase.EXECUTION].action == "look"


async def test_a_candidate_below_the_minimum_score_does_not_survive() -> None:
    mind = make_mind(replies(WAVE, judged=scores(0.1)), tools=[wave], minimum_score=0.3)
    evaluated = (await live(mind))[Phase.EVALUATION]
    assert evaluated.evaluations[0].died_of.constraint == "minimum_score"


async def test_grounded_candidates_come_from_the_domain() -> None:
    class Context(CoagContext[Any]):
        def _propose_grounded(self, state: Any) -> list[Candidate]:
            return [Candidate(id="g1", action="wave")]

    mind = make_mind(replies(), tools=[wave], context=Context(), proposal="grounded")
    outcomes = await live(mind)
    assert outcomes[Phase.PROPOSAL].proposed_by == "grounded"
    assert outcomes[Phase.EXECUTION].action == "wave"
    assert [phase for phase, _ in mind.asking.asked] == [Phase.REASONING]


async def test_compact_grounded_candidates_have_the_scores_that_the_model_gave_them() -> None:
    class Context(CoagContext[Any]):
        def _propose_grounded(self, state: Any) -> list[Candidate]:
            hall = Candidate(id="g2", action="look", raw_arguments='{"where":"hall"}')
            return [Candidate(id="g1", action="wave"), hall]

    answer = {
        **reasoning(),
        "candidates": [
            {"action": "look", "arguments": '{"where": "hall"}', "score": 0.8, "reason": "see"}
        ],
    }
    mind = make_mind(
        {Phase.REASONING: answer},
        tools=[look, wave],
        context=Context(),
        proposal="grounded",
        depth="compact",
    )
    outcomes = await live(mind)
    proposed = outcomes[Phase.PROPOSAL].candidates
    assert [(each.draft_score, each.reason) for each in proposed] == [(None, ""), (0.8, "see")]
    assert outcomes[Phase.EXECUTION].action == "look"


async def test_what_was_rejected_is_not_offered_again_until_something_is_done() -> None:
    def never_look(candidate: Candidate, state: Any, projection: Any) -> Verdict:
        return Verdict.forbid("no") if candidate.action == "peek" else Verdict.allow()

    async def peek() -> str:
        """Peeks."""
        return "seen"

    answer = {**reasoning(), "candidates": [{"action": "peek", "score": 0.8}]}
    mind = make_mind(
        {Phase.REASONING: answer},
        tools=[peek, wave],
        constraints=[never_look],
        depth="compact",
        enumerate_actions="calls",
        answers="brief",
    )
    offered: list[bool] = []
    for _ in range(2):
        await live(mind)
        offered.append('"peek"' in json.dumps(mind.asking.forms[-1].model_json_schema()))
    assert offered == [True, False]


async def test_what_a_rule_forbids_now_is_not_offered_and_the_trace_says_so() -> None:
    def never_peek(candidate: Candidate, state: Any, projection: Any) -> Verdict:
        return Verdict.forbid("no") if candidate.action == "peek" else Verdict.allow()

    def never_answer(candidate: Candidate, state: Any, projection: Any) -> Verdict:
        return Verdict.forbid("work") if candidate.action == "respond" else Verdict.allow()

    async def peek() -> str:
        """Peeks."""
        return "seen"

    answer = {**reasoning(), "candidates": [{"action": "peek", "score": 0.8}]}
    mind = make_mind(
        {Phase.REASONING: answer},
        tools=[peek, wave, look],
        constraints=[never_peek, never_answer],
        depth="compact",
        enumerate_actions="allowed",
    )
    outcomes = await live(mind)
    form = json.dumps(mind.asking.forms[-1].model_json_schema())
    assert [name in form for name in ('"wave"', '"look"', '"peek"', '"respond"')] == [
        True,
        True,
        False,
        False,
    ]
    notes = [r.text for r in mind.trace.records if isinstance(r, Note) and r.about == "not_offered"]
    assert len(notes) == 1
    assert "peek {}: never_peek: no" in notes[0]
    assert outcomes[Phase.SELECTION].candidate_id is None


async def test_where_rules_forbid_all_but_one_call_all_are_offered() -> None:
    def only_wave(candidate: Candidate, state: Any, projection: Any) -> Verdict:
        return Verdict.allow() if candidate.action == "wave" else Verdict.forbid("no")

    answer = {**reasoning(), "candidates": [{"action": "wave", "score": 0.8}]}
    mind = make_mind(
        {Phase.REASONING: answer},
        tools=[wave],
        constraints=[only_wave],
        depth="compact",
        enumerate_actions="allowed",
    )
    await live(mind)
    assert '"respond"' in json.dumps(mind.asking.forms[-1].model_json_schema())
    (note,) = [r for r in mind.trace.records if isinstance(r, Note) and r.about == "not_offered"]
    assert note.text.startswith("Forbidden now, but offered, for lack of others: respond")


@pytest.mark.parametrize(
    ("phase", "said"),
    [
        (Phase.REASONING, "no usable answer"),
        (Phase.PROPOSAL, "proposed nothing usable"),
        (Phase.EVALUATION, "evaluation was unusable"),
        (Phase.SELECTION, "selection was unusable"),
    ],
)
async def test_an_unusable_answer_falls_back_visibly(phase: Phase, said: str) -> None:
    script = {**replies(WAVE, LOOK), phase: None}
    mind = make_mind(script, tools=[look, wave])
    outcomes = await live(mind)
    assert tuple(outcomes) == PHASES
    (note,) = mind.notes("fallback")
    assert said in note
    assert "prose instead of JSON" in note


async def test_a_choice_that_is_not_there_falls_back_to_the_ranking() -> None:
    mind = make_mind(replies(WAVE, LOOK, judged=scores(0.1, 0.9), choice=7), tools=[look, wave])
    outcomes = await live(mind)
    assert outcomes[Phase.SELECTION].decided_by is DecidedBy.RANK
    assert outcomes[Phase.EXECUTION].action == "look"
    assert "number 7 of 2" in mind.notes("fallback")[0]


async def test_the_next_proposal_is_told_what_was_rejected_and_why() -> None:
    mind = make_mind(replies(("fly", "{}"), WAVE), tools=[wave])
    await live(mind)
    await live(mind)
    prompt = next(p for phase, p in reversed(mind.asking.asked) if phase is Phase.PROPOSAL)
    assert "fly {}: rejected by action_exists" in prompt[1].content


async def test_versions_of_procedures_are_pinned_for_the_cycle() -> None:
    mind = make_mind(replies(WAVE), tools=[wave])
    pinned = (await live(mind))[Phase.RETRIEVAL].procedures
    assert pinned["reasoning"] == 1
    change = RuleChange(operation="add", rule="Look twice.")
    mind.deps.procedures.change_rule("reasoning", change, author="test", reason="so")
    assert (await live(mind))[Phase.RETRIEVAL].procedures["reasoning"] == 2


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


async def test_a_projection_that_is_no_state_forbids() -> None:
    class Context(CoagContext[Any]):
        def _project(self, candidate: Candidate, state: Any) -> Any:
            return {"place": "east"}

    evaluated = (await live(make_mind(replies(WAVE), tools=[wave], context=Context())))[
        Phase.EVALUATION
    ]
    assert "not a state or None" in evaluated.evaluations[0].died_of.reason


async def test_an_impasse_tells_what_the_last_candidates_died_of() -> None:
    _, result = await make_mind(replies(("fly", "{}"))).turn("Fly.")
    assert result.reason == "impasses"
    assert "Rejected last: fly: action_exists: there is no action 'fly'" in result.response
