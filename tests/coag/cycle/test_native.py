"""Candidates from the model's own tool calls, and from its text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from kits.minds import TestMind, make_mind, reasoning, scores
from pydantic import BaseModel

from coag.compat import ToolRunner
from coag.context import CoagContext
from coag.cycle import GuardedActions, ToolProposal, respond_spec
from coag.cycle.cycle import run_cycle
from coag.errors import ConfigurationError
from coag.schema import (
    ActionSpec,
    Candidate,
    Phase,
    Prompt,
    TokenUsage,
    Verdict,
)


class Verdictlike(BaseModel):
    """A form of answers."""

    answer: str
    sure: bool = True


@dataclass
class ScriptedOffer:
    """Answers offers from a list, the last one for ever, and keeps what was offered."""

    answers: list[ToolProposal]
    offered: list[tuple[Prompt, tuple[str, ...], Phase, bool]] = field(
        default_factory=list[tuple[Prompt, tuple[str, ...], Phase, bool]]
    )

    async def __call__(
        self,
        prompt: Prompt,
        actions: Sequence[ActionSpec],
        /,
        *,
        phase: Phase,
        cycle: int,
        live: bool,
    ) -> ToolProposal:
        self.offered.append((prompt, tuple(spec.name for spec in actions), phase, live))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def add(a: int, b: int = 0) -> int:
    """Adds."""
    return a + b


USAGE = TokenUsage(prompt_tokens=5, completion_tokens=1, calls=1)
TEXT = ToolProposal(text="All done.", usage=USAGE)


def calling(*calls: tuple[str, str], **more: Any) -> ToolProposal:
    return ToolProposal(calls=calls, usage=USAGE, **more)


def native_mind(
    *answers: ToolProposal,
    answer_type: type[BaseModel] | None = None,
    form: Any = None,
    **given: Any,
) -> tuple[TestMind, ScriptedOffer]:
    def answered(prompt: Prompt) -> Any:
        return form if "Give that answer" in prompt[-1].content else reasoning()

    replies: dict[Phase, Any] = {
        Phase.REASONING: answered,
        Phase.PROPOSAL: answered,
        Phase.EVALUATION: scores(0.5, 0.5),
    }
    mind = make_mind(replies, proposal="native", **given)
    offer = ScriptedOffer(list(answers))
    actions = GuardedActions(ToolRunner([add]), respond=respond_spec(answer_type))
    mind.deps = replace(mind.deps, offer=offer, answer_type=answer_type, actions=actions)
    return mind, offer


both = pytest.mark.parametrize("depth", ["full", "compact"])


@both
async def test_calls_of_one_answer_are_one_batch_and_run_in_one_cycle(depth: str) -> None:
    calls = [("add", '{"a": 1}'), ("add", '{"a": 1}'), ("add", '{"a": 2}')]
    mind, _ = native_mind(calling(*calls), TEXT, depth=depth)
    outcomes, result = await mind.turn()
    (ran, answered) = [o for o in outcomes if o.phase is Phase.EXECUTION]
    assert [done.result for done in ran.executed] == ["1", "1", "2"]
    assert len({done.intent_id for done in ran.executed}) == 3
    assert answered.response == result.response
    assert len(mind.records("intent")) == len(mind.records("receipt")) == 3


@both
async def test_neither_call_nor_text_ends_in_impasses_and_is_noted(depth: str) -> None:
    mind, _ = native_mind(ToolProposal(usage=USAGE), depth=depth)
    _, result = await mind.turn()
    assert result.reason == "impasses"
    assert any("neither called a tool nor answered" in note for note in mind.notes("fallback"))


@both
async def test_usage_thought_and_remarks_are_kept(depth: str) -> None:
    answer = ToolProposal(text="Hi.", usage=USAGE, thought="Hm.", remarks=("It was odd.",))
    mind, _ = native_mind(answer, depth=depth)
    outcomes, result = await mind.turn()
    assert result.usage.calls == (1 if depth == "compact" else 2)
    thoughts = [getattr(outcome, "thought", "") for outcome in outcomes]
    assert "Hm." in thoughts
    assert mind.notes("repair") == ["It was odd."]


def forbids(candidate: Candidate, state: Any, projection: Any) -> Verdict:
    del state, projection
    return Verdict.forbid("no") if candidate.action == "add" else Verdict.allow()


class Foreseeing(CoagContext[Any]):
    """Has a forward model that knows priced actions only."""

    def _project(self, candidate: Candidate, state: Any) -> Any:
        assert candidate.arguments is not None
        return state.model_copy(update={"tool_calls": candidate.arguments["price"]})


@pytest.mark.parametrize(
    ("given", "live"),
    [
        ({}, True),
        ({"constraints": [forbids]}, False),
        ({"minimum_score": 0.1}, False),
        ({"context": Foreseeing()}, False),
        ({"answer_type": Verdictlike, "form": {"answer": "x"}}, False),
    ],
)
async def test_a_text_is_live_only_where_nothing_can_reject_it(
    given: dict[str, Any], live: bool
) -> None:
    mind, offer = native_mind(ToolProposal(text='{"answer": "x"}'), **given)
    _, result = await mind.turn()
    assert offer.offered[0][3] is live
    assert result.answered is ("context" not in given)


async def test_a_text_is_not_live_where_a_rule_of_the_cycle_is_missing() -> None:
    mind, offer = native_mind(TEXT, constraints=[forbids], depth="compact")
    await mind.hear("Go on.")
    cycle = run_cycle(mind.context, mind.deps)
    await anext(cycle)
    mind.deps.constraints.remove("forbids")
    mind.deps.constraints.pin()
    async for _ in cycle:
        pass
    assert not offer.offered[0][3]


async def test_without_offer_native_cannot_be_done() -> None:
    mind = make_mind({Phase.REASONING: reasoning()}, proposal="native")
    with pytest.raises(ConfigurationError, match="needs Deps"):
        await mind.turn()


# ---- the form of answers ----

GOOD = Verdictlike(answer="yes", sure=False)


@both
async def test_any_other_text_is_asked_for_again_in_the_form(depth: str) -> None:
    mind, _ = native_mind(TEXT, answer_type=Verdictlike, form=GOOD.model_dump(), depth=depth)
    _, result = await mind.turn()
    assert Verdictlike.model_validate_json(result.response) == GOOD
    _, prompt = mind.asking.asked[-1]
    assert [message.role for message in prompt[-2:]] == ["assistant", "user"]
    assert prompt[-2].content == "All done."


async def test_an_answer_that_never_gets_its_form_is_no_answer() -> None:
    mind, _ = native_mind(TEXT, answer_type=Verdictlike, form=None, depth="compact")
    _, result = await mind.turn()
    assert result.reason == "impasses"
    assert not result.answered
    assert any("in the form of Verdictlike" in note for note in mind.notes("fallback"))
