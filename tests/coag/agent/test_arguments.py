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
from autogen_core.tools import StaticWorkbench
from kits.brains import brain, respond
from kits.foragers import foraged
from pydantic import BaseModel

from coag import CoagAgent, CoagContext, ScriptedModel, Verdict
from coag.agent import rebuild
from coag.compat import ConstrainedClient, ConstrainedWorkbench
from coag.cycle import Budget
from coag.errors import ConfigurationError, ResumeError, TurnInProgressError, UnknownNameError
from coag.models import Price, ScriptedReply, ScriptedRequest
from coag.proof import fork
from coag.tracing import Rebuild, Recipe, RunFolder

WRONG: dict[str, tuple[Any, ...]] = {
    "model_client": (None, "gpt-4", ScriptedModel),
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
    options: dict[str, Any] = {"name": "clerk", "model_client": brain(respond()), **arguments}
    return CoagAgent(**options)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in WRONG.items() for v in values])
def test_an_argument_that_cannot_be_is_refused_by_its_name(name: str, value: Any) -> None:
    message = "constraint" if name == "constraints" else name
    with pytest.raises(ConfigurationError, match=message):
        make(**{name: value})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"proposal": "grounded"}, ConfigurationError, "CoagContext has no _propose_grounded"),
        ({"memory": ListMemory(name="notes")}, TypeError, r"AutoGen memories: memory=\["),
        ({"memory": ["a list of words"]}, ConfigurationError, "memory= takes a folder, a URL"),
        ({"memory": "  "}, ConfigurationError, "names no folder"),
        ({"budget": Budget(cost=1.0)}, ConfigurationError, "missing: scripted"),
        ({"model_context": CoagContext}, ConfigurationError, r"takes a context, e.g. CoagContext"),
        ({"models": {"execution": brain()}}, UnknownNameError, "'execution'.* reasoning"),
        ({"constraint": []}, TypeError, r"no argument 'constraint'.*constraints.*depth"),
        (
            {"tools": [int], "workbench": StaticWorkbench([])},
            ConfigurationError,
            "tools or a workbench, not both",
        ),
    ],
)
def test_what_cannot_work_together_is_refused_with_what_to_do(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make(**arguments)


@pytest.mark.parametrize("place", ["model_client", "models"])
def test_a_constrained_client_is_refused_as_the_agent_judges_what_it_says(place: str) -> None:
    client = ConstrainedClient(brain(), ConstrainedWorkbench(StaticWorkbench([]), constraints=[]))
    with pytest.raises(ConfigurationError, match=r"is for stock agents.*constraints="):
        make(**{place: client if place == "model_client" else {"reasoning": client}})


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


async def recorded(logs: Path, factory: str) -> RunFolder:
    agent = CoagAgent(
        "a", brain(respond()), logs=logs, proposal="json", recipe=Recipe(factory=factory)
    )
    await agent.on_messages(HELLO, CancellationToken())
    assert agent.run_folder is not None
    await agent.close()
    return agent.run_folder


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


async def test_a_turn_that_was_left_in_another_loop_still_runs_there() -> None:
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
    answer = await last(agent)
    assert answer.to_text() == "Nothing was found."
    assert answer.metadata["ended_by"] == "budget"
    assert len(model.requests) == 5
    assert model.requests[-1].tools == ()
    await last(agent, "Find another one.")
    assert len(model.requests) == 10  # a new goal has a budget of its own


async def test_a_budget_that_is_used_up_ends_the_turn_with_what_can_be_said() -> None:
    agent, model = seeker(Budget(calls=2, soft=1.0))
    answer = await last(agent)
    assert answer.metadata["ended_by"] == "budget"
    assert "the budget for this goal is used up" in answer.to_text()
    assert "Nothing in the hall." in answer.to_text()
    assert len(model.requests) == 2


async def test_a_goal_that_stays_open_keeps_what_it_has_spent() -> None:
    agent, model = seeker(Budget(calls=2, soft=1.0))
    await last(agent)
    await agent.run()
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    "budget", [Budget(tokens=1_500), Budget(seconds=0.000_001), Budget(cost=5.0)]
)
async def test_tokens_seconds_and_money_are_limited_too(budget: Budget) -> None:
    price = Price(prompt=1_000.0, completion=1_000.0)
    agent, model = seeker(budget, prices={"scripted": price})
    assert (await last(agent)).metadata["ended_by"] == "budget"
    spent = agent.context.working_memory.spent.usage
    assert spent.cost == pytest.approx(spent.tokens / 1_000.0)  # pyright: ignore[reportUnknownMemberType]
    assert spent.calls == len(model.requests)


async def test_without_a_system_message_the_instructions_are_in_the_users_message() -> None:
    model = brain(respond())
    await last(make(model_client=model, system_message=None, proposal="json"))
    assert all(one.messages[0].type == "UserMessage" for one in model.requests)
    assert "# Reasoning" in model.requests[0].text
    assert '<data source="goal" trust="user">\nFind it.' in model.requests[0].text


async def test_a_phase_can_have_a_model_of_its_own() -> None:
    cheap = ScriptedModel(lambda request: {"situation": "All is quiet."}, name="cheap")
    strong = ScriptedModel(lambda request: "Done.", name="strong")
    agent = CoagAgent("mixed", strong, models={"reasoning": cheap})
    assert (await last(agent)).to_text() == "Done."
    assert [len(cheap.requests), len(strong.requests)] == [1, 1]
