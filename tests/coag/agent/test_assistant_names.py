"""What notebooks and samples read of AssistantAgent's private names, and bare mocks."""

from __future__ import annotations

import json
import pickle
from typing import Any
from unittest.mock import AsyncMock, MagicMock  # noqa: TID251 - what users give in their tests

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import HandoffMessage, StructuredMessage, TextMessage
from autogen_core.memory import ListMemory, MemoryContent
from autogen_core.model_context import BufferedChatCompletionContext
from autogen_core.models import CreateResult, ModelFamily, RequestUsage, UserMessage
from autogen_core.tools import StaticStreamWorkbench
from autogen_ext.models.replay import ReplayChatCompletionClient
from pydantic import BaseModel

from coag import CoagAgent, ScriptedModel
from coag.errors import ConfigurationError, ModelCallError
from coag.models import ScriptedRequest

NAMES = (
    *("_system_messages", "_model_client", "_model_client_stream", "_output_content_type"),
    *("_output_content_type_format", "_metadata", "_tool_call_summary_format", "_memory"),
    "_reflect_on_tool_use",
)


def add(left: int, right: int) -> int:
    """Adds."""
    return left + right


def hello(request: ScriptedRequest) -> str:
    return "Hello."


@pytest.mark.parametrize("name", NAMES)
def test_a_private_name_gives_what_assistant_agents_gives(name: str) -> None:
    model = ScriptedModel(hello)
    given: dict[str, Any] = {"system_message": "Be brief.", "metadata": {"a": "b"}}
    stock = AssistantAgent("a", model, **given)
    assert getattr(CoagAgent("a", model, **given), name) == getattr(stock, name)


def test_tools_handoffs_and_contexts_are_found_by_their_private_names() -> None:
    context = BufferedChatCompletionContext(3)
    agent: Any = CoagAgent(
        "a", ScriptedModel(hello), tools=[add], handoffs=["bob"], model_context=context
    )
    assert agent._model_context is context
    assert [tool.name for tool in agent._tools] == ["add"]
    assert [type(bench) for bench in agent._workbench] == [StaticStreamWorkbench]
    assert list(agent._handoffs) == ["transfer_to_bob"]
    assert [tool.name for tool in agent._handoff_tools] == ["transfer_to_bob"]
    with pytest.raises(AttributeError):
        agent._model_client = ScriptedModel(hello)


def client(**info: Any) -> MagicMock:
    mock = MagicMock()
    mock.model_info = {
        "function_calling": True,
        "vision": False,
        "family": ModelFamily.GPT_4O,
    } | info
    mock.create = AsyncMock(
        return_value=CreateResult(
            finish_reason="stop",
            content="From a mock.",
            usage=RequestUsage(prompt_tokens=1, completion_tokens=1),
            cached=False,
        )
    )
    return mock


@pytest.mark.parametrize("make", [AssistantAgent, CoagAgent])
async def test_a_bare_mock_serves_as_a_client(make: Any) -> None:
    further: dict[str, Any] = {"depth": "compact"} if make is CoagAgent else {}
    agent = make("a", client(), **further)
    assert (await agent.run(task="Hi.")).messages[-1].to_text() == "From a mock."


class RateLimitError(Exception):
    """As a provider's client has it: its constructor wants the response."""

    def __init__(self, message: str, *, response: object) -> None:
        super().__init__(message)
        self.response = response
        self.status_code = 429


async def test_an_error_of_the_client_is_caught_by_its_own_type() -> None:
    def busy(request: ScriptedRequest) -> str:
        raise RateLimitError("slow down", response="the response")

    agent = CoagAgent("a", ScriptedModel(busy), depth="compact")
    with pytest.raises(RateLimitError) as caught:
        await agent.run(task="Hi.")
    assert isinstance(caught.value, ModelCallError)
    assert (caught.value.status_code, caught.value.response) == (429, "the response")
    assert "could not be asked: RateLimitError: slow down" in str(caught.value)
    assert isinstance(caught.value.__cause__, RateLimitError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, ModelCallError)
    assert str(again) == str(caught.value)


@pytest.mark.filterwarnings("ignore:(?s).*Loading a FunctionTool")
async def test_a_component_of_assistant_agent_becomes_one_of_ours() -> None:
    model = ScriptedModel(hello)
    stock = AssistantAgent(
        "helper", model, tools=[add], handoffs=["bob"], system_message="Be brief.",
        reflect_on_tool_use=True, max_tool_iterations=4, metadata={"a": "b"},
    )  # fmt: skip
    component = json.loads(stock.dump_component().model_dump_json())
    agent: Any = CoagAgent.from_assistant(component, model_client=model, depth="compact")
    assert (agent.name, agent._max_tool_iterations, agent._metadata) == ("helper", 4, {"a": "b"})
    assert [tool["name"] for tool in await agent._workbench[0].list_tools()] == ["add"]
    assert "bob" in str(agent._handoffs)
    assert (await agent.run(task="Hi.")).messages[-1].to_text() == "Hello."


class Weather(BaseModel):
    """An answer with a form."""

    degrees: int


async def test_an_assistant_itself_is_taken_with_its_context_memory_and_form() -> None:
    notes = ListMemory(name="notes")
    await notes.add(MemoryContent(content="It is cold.", mime_type="text/plain"))
    model = ReplayChatCompletionClient(['{"degrees": -3}'])
    stock = AssistantAgent(
        "helper",
        model,
        model_context=BufferedChatCompletionContext(buffer_size=3),
        memory=[notes],
        output_content_type=Weather,
    )
    agent = CoagAgent.from_assistant(stock, depth="compact", proposal="native")
    assert isinstance(agent.model_context, BufferedChatCompletionContext)
    result = await agent.run(task="How cold is it?")
    assert isinstance(result.messages[-1], StructuredMessage)
    assert result.messages[-1].to_text() == '{"degrees":-3}'


def test_another_component_is_refused_by_name() -> None:
    other = CoagAgent("a", ScriptedModel(hello)).dump_component()
    with pytest.raises(ConfigurationError, match=r"not one of 'coag\.CoagAgent'"):
        CoagAgent.from_assistant(other)
    with pytest.raises(ConfigurationError, match="no component of an AssistantAgent"):
        CoagAgent.from_assistant({"provider": "autogen_agentchat.agents.AssistantAgent"})


async def test_a_fresh_state_is_small_and_replaces_what_was_there() -> None:
    agent = CoagAgent("a", ScriptedModel(hello), depth="compact")
    fresh = await agent.save_state()
    assert len(json.dumps(fresh)) < 1_500
    agent._mind.deps.random.random()  # pyright: ignore[reportPrivateUsage] - draws from it
    assert (await agent.save_state())["random"] is not None
    await agent.load_state(fresh)
    assert await agent.save_state() == fresh


def test_a_configuration_of_assistant_agent_makes_an_agent_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = ScriptedModel(hello)

    def load(part: Any) -> ScriptedModel:
        return client

    stock = AssistantAgent("a", ScriptedModel(hello), description="Adds.")
    config: Any = stock._to_config()  # pyright: ignore[reportPrivateUsage]
    # as the tests of AutoGen's users patch it
    monkeypatch.setattr("autogen_core.models.ChatCompletionClient.load_component", load)
    agent = CoagAgent._from_config(config)  # pyright: ignore[reportPrivateUsage]
    assert (agent.name, agent.description) == ("a", "Adds.")
    assert agent.arguments.model_client is client


async def test_messages_are_added_to_a_context_as_assistant_agent_adds_them() -> None:
    carried = UserMessage(content="Look at order 7.", source="desk")
    messages = [
        HandoffMessage(content="Over to you.", source="desk", target="a", context=[carried]),
        TextMessage(content="Thanks.", source="user"),
    ]
    added: list[list[Any]] = []
    for kind in (AssistantAgent, CoagAgent):
        context = BufferedChatCompletionContext(9)
        agent: Any = kind("a", ScriptedModel(hello))
        await agent._add_messages_to_context(context, messages)
        added.append(await context.get_messages())
    assert added[0] == added[1]
    assert [one.content for one in added[1]] == ["Look at order 7.", "Over to you.", "Thanks."]
