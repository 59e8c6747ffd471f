"""An agent's arguments as a component's config, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pytest
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import ChatAgent, Handoff, Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.memory import ListMemory
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.tools import FunctionTool, StaticWorkbench
from autogen_ext.models.openai import OpenAIChatCompletionClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kits.importable import (
    Answer,
    AtMost,
    Counter,
    Observer,
    Quiet,
    Tank,
    approves,
    echo,
    is_large,
    no_deletion,
    shout,
    triple,
)
from pydantic import BaseModel, Field

from coag.agent.serialize import CoagAgentConfig, from_config, to_config
from coag.cycle import ApprovalPolicy, Bounds, NamedConstraint
from coag.errors import ConfigurationError
from coag.memory import LongTermMemory, Procedure
from coag.models import ScriptedModel
from coag.store import HashEmbedder, InMemoryStore
from coag.tracing import Recipe

REQUIRED: Mapping[str, Any] = {
    "name": "clerk",
    "model_client": ScriptedModel(echo),
    "description": "Keeps the books.",
    "system_message": "Be brief.",
}


def _nameless() -> Any:
    return lambda: None


NAMELESS = _nameless()


class Stub(BaseChatAgent, Component[CoagAgentConfig]):
    """An agent that is nothing but its arguments."""

    component_config_schema = CoagAgentConfig

    def __init__(self, **arguments: Any) -> None:
        super().__init__(arguments["name"], arguments["description"])
        self.arguments = arguments

    @property
    def produced_message_types(self) -> tuple[type[BaseChatMessage], ...]:
        return (TextMessage,)

    async def on_messages(self, messages: Any, cancellation_token: CancellationToken) -> Response:
        raise NotImplementedError

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        raise NotImplementedError

    def _to_config(self) -> CoagAgentConfig:
        return to_config(self.arguments)

    @classmethod
    def _from_config(cls, config: CoagAgentConfig) -> Self:
        return cls(**from_config(config))


def stub(**arguments: Any) -> Stub:
    return Stub(**{**REQUIRED, **arguments})


def as_text(component: ComponentModel) -> str:
    return component.model_dump_json(exclude_none=True)


def again(agent: Stub) -> Stub:
    """The agent from its component's JSON; the component of the new one is the same."""
    text = as_text(agent.dump_component())
    loaded = ChatAgent.load_component(json.loads(text))
    assert isinstance(loaded, Stub)
    assert as_text(loaded.dump_component()) == text
    return loaded


ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "tools": st.sampled_from([None, [], [triple], [FunctionTool(triple, "x")]]),
        "workbench": st.builds(lambda: StaticWorkbench([FunctionTool(triple, "x")])),
        "handoffs": st.sampled_from([None, ["cook"], [Handoff(target="cook", message="go")]]),
        "model_context": st.sampled_from([None, Tank(size=None), BufferedChatCompletionContext(3)]),
        "description": st.text(),
        "system_message": st.none() | st.text(),
        "model_client_stream": st.booleans(),
        "reflect_on_tool_use": st.none() | st.booleans(),
        "max_tool_iterations": st.none() | st.integers(1, 9),
        "tool_call_summary_format": st.text(),
        "tool_call_summary_formatter": st.sampled_from([None, shout]),
        "output_content_type": st.sampled_from([None, Answer]),
        "output_content_type_format": st.none() | st.text(),
        "memory": st.sampled_from([None, "memories", Path("memories"), "http://m:8000"])
        | st.builds(lambda: [ListMemory("facts")])
        | st.builds(lambda: LongTermMemory(InMemoryStore(HashEmbedder()), scope="x")),
        "metadata": st.none() | st.dictionaries(st.text(), st.text(), max_size=2),
        "modules": st.builds(lambda: [Observer(name="eye")]),
        "constraints": st.sampled_from(
            [(), [no_deletion], [AtMost(3), Quiet()], [NamedConstraint("limit", AtMost(3))]]
        ),
        "procedures": st.none() | st.just({"reasoning": Procedure(name="reasoning", text="x")}),
        "logs": st.sampled_from([None, "logs", Path("logs")]),
        "recipe": st.none() | st.just(Recipe(factory="m:f", arguments={"a": None})),
        "seed": st.integers(),
        "tool_timeout": st.floats(0.1, 99),
        "depth": st.sampled_from(["full", "compact"]),
        "selection": st.sampled_from(["model", "rank", "ties"]),
        "bounds": st.builds(Bounds, cycles=st.integers(1, 9), actions=st.none() | st.just(2)),
        "approve": st.sampled_from([None, no_deletion, AtMost(1)]),
        "models": st.just({"reasoning": ScriptedModel(echo, name="cheap")}),
    },
)
PLAIN = (
    *("name", "description", "system_message", "model_client_stream", "reflect_on_tool_use"),
    *("max_tool_iterations", "tool_call_summary_format", "tool_call_summary_formatter"),
    *("output_content_type", "metadata", "recipe", "seed", "tool_timeout", "depth", "selection"),
    *("bounds", "approve", "procedures", "output_content_type_format"),
)


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(ARGUMENTS)
def test_every_round_trip_is_equal(arguments: dict[str, Any]) -> None:
    agent = stub(**arguments)
    loaded = again(agent).arguments
    for name in agent.arguments.keys() & set(PLAIN):
        assert loaded.get(name) == agent.arguments[name], name
    for name in ("tools", "workbench", "constraints", "modules"):
        assert (loaded.get(name) is None) == (agent.arguments.get(name) is None)


def test_what_assistant_agent_writes_is_read() -> None:
    config = {
        "name": "clerk",
        "model_client": ScriptedModel(echo).dump_component(),
        "workbench": [StaticWorkbench([]).dump_component()],
        "description": "x",
        "model_client_stream": False,
        "reflect_on_tool_use": False,
        "tool_call_summary_format": "{result}",
        "max_tool_iterations": 1,
    }
    arguments = from_config(CoagAgentConfig.model_validate(config))
    assert (arguments["system_message"], arguments["max_tool_iterations"]) == (None, 1)


# ---- single arguments ----


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"name": "subprocess:Popen", "arguments": {"args": ["false"]}}, "Python's own"),
        ("os:system", "Python's own"),
        ("kits.importable:triple", "'triple' is no constraint"),
        ("kits.importable:Quiet", "'Quiet' is no constraint"),
        ({"name": "limit", "rule": "kits.importable:triple"}, "'triple' is no constraint"),
    ],
)
def test_what_is_no_constraint_is_not_loaded_as_one(rule: Any, message: str) -> None:
    config = to_config(REQUIRED).model_dump(mode="json")
    with pytest.raises(ConfigurationError, match=message):
        from_config(CoagAgentConfig.model_validate({**config, "constraints": [rule]}))


def test_a_policy_of_approval_comes_back_with_its_rules() -> None:
    policy = ApprovalPolicy(actions=["delete_*"], when=[is_large], risk={"x": "high"})
    loaded = again(stub(approval=policy, approve=approves)).arguments
    assert loaded["approval"] == policy
    assert loaded["approve"] is approves


def test_a_type_of_answers_that_cannot_be_imported_comes_back_alike() -> None:
    class Local(BaseModel):
        """A local form."""

        text: str = Field(description="What is said.", max_length=9)
        marks: list[int] = []

    loaded = again(stub(output_content_type=Local)).arguments["output_content_type"]
    assert loaded.__name__ == "Local"
    assert loaded.model_json_schema()["description"] == "A local form."
    assert again(stub(output_content_type=loaded))


def test_no_key_of_a_model_client_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    client = OpenAIChatCompletionClient(model="gpt-4o", api_key="given-to-the-client")
    component = stub(model_client=client).dump_component()
    assert "given-to-the-client" not in repr(component)
    assert "api_key" not in component.config["model_client"]["config"]
    again(stub(model_client=client))


class Loud(Handoff):
    """A handoff of another class."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model_client": ScriptedModel(lambda request: "")}, "model_client=.*lambda"),
        ({"model_client": object()}, "model_client=.*no AutoGen component"),
        ({"tool_call_summary_formatter": NAMELESS}, "formatter=.*lambda"),
        ({"constraints": [NAMELESS]}, "constraints=.*lambda"),
        ({"constraints": [Counter()]}, "constraints=.*Counter"),
        ({"modules": [Counter()]}, "modules=.*Counter"),
        ({"approve": NAMELESS}, "approve=.*lambda"),
        ({"handoffs": [Loud(target="cook")]}, "handoffs=.*Loud"),
        ({"memory": "http://me:word@memory:8000"}, "a user, a password"),
        ({"metadata": {"api_key": "correct-horse"}}, "secret, at 'metadata.api_key'"),
        ({"recipe": Recipe(factory="m:f", arguments={"token": "abcdefgh"})}, "recipe.arguments"),
        ({"constraints": [AtMost(1, ("http://me:word@host/",))]}, "secret, at 'names.0'"),
    ],
)
def test_what_cannot_be_written_down_is_refused_by_name(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        to_config({**REQUIRED, **arguments})
