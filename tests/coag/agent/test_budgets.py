"""Budgets of a goal, models of single phases, and what they cost."""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.messages import BaseChatMessage
from autogen_core import FunctionCall

from coag import CoagAgent, ScriptedModel
from coag.cycle import Budget
from coag.errors import ConfigurationError, UnknownNameError
from coag.models import Price, ScriptedReply, ScriptedRequest

LOOK = [FunctionCall(id="1", name="look", arguments='{"where": "hall"}')]


async def look(where: str) -> str:
    """Looks."""
    return f"Nothing in the {where}."


def restless(request: ScriptedRequest) -> ScriptedReply:
    """Looks as long as it can, and else says what it knows."""
    return LOOK if request.tools else "Nothing was found."


def seeker(budget: Budget, **options: Any) -> tuple[CoagAgent, ScriptedModel]:
    model = ScriptedModel(restless)
    return (
        CoagAgent("seeker", model, tools=[look], depth="compact", budget=budget, **options),
        model,
    )


async def last(agent: CoagAgent, task: str = "Find it.") -> BaseChatMessage:
    message = (await agent.run(task=task)).messages[-1]
    assert isinstance(message, BaseChatMessage)
    return message


async def test_at_the_soft_share_of_a_budget_the_agent_answers_from_what_it_knows() -> None:
    agent, model = seeker(Budget(calls=5))
    said = await last(agent)
    assert said.to_text() == "Nothing was found."
    assert said.metadata["ended_by"] == "budget"
    assert len(model.requests) == 5
    assert model.requests[-1].tools == ()


async def test_a_budget_that_is_used_up_ends_the_turn_with_what_can_be_said() -> None:
    agent, model = seeker(Budget(calls=2, soft=1.0))
    said = await last(agent)
    assert said.metadata["ended_by"] == "budget"
    assert "the budget for this goal is used up" in said.to_text()
    assert "Nothing in the hall." in said.to_text()
    assert len(model.requests) == 2


async def test_a_goal_that_stays_open_keeps_what_it_has_spent() -> None:
    agent, model = seeker(Budget(calls=2, soft=1.0))
    await last(agent)
    asked = len(model.requests)
    await agent.run()
    assert len(model.requests) == asked


async def test_a_new_goal_has_a_budget_of_its_own() -> None:
    agent, model = seeker(Budget(calls=5))
    await last(agent)
    await last(agent, "Find another one.")
    assert len(model.requests) == 10


@pytest.mark.parametrize("budget", [Budget(tokens=1_500), Budget(seconds=0.000_001)])
async def test_tokens_and_seconds_are_limited_too(budget: Budget) -> None:
    agent, _ = seeker(budget)
    assert (await last(agent)).metadata["ended_by"] == "budget"


async def test_money_is_limited_by_the_prices_of_the_models() -> None:
    agent, model = seeker(
        Budget(cost=5.0), prices={"scripted": Price(prompt=1_000.0, completion=1_000.0)}
    )
    assert (await last(agent)).metadata["ended_by"] == "budget"
    spent = agent.context.working_memory.spent.usage
    assert spent.cost == pytest.approx(spent.tokens / 1_000.0)  # pyright: ignore[reportUnknownMemberType]
    assert spent.calls == len(model.requests)


def test_a_budget_in_money_needs_every_price() -> None:
    with pytest.raises(ConfigurationError, match="missing: scripted"):
        seeker(Budget(cost=1.0))


async def test_a_phase_can_have_a_model_of_its_own() -> None:
    cheap = ScriptedModel(lambda request: {"situation": "All is quiet."}, name="cheap")
    strong = ScriptedModel(lambda request: "Done.", name="strong")
    agent = CoagAgent("mixed", strong, models={"reasoning": cheap})
    assert (await last(agent)).to_text() == "Done."
    assert [len(cheap.requests), len(strong.requests)] == [1, 1]


def test_a_model_for_a_phase_that_asks_none_is_refused() -> None:
    model = ScriptedModel(restless)
    with pytest.raises(UnknownNameError, match=r"'execution'.* reasoning"):
        CoagAgent("mixed", model, models={"execution": model})
