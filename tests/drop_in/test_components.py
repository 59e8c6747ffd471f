"""Agents as components: every configuration comes back by every loader, and works."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import ChatAgent, Handoff, Team
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import StructuredMessage
from autogen_agentchat.teams import (
    DiGraphBuilder,
    GraphFlow,
    RoundRobinGroupChat,
    SelectorGroupChat,
    Swarm,
)
from autogen_agentchat.tools import AgentTool
from autogen_core import ComponentLoader
from autogen_core.memory import ListMemory
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    HeadAndTailChatCompletionContext,
    UnboundedChatCompletionContext,
)
from autogen_core.models import UserMessage
from autogen_core.tools import FunctionTool, StaticStreamWorkbench, StaticWorkbench
from kits.drop_in import WAYS, Judgement, add, multiply, run, within
from kits.planned import PlannedModel

from coag import CoagAgent
from coag.context import CoagContext

CONFIGS: dict[str, Callable[[], dict[str, Any]]] = {
    "plain": dict,
    "tools": lambda: {"tools": [add, FunctionTool(multiply, "Multiplies.", name="times")]},
    "no_tools": lambda: {"tools": []},
    "workbench": lambda: {"workbench": StaticWorkbench([FunctionTool(add, "Adds.")])},
    "workbenches": lambda: {
        "workbench": [
            StaticStreamWorkbench([FunctionTool(add, "Adds.")]),
            StaticWorkbench([FunctionTool(multiply, "Multiplies.")]),
        ]
    },
    "handoffs": lambda: {"handoffs": ["bob", Handoff(target="eve", name="to_eve", message="Eve!")]},
    "context": lambda: {"model_context": BufferedChatCompletionContext(7)},
    "head_and_tail": lambda: {"model_context": HeadAndTailChatCompletionContext(2, 3)},
    "own_context": lambda: {"model_context": CoagContext[Any](rendering="growing")},
    "began": lambda: {
        "model_context": UnboundedChatCompletionContext([UserMessage(content="I", source="user")])
    },
    "silent": lambda: {"system_message": None},
    "structured": lambda: {
        "output_content_type": Judgement,
        "output_content_type_format": "{answer}",
    },
    "memory": lambda: {"memory": [ListMemory("facts")]},
    "summary": lambda: {"tools": [add], "tool_call_summary_format": "{tool_name}={result}"},
    "reflecting": lambda: {"tools": [add], "reflect_on_tool_use": True, "max_tool_iterations": 3},
    "streaming": lambda: {"model_client_stream": True, "metadata": {"team": "blue"}},
    "deliberating": lambda: {**WAYS[3], "selection": "rank", "recall_k": 2, "seed": 4},
}
each = pytest.mark.parametrize("config", CONFIGS)


def dumped(component: Any) -> str:
    return component.dump_component().model_dump_json(exclude_none=True)


def make(config: str, name: str = "agent") -> CoagAgent:
    return CoagAgent(name, PlannedModel("LOADED"), **CONFIGS[config]())


@each
@pytest.mark.parametrize("loader", [ChatAgent, BaseChatAgent, CoagAgent, ComponentLoader])
async def test_every_configuration_comes_back_by_every_loader(config: str, loader: Any) -> None:
    text = dumped(make(config))
    if loader is ComponentLoader:
        loaded = ComponentLoader.load_component(json.loads(text), expected=CoagAgent)
    else:
        loaded = loader.load_component(json.loads(text))
    assert type(loaded) is CoagAgent
    assert dumped(loaded) == text
    if config != "structured":
        result = await run(loaded, "My secret is 4711.")
        assert result.messages[-1].to_text() == "LOADED"
        assert dumped(loaded) == text


@each
def test_a_component_names_nothing_private_and_no_dialogue(config: str) -> None:
    component = make(config).dump_component()
    assert component.provider == "coag.CoagAgent"
    assert component.component_type == "agent"
    text = component.model_dump_json()
    assert "._" not in text.replace("..._", "")


def test_none_stays_none_and_defaults_stay_defaults() -> None:
    silent = CoagAgent.load_component(json.loads(dumped(make("silent"))))
    assert silent.dump_component().config.get("system_message") is None
    plain = CoagAgent.load_component(json.loads(dumped(make("plain"))))
    assert plain.description == make("plain").description
    assert plain.produced_message_types == make("plain").produced_message_types


async def test_loaded_tools_work_and_can_be_dumped_again() -> None:
    text = dumped(make("tools"))
    loaded = CoagAgent.load_component(json.loads(text))
    model = loaded.arguments.model_client
    assert isinstance(model, PlannedModel)
    model.then([("add", {"a": 2, "b": 3}), ("times", {"a": 2, "b": 3})])
    result = await run(loaded)
    assert "5" in str(result.messages)
    assert "6" in str(result.messages)
    assert dumped(loaded) == text


async def test_a_structured_agent_answers_in_its_form_when_loaded() -> None:
    form = {"answer": "yes", "score": 0.5}
    agent = CoagAgent(
        "agent",
        PlannedModel(json.dumps(form), forms={"Judgement": form}),
        output_content_type=Judgement,
        output_content_type_format="it is {answer}",
    )
    loaded = CoagAgent.load_component(json.loads(dumped(agent)))
    result = await run(loaded)
    assert isinstance(result.messages[-1], StructuredMessage)
    assert result.messages[-1].to_text() == "it is yes"


def test_a_subclass_dumps_and_loads_as_itself() -> None:
    agent = Subclass("agent", PlannedModel("LOADED"))
    component = agent.dump_component()
    assert component.provider.endswith("Subclass")
    assert type(CoagAgent.load_component(component)) is Subclass


class Subclass(CoagAgent):
    """Somebody's own agent."""


# ---- in others ----


def round_robin() -> Team:
    stock = AssistantAgent("stock", PlannedModel("STOCK"))
    return RoundRobinGroupChat([make("plain"), stock], max_turns=2)


def selector() -> Team:
    return SelectorGroupChat(
        [make("plain", "one"), make("tools", "two")], PlannedModel("two"), max_turns=1
    )


def swarm() -> Team:
    return Swarm([make("handoffs"), make("plain", "bob"), make("plain", "eve")], max_turns=1)


def flow() -> Team:
    one, two = make("plain", "one"), make("plain", "two")
    graph = DiGraphBuilder().add_node(one).add_node(two).add_edge(one, two)
    return GraphFlow([one, two], graph.build())


def nested() -> Team:
    inner = RoundRobinGroupChat([make("plain", "one")], max_turns=1, name="inner")
    return RoundRobinGroupChat(
        [inner, make("plain", "two")], termination_condition=MaxMessageTermination(3)
    )


@pytest.mark.parametrize("team", [round_robin, selector, swarm, flow, nested])
async def test_teams_come_back_and_work(team: Callable[[], Any]) -> None:
    text = dumped(team())
    kind = cast("Any", type(team()))
    loaded = kind.load_component(json.loads(text))
    assert dumped(loaded) == text
    result = await within(loaded.run(task="Go."))
    assert any(m.source != "user" and m.to_text() == "LOADED" for m in result.messages)


@pytest.mark.parametrize("outer", [CoagAgent, AssistantAgent])
async def test_an_agent_as_a_tool_comes_back_and_works(outer: Any) -> None:
    tool = AgentTool(make("plain", "inner"), return_value_as_last_message=True)
    agent = outer("outer", PlannedModel("OUTER", ("inner", {"task": "Go."})), tools=[tool])
    text = dumped(agent)
    loaded = outer.load_component(json.loads(text))
    assert dumped(loaded) == text
    result = await within(loaded.run(task="Go."))
    assert "LOADED" in str(result.messages)
