"""`depth="auto"`: what each cycle is thought through by, and that nothing is skipped for it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.corridors import (
    CALLS,
    ONE,
    Corridor,
    agrees,
    asked,
    done,
    east_only,
    eastward,
    step,
    walk_first,
    walker,
)
from kits.turns import Idle, say, traced

from coag.agent import CoagAgent
from coag.compat import tool
from coag.cycle import ApprovalPolicy
from coag.cycle.depth import choose_depth
from coag.errors import ConfigurationError
from coag.memory import RuleChange
from coag.schema import (
    ActionsListed,
    DepthAdvice,
    DepthChoice,
    DepthEvidence,
    EvaluationOutcome,
    ExecutionOutcome,
    Intent,
    Note,
    ReasoningOutcome,
    Receipt,
    SelectionOutcome,
)

TASK = "Walk to the end."
NARROW = [east_only, walk_first]
texts = st.text(max_size=20)
several = st.lists(st.text(min_size=1, max_size=20), max_size=3).map(tuple)


@given(
    st.builds(
        DepthEvidence,
        situation=texts,
        only_call=texts,
        procedure=texts,
        foreseen=texts,
        news=several,
        answers_only=st.booleans(),
        impasse=st.booleans(),
        disagreed=several,
        stakes=several,
        advice=st.none()
        | st.builds(
            DepthAdvice,
            depth=st.sampled_from(("one_call", "full")),
            probability=st.floats(0.1, 1),
            why=texts,
            source=texts,
        ),
    )
)
def test_every_depth_has_a_reason_in_its_evidence(evidence: DepthEvidence) -> None:
    choice = choose_depth(evidence)
    doubts = bool(evidence.impasse or evidence.disagreed or evidence.stakes)
    if choice.depth == "reflex":
        foreseen = evidence.foreseen and not evidence.news
        assert evidence.only_call or ((evidence.procedure or foreseen) and not doubts)
        assert not evidence.answers_only
    elif choice.depth == "full":
        assert doubts or (evidence.advice and evidence.advice.depth == "full")
        assert not evidence.only_call
    else:
        certain = evidence.only_call or evidence.procedure
        assert evidence.answers_only or not (doubts or certain)
        assert evidence.answers_only or not evidence.foreseen or evidence.news
    without = choose_depth(evidence.model_copy(update={"advice": None}))
    if without.reason != "nothing asks for more":
        assert (choice.depth, choice.reason) == (without.depth, without.reason)
    assert choice.reason
    assert "\n" not in choice.line
    assert DepthChoice.model_validate_json(choice.model_dump_json()) == choice


def depths(agent: CoagAgent) -> list[str]:
    choices = [outcome.depth for outcome in traced(agent, ReasoningOutcome)]
    return ["" if one is None else one.depth for one in choices]


def reasons(agent: CoagAgent) -> list[str]:
    choices = [outcome.depth for outcome in traced(agent, ReasoningOutcome)]
    return ["" if one is None else one.reason for one in choices]


async def test_what_alone_brings_the_goal_nearer_needs_no_model_where_there_is_no_news() -> None:
    agent, model, world = walker()
    assert await say(agent, TASK) == "There."
    assert reasons(agent) == [
        "there is news: somebody said something new",
        'it alone brings the goal nearer: step {"way": "east"} (gain +0.50, of the others at most '
        "+0.00)",
        "nothing asks for more",
    ]
    assert asked(model) == ONE * 2
    assert world.steps == ["east", "east"]


async def test_the_same_words_again_are_no_news_but_others_are() -> None:
    agent, _, _ = walker(max_tool_iterations=1, world=Corridor(-9))
    for text in (TASK, "Go on.", "Go on.", "Go on.", "Mind the step.", "Go on."):
        await say(agent, text)
    assert depths(agent) == ["one_call", "one_call", "reflex", "reflex", "one_call", "one_call"]


async def test_rules_that_were_learned_in_words_are_news() -> None:
    agent, _, _ = walker()
    change = RuleChange(operation="add", rule="Never hurry.")
    agent.procedures.change_rule("deliberation", change, author="you", reason="So it is.")
    await say(agent, TASK)
    assert depths(agent) == ["one_call"] * 3
    assert "there are rules in words that were learned" in reasons(agent)[1]


async def test_after_eight_cycles_without_it_the_model_is_asked_once() -> None:
    agent, _, _ = walker(world=Corridor(-12))
    await say(agent, TASK)
    asked_in = [number for number, depth in enumerate(depths(agent)) if depth == "one_call"]
    assert asked_in[:2] == [0, 9]
    assert "no model was asked for 8 cycles" in reasons(agent)[9]


async def test_a_failure_is_news() -> None:
    world = Corridor()
    world.raises = 1
    agent, _, _ = walker(world=world)
    await say(agent, TASK)
    assert "the last action failed" in reasons(agent)[1]


async def test_a_reflex_is_judged_recorded_and_run_as_any_other_candidate() -> None:
    agent, _, _ = walker(constraints=NARROW)
    await say(agent, TASK)
    judged = traced(agent, EvaluationOutcome)[0].evaluations
    assert len(judged) == 1
    assert {"action_exists", "arguments", "progress", "east_only"} <= {
        verdict.constraint for verdict in judged[0].verdicts
    }
    intents, receipts = traced(agent, Intent), traced(agent, Receipt)
    assert len(intents) == 2
    assert [one.intent_id for one in receipts] == [one.id for one in intents]
    assert len(traced(agent, SelectionOutcome)) == 3


async def test_a_reflex_is_approved_as_any_other_action() -> None:
    wanted: list[str] = []

    def approve(request: Any) -> bool:
        wanted.append(request.action)
        return len(wanted) > 1

    policy = ApprovalPolicy(tools=("step",))
    agent, _, world = walker(constraints=NARROW, approval=policy, approve=approve)
    await say(agent, TASK)
    assert depths(agent)[0] == "reflex"
    assert wanted[0] == "step"
    assert len(world.steps) == len(wanted) - 1, "what was denied was not done"


async def test_an_impasse_is_thought_through_in_full() -> None:
    agent, model, _ = walker(lambda request: [step("west")], constraints=[east_only])
    await say(agent, TASK)
    assert depths(agent)[:2] == ["one_call", "full"]
    assert reasons(agent)[1] == "no candidate survived in the last cycle"
    assert asked(model)[:3] == (*ONE, *CALLS[:2])


async def test_a_step_that_changed_nothing_against_its_prediction_is_thought_through() -> None:
    world = Corridor()
    world.held = 1
    agent, _, _ = walker(world=world)
    assert await say(agent, TASK) == "There."
    assert depths(agent) == ["one_call", "full", "reflex", "one_call"]
    assert reasons(agent)[1] == "the last action did not lead to what was predicted: at"


async def test_what_needs_approval_is_thought_through() -> None:
    policy = ApprovalPolicy(tools=("step",))
    agent, _, _ = walker(approval=policy, approve=agrees)
    await say(agent, TASK)
    assert depths(agent)[0] == "full"
    assert "needs approval" in reasons(agent)[0]


async def test_what_cannot_be_undone_is_thought_through() -> None:
    @tool(critical=True)
    def wipe(path: str) -> str:
        """Deletes a file."""
        return f"{path} is gone"

    agent, _, _ = walker(lambda request: [done()], tools=[wipe])
    await say(agent, TASK)
    assert reasons(agent) == ["much depends on it: wipe cannot be undone, or costs money"]
    listed = traced(agent, ActionsListed)[0]
    assert [spec.critical for spec in listed.specs] == [True]


async def test_a_rule_on_arguments_that_nobody_has_written_yet_is_asked_later() -> None:
    def dear(action: str, arguments: Any) -> bool:
        return arguments["amount"] > 100

    def pay(amount: int, to: str) -> str:
        """Pays."""
        return "paid"

    policy = ApprovalPolicy(when=(dear,))
    agent, _, _ = walker(lambda request: [done()], tools=[pay], approval=policy, approve=agrees)
    await say(agent, TASK)
    assert depths(agent) == ["one_call"]


async def test_close_candidates_are_judged_again_where_their_gains_differ() -> None:
    def torn(request: Any) -> list[dict[str, Any]]:
        return [step("west", 1.0), step("east", 0.05)] if '"at":0' in request.text else [done()]

    agent, model, world = walker(torn)
    await say(agent, TASK)
    first = traced(agent, EvaluationOutcome)[0]
    assert first.escalated == "the two best differ by 0.05, and their gains are +0.50 and -0.50"
    assert asked(model)[:2] == (*ONE, "EvaluationAnswer")
    assert world.steps[0] == "east"
    assert str(traced(agent, SelectionOutcome)[0].decided_by) == "rank"


async def test_candidates_that_stay_close_are_left_to_the_model() -> None:
    def torn(request: Any) -> list[dict[str, Any]]:
        return [step("west", 1.0), step("east", 0.05)] if '"at":0' in request.text else [done()]

    agent, model, _ = walker(torn, close_scores=1.0, judge=lambda number: 0.5 * (number - 1))
    await say(agent, TASK)
    assert asked(model)[:3] == (*ONE, "EvaluationAnswer", "SelectionAnswer")
    ranked, model, _ = walker(torn, close_scores=0.0)
    await say(ranked, TASK)
    assert "EvaluationAnswer" not in asked(model)


async def test_close_candidates_are_judged_again_where_much_depends_on_one() -> None:
    def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    def dear(action: str, arguments: Any) -> bool:
        return arguments.get("amount", 0) > 100

    def torn(request: Any) -> list[dict[str, Any]]:
        return [done(), {"action": "pay", "arguments": '{"amount": 500}', "score": 0.9}]

    policy = ApprovalPolicy(when=(dear,))
    agent, _, _ = walker(torn, tools=[pay], approval=policy, approve=agrees)
    await say(agent, TASK)
    assert traced(agent, EvaluationOutcome)[0].escalated == (
        "the two best differ by 0.00, and pay needs approval"
    )


async def test_an_action_for_which_everything_needs_approval_is_named_before_its_arguments() -> (
    None
):
    def pay(amount: int) -> str:
        """Pays."""
        return "paid"

    agent, _, _ = walker(lambda request: [done()], tools=[pay], approve=agrees)
    await say(agent, TASK)
    assert reasons(agent) == ["much depends on it: pay needs approval"]


async def test_with_a_budget_at_its_end_one_call_gives_the_answer() -> None:
    agent, _, _ = walker(max_tool_iterations=1, reflect_on_tool_use=True, constraints=[east_only])
    await say(agent, TASK)
    assert depths(agent)[-1] == "one_call"
    assert reasons(agent)[-1] == "only an answer is left to give"


@pytest.mark.parametrize("depth", ["full", "compact"])
async def test_other_depths_write_down_nothing_new(depth: str) -> None:
    agent, _, _ = walker(eastward, depth=depth)
    await say(agent, TASK)
    for kind in (ReasoningOutcome, EvaluationOutcome):
        assert not {"depth", "escalated"} & {*traced(agent, kind)[0].model_dump()}
    assert "critical" not in traced(agent, ActionsListed)[0].specs[0].model_dump()
    assert traced(agent, ExecutionOutcome)[-1].response == "There."


def test_reasoning_cannot_be_left_out_of_one_call() -> None:
    with pytest.raises(ConfigurationError, match="depth='auto' asks for reasoning"):
        walker(ablations=["reasoning"])


class Adviser(Idle):
    """Always advises the same, and counts how often it is asked."""

    name = "adviser"

    def __init__(self, advice: Any = "full") -> None:
        self.advice: Any = advice
        if advice == "full":
            self.advice = DepthAdvice(depth="full", probability=0.25, why="so it is", source="")
        self.asked = 0

    async def advise_depth(self, evidence: DepthEvidence) -> DepthAdvice | None:
        self.asked += 1
        return self.advice


async def test_a_module_is_asked_where_the_evidence_leaves_the_depth_open() -> None:
    adviser = Adviser()
    agent, model, _ = walker(modules=[adviser], reflex_gain=None)
    assert await say(agent, TASK) == "There."
    assert depths(agent) == ["full"] * 3
    assert reasons(agent)[0] == "adviser advises it (probability 0.25): so it is"
    assert asked(model)[:2] == CALLS[:2]
    choice = traced(agent, ReasoningOutcome)[0].depth
    assert choice is not None
    assert choice.evidence.advice == adviser.advice.model_copy(update={"source": "adviser"})


@pytest.mark.parametrize("advice", [None, "deep"])
async def test_without_usable_advice_it_is_one_call(advice: Any) -> None:
    agent, _, _ = walker(modules=[Adviser(advice)], reflex_gain=None)
    assert await say(agent, TASK) == "There."
    assert reasons(agent) == ["nothing asks for more"] * 3
    notes = [one.text for one in traced(agent, Note) if one.about == "module"]
    assert len(notes) == (0 if advice is None else 3)
