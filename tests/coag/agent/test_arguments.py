"""Arguments of which no agent can be made are refused when they are given, and named."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken, FunctionCall
from autogen_core.memory import ListMemory
from kits.brains import brain, respond
from kits.foragers import foraged
from pydantic import BaseModel

from coag import CoagAgent, ScriptedModel, Verdict
from coag.agent import rebuild
from coag.agent.memories import memory_location
from coag.agent.model import _without_system  # pyright: ignore[reportPrivateUsage] - rarely met
from coag.cycle import Budget
from coag.errors import ConfigurationError, ResumeError, TurnInProgressError, UnknownNameError
from coag.memory import LongTermMemory
from coag.models import Price, ScriptedReply, ScriptedRequest
from coag.proof import fork
from coag.schema import PromptMessage
from coag.store import HashEmbedder, InMemoryStore
from coag.tracing import Rebuild, Recipe, RunFolder

WRONG: dict[str, tuple[Any, ...]] = {
    "model_client": (None, "gpt-4"),
    "models": ({"reasoning": None}, "gpt-4"),
    "description": (5, None),
    "system_message": (5,),
    "metadata": ({"a": 1}, "x"),
    "tools": ("add", 5),
    "workbench": (5, "bench"),
    "handoffs": ("bob", 5),
    "modules": (None, "abc", [object()], [BaseModel], (one for one in ())),
    "constraints": (None, "abc", 5, [5], [len], [Verdict]),
    "procedures": ({"reasoning": "Think."},),
    "model_client_stream": ("yes", None),
    "reflect_on_tool_use": ("no", 1),
    "max_tool_iterations": (1.5, "3", True, 0),
    "tool_call_summary_format": (5, None),
    "tool_call_summary_formatter": ("x",),
    "output_content_type": (dict, BaseModel, "Answer"),
    "output_content_type_format": (5,),
    "memory": (5, ""),
    "logs": ("", " ", 5),
    "recipe": ("m:f", {"factory": "m:f"}),
    "seed": ("x", 1.5, True, None),
    "tool_timeout": (0, -1, float("nan"), "60", None),
    "prices": ({"scripted": 1},),
    "approval": (5,),
    "approve": (5, "yes"),
    "module_seconds": (0,),
    "minimum_score": (2,),
    "depth": ("deep",),
}


def make(**arguments: Any) -> CoagAgent:
    given: dict[str, Any] = {"name": "clerk", "model_client": brain(respond()), **arguments}
    return CoagAgent(**given)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in WRONG.items() for v in values])
def test_an_argument_that_cannot_be_is_refused_by_its_name(name: str, value: Any) -> None:
    said = "constraint" if name == "constraints" else name
    with pytest.raises(ConfigurationError, match=said):
        make(**{name: value})


def test_grounded_proposals_need_a_domain_that_makes_them() -> None:
    with pytest.raises(ConfigurationError, match="CoagContext has no _propose_grounded"):
        make(proposal="grounded")


@pytest.mark.parametrize("arguments", [{"api_key": "abcdefgh"}, {"db": "x hushhushhush"}])
def test_a_recipe_with_a_secret_is_refused_as_no_run_would_keep_it(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hushhushhush")
    with pytest.raises(ConfigurationError, match="recipe: the argument") as caught:
        make(recipe=Recipe(factory="m:f", arguments=arguments))
    assert "hush" not in str(caught.value)


# ---- What is asked of an agent that it cannot do, and what it says ----


HELLO = [TextMessage(content="Hello.", source="user")]


def test_a_single_memory_of_autogen_is_to_be_given_in_a_list() -> None:
    memory = ListMemory(name="notes")
    with pytest.raises(TypeError, match=r"takes a list of AutoGen memories: memory=\["):
        CoagAgent("a", brain(respond()), memory=memory)  # pyright: ignore[reportArgumentType] - so it is


def test_no_memory_and_a_memory_in_ram_rest_nowhere() -> None:
    assert memory_location(None) is None
    assert memory_location(LongTermMemory(InMemoryStore(HashEmbedder()), scope="a")) is None


async def recorded(logs: Path, factory: str) -> RunFolder:
    agent = CoagAgent(
        "a", brain(respond()), logs=logs, proposal="json", recipe=Recipe(factory=factory)
    )
    await agent.on_messages(HELLO, CancellationToken())
    assert agent.run_folder is not None
    await agent.close()
    return agent.run_folder


async def test_a_recipe_that_makes_something_else_says_what(tmp_path: Path) -> None:
    run = await recorded(tmp_path, "kits.porters:no_agent")
    with pytest.raises(ResumeError, match="makes a str, not a CoagAgent"):
        await rebuild(run, Rebuild(purpose="replay"))


async def test_a_factory_of_a_script_is_to_be_named_by_its_file(tmp_path: Path) -> None:
    run = await recorded(tmp_path, "__main__:build_it")
    with pytest.raises(ResumeError, match="Name the factory by its script's file name"):
        await rebuild(run, Rebuild(purpose="replay"))


async def test_a_fork_is_not_resumed_but_forked(tmp_path: Path) -> None:
    forked = await fork(await foraged(tmp_path), "2")
    with pytest.raises(ResumeError, match=r"is a fork of .*coag fork .* --at CYCLE\.PHASE"):
        await CoagAgent.resume(forked.run)


def in_another_loop(act: Callable[[], object]) -> None:
    """Does something in a thread, and waits for it."""
    thread = threading.Thread(target=act)
    thread.start()
    thread.join()


async def test_a_turn_that_was_left_in_another_loop_still_goes_on_there() -> None:
    agent = CoagAgent("a", brain(respond()), proposal="json")
    stream = agent.on_messages_stream(HELLO, CancellationToken())
    await anext(stream)
    refused: list[str] = []

    def say() -> None:
        try:
            asyncio.run(agent.on_messages(HELLO, CancellationToken()))
        except TurnInProgressError as error:
            refused.append(str(error))

    in_another_loop(say)
    assert len(refused) == 1
    await stream.aclose()
    await agent.on_messages(HELLO, CancellationToken())
    await agent.close()


def test_where_no_user_speaks_instructions_are_told_as_the_users() -> None:
    system = PromptMessage(role="system", content="Be kind.")
    own = PromptMessage(role="assistant", content="I am.")
    user = PromptMessage(role="user", content="Be brief.")
    assert [(one.role, one.content) for one in _without_system((system, own))] == [
        ("user", "Be kind."),
        ("assistant", "I am."),
    ]
    assert [(one.role, one.content) for one in _without_system((system, own, user))] == [
        ("assistant", "I am."),
        ("user", "Be kind.\n\nBe brief."),
    ]


# ---- Budgets of a goal, models of single phases, and what they cost ----


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
