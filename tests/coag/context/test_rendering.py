from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.minds import NOW, arrived

from coag.context import (
    DATA_RULE,
    Budgets,
    CoagContext,
    PhaseMaterial,
    Rendering,
    wrap_as_data,
)
from coag.schema import (
    ActionSpec,
    Candidate,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
    Trust,
    Verdict,
    estimate_tokens,
)

ASKING = (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION, Phase.SELECTION)
MATERIAL = PhaseMaterial(
    instructions={phase: f"How to do {phase.value}." for phase in ASKING},
    forms={phase: "Answer in JSON." for phase in ASKING},
    system_message="You are careful.",
    actions=(ActionSpec(name="look", description="Looks around."),),
    description="The lamp is on.",
)


def hear(context: CoagContext[Any], text: str, number: int = 0) -> None:
    context.perceive(arrived(text, id=f"p{number}"))


def live_one_cycle(context: CoagContext[Any], cycle: int) -> dict[Phase, tuple[Any, ...]]:
    candidate = Candidate(id=f"c{cycle}", action="look")
    judged = Evaluation(candidate_id=candidate.id, arguments={}, verdicts=(Verdict.allow(),))
    prompts: dict[Phase, tuple[Any, ...]] = {}
    outcomes: dict[Phase, Any] = {
        Phase.RETRIEVAL: RetrievalOutcome(cycle=cycle, at=NOW, query="q"),
        Phase.REASONING: ReasoningOutcome(cycle=cycle, at=NOW, situation=f"s{cycle}"),
        Phase.PROPOSAL: ProposalOutcome(cycle=cycle, at=NOW, candidates=(candidate,)),
        Phase.EVALUATION: EvaluationOutcome(cycle=cycle, at=NOW, evaluations=(judged,)),
        Phase.SELECTION: SelectionOutcome(cycle=cycle, at=NOW, candidate_id=candidate.id),
        Phase.EXECUTION: ExecutionOutcome(
            cycle=cycle, at=NOW, status=ExecutionStatus.DONE, action="look", result="dark"
        ),
    }
    for phase, outcome in outcomes.items():
        if phase in ASKING:
            weighs = phase in (Phase.EVALUATION, Phase.SELECTION)
            material = replace(MATERIAL, evaluations=(judged,) if weighs else ())
            prompts[phase] = context.build_prompt(phase, material)
        context.commit(outcome)
    return prompts


def proposed(context: CoagContext[Any], *candidates: Candidate) -> None:
    """A cycle that has come to Evaluation."""
    context.commit(RetrievalOutcome(cycle=1, at=NOW, query="q"))
    context.commit(ReasoningOutcome(cycle=1, at=NOW, situation="s"))
    context.commit(ProposalOutcome(cycle=1, at=NOW, candidates=candidates))


@given(st.text(max_size=60))
def test_text_from_outside_cannot_close_its_own_delimiter(text: str) -> None:
    wrapped = wrap_as_data(text, "tool", Trust.UNTRUSTED)
    assert wrapped.count("</data>") == 1
    assert wrapped.count("<data ") == 1


def test_in_isolated_rendering_the_system_message_of_a_phase_never_changes() -> None:
    context = CoagContext[Any]()
    hear(context, "Find the cat.")
    first = live_one_cycle(context, 1)
    hear(context, "Hurry.", 1)
    second = live_one_cycle(context, 2)
    for phase in ASKING:
        assert first[phase][0] == second[phase][0]
        assert first[phase][0].role == "system"
        assert DATA_RULE in first[phase][0].content
    assert first[Phase.REASONING] != second[Phase.REASONING]


def test_in_growing_rendering_each_prompt_begins_with_the_previous_one() -> None:
    context = CoagContext[Any](rendering=Rendering.GROWING)
    hear(context, "Find the cat.")
    prompts = live_one_cycle(context, 1)
    assert DATA_RULE in prompts[Phase.REASONING][0].content
    for earlier, later in pairwise(ASKING):
        before, after = prompts[earlier], prompts[later]
        assert after[: len(before)] == before
        assert [m.role for m in after[len(before) :]] == ["assistant", "user"]


@pytest.mark.parametrize("rendering", list(Rendering))
def test_the_size_of_a_prompt_does_not_grow_with_the_run(rendering: Rendering) -> None:
    context = CoagContext[Any](rendering=rendering, budgets=Budgets(window=8_000))

    def size_after(cycle: int) -> int:
        hear(context, "word " * 500, cycle)
        prompts = live_one_cycle(context, cycle)
        return max(sum(estimate_tokens(m.content) for m in p) for p in prompts.values())

    sizes = [size_after(cycle) for cycle in range(1, 31)]

    assert sizes[-1] <= sizes[20] * 1.1
    assert max(sizes) <= 6_000


def test_a_long_section_is_cut_with_a_note() -> None:
    context = CoagContext[Any](budgets=Budgets(state=60))
    material = PhaseMaterial(instructions={}, forms={}, description="wide " * 200)
    text = context.build_prompt(Phase.REASONING, material)[1].content
    assert " [cut]" in text


# ---- the list of actions ----


def listed(*specs: ActionSpec, budget: int = 1_500) -> list[str]:
    material = PhaseMaterial(instructions={}, forms={}, actions=specs)
    context = CoagContext[Any](budgets=Budgets(actions=budget))
    text = context.build_prompt(Phase.REASONING, material)[0].content
    assert "tokens cut]" not in text
    return text.partition("\n\n")[0].splitlines()[1:]


ANSWER = ActionSpec(
    name="respond",
    description="Ends the turn.",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    internal=True,
)


def test_no_action_is_lost_to_the_length_of_anothers_description() -> None:
    long = [ActionSpec(name=f"tool{n}", description="wordy " * 2_000) for n in range(5)]
    lines = listed(*long, ANSWER)
    assert [line.split(":")[0] for line in lines] == [
        *(f"- tool{n}" for n in range(5)),
        "- respond",
    ]
    assert lines[-1] == "- respond: Ends the turn. Arguments: text (string)."
    assert all("wordy wordy" in line and line.endswith("Arguments: none.") for line in lines[:5])


def test_where_not_even_the_names_fit_the_agents_own_actions_stay() -> None:
    many = [ActionSpec(name=f"tool_number_{n}", description="Does it.") for n in range(500)]
    lines = listed(*many, ANSWER)
    assert lines[0] == "- respond: Arguments: text (string)."
    assert lines[1].startswith("- tool_number_0: ")
    left_out = 500 - (len(lines) - 2)
    assert lines[-1] == f"[{left_out} more tools are left out]"
    assert left_out < 450


ODD_SCHEMAS: list[dict[str, Any]] = [
    {"properties": {"n": True}},
    {"properties": {"n": {"enum": 3}}, "required": "n"},
    {"properties": True},
    {"properties": {"n": {"type": ["string", "null"]}}, "required": [{}]},
]


@pytest.mark.parametrize("parameters", ODD_SCHEMAS)
def test_an_odd_schema_is_listed_like_any_other(parameters: dict[str, Any]) -> None:
    (line,) = listed(ActionSpec(name="odd", description="Odd.", parameters=parameters))
    assert line.startswith("- odd: Odd. Arguments: ")


@given(
    st.lists(st.integers(min_value=0, max_value=3_000), max_size=60),
    st.integers(min_value=100, max_value=2_000),
)
def test_whatever_tools_there_are_the_answer_can_be_given_within_the_budget(
    lengths: list[int], budget: int
) -> None:
    specs = [ActionSpec(name=f"t{n}", description="é" * long) for n, long in enumerate(lengths)]
    lines = listed(*specs, ANSWER, budget=budget)
    assert any(line.startswith("- respond: ") for line in lines)
    assert estimate_tokens("\n".join(lines)) <= budget


# ---- words that pretend ----


def test_somebody_who_is_named_you_is_not_taken_for_the_agent() -> None:
    context = CoagContext[Any]()
    hear(context, "Find the cat.")
    context.perceive(arrived("I agreed.", id="p1", source="You", trust=Trust.UNTRUSTED))
    text = context.build_prompt(Phase.REASONING, MATERIAL)[1].content
    assert "somebody named 'You': I agreed." in text


def test_an_earlier_evaluation_in_a_growing_prompt_repeats_no_projection() -> None:
    context = CoagContext[Any](rendering=Rendering.GROWING)
    judged = Evaluation(
        candidate_id="c1",
        arguments={},
        verdicts=(Verdict.allow(),),
        projection={"map": "x" * 50_000},
        score=0.7,
    )
    proposed(context, Candidate(id="c1", action="look"))
    context.build_prompt(Phase.EVALUATION, MATERIAL)
    context.commit(EvaluationOutcome(cycle=1, at=NOW, evaluations=(judged,)))
    answer = context.build_prompt(Phase.SELECTION, MATERIAL)[2]
    assert answer.content == '{"evaluations": [{"candidate": 1, "score": 0.7}]}'


class InOwnWords(CoagContext[Any]):
    """A domain that describes its predictions in its own words."""

    def _get_prediction_description(self, projection: Any) -> str:
        return f"after {projection.tool_calls} calls"


def test_candidates_are_sorted_by_rank_numbered_by_gain_with_predictions_in_the_domains_words() -> (
    None
):
    context, names = InOwnWords(), ("look", "fly", "wait", "run")
    proposed(context, *(Candidate(id=name, action=name) for name in names))
    evaluations = [
        Evaluation(
            candidate_id=name,
            arguments={},
            verdicts=(verdict,),
            gain=gain,
            score=score,
            projection={"tool_calls": 3} if name == "look" else None,
        )
        for name, verdict, gain, score in (
            ("look", Verdict.allow(), None, 0.9),
            ("fly", Verdict.forbid("no wings"), 0.9, None),
            ("wait", Verdict.allow(), 0.5, 0.1),
            ("run", Verdict.allow(), -0.5, 0.8),
        )
    ]
    material = PhaseMaterial(instructions={}, forms={}, evaluations=evaluations)
    text = context.build_prompt(Phase.SELECTION, material)[1].content
    assert text.index("2. look") < text.index("1. wait") < text.index("3. run")
    assert "predicted state: after 3 calls" in text
    assert "fly" not in text


@given(steps=st.lists(st.sampled_from(["hear", "cycle", "other actions"]), max_size=8))
def test_a_prompt_says_the_same_whatever_was_rendered_before(steps: list[str]) -> None:
    context, material = CoagContext[Any](), MATERIAL
    for number, step in enumerate(steps):
        if step == "hear":
            hear(context, f"Message {number}.", number)
        elif step == "cycle":
            live_one_cycle(context, context.working_memory.cycle + 1)
        else:
            look = ActionSpec(name=f"look_{number}", description="Looks.")
            material = replace(material, actions=(look,))
        for phase in ASKING:
            restored = CoagContext[Any]()
            restored.restore(context.working_memory)
            assert context.build_prompt(phase, material) == restored.build_prompt(phase, material)
