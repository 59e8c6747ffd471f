"""Contexts: given ones decide what is shown; ours serves a stock agent as AutoGen's do."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall, Image
from autogen_core.memory import ListMemory, MemoryContent, MemoryMimeType
from autogen_core.model_context import (
    BufferedChatCompletionContext,
    ChatCompletionContext,
    HeadAndTailChatCompletionContext,
    TokenLimitedChatCompletionContext,
    UnboundedChatCompletionContext,
)
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from kits.drop_in import WAYS, ListedMemory, add, check_reusable, run, way_name, within
from kits.planned import PlannedModel
from PIL import Image as PILImage

from coag import CoagAgent
from coag.context import CoagContext

all_ways = pytest.mark.parametrize("way", WAYS, ids=way_name)

CALL = FunctionCall(id="c1", name="add", arguments='{"a": 1, "b": 2}')
RESULT = FunctionExecutionResult(content="3", name="add", call_id="c1", is_error=False)
PICTURE = Image(PILImage.new("RGB", (4, 4)))
MESSAGES: list[LLMMessage] = [
    SystemMessage(content="Be brief."),
    UserMessage(content="1+2?", source="user"),
    AssistantMessage(content=[CALL], source="me", thought="hm"),
    FunctionExecutionResultMessage(content=[RESULT]),
    AssistantMessage(content="Three.", source="me"),
    UserMessage(content=["Look.", PICTURE], source="user"),
]


def context(initial_messages: list[LLMMessage] | None = None) -> CoagContext[Any]:
    return CoagContext[Any](initial_messages=initial_messages)


def as_json(messages: list[LLMMessage]) -> str:
    return json.dumps([message.model_dump(mode="json") for message in messages])


async def filled() -> CoagContext[Any]:
    model_context = context()
    for message in MESSAGES:
        await model_context.add_message(message)
    return model_context


# ---- ours, as AutoGen uses contexts ----


async def test_messages_come_back_as_they_were_until_it_is_cleared() -> None:
    model_context = context()
    assert isinstance(model_context, ChatCompletionContext)
    assert await model_context.get_messages() == []
    model_context = await filled()
    (await model_context.get_messages()).clear()
    assert await model_context.get_messages() == MESSAGES
    await model_context.clear()
    assert await model_context.get_messages() == []
    await model_context.add_message(MESSAGES[1])
    assert await model_context.get_messages() == [MESSAGES[1]]


async def test_first_messages_are_there_and_the_given_list_is_not_kept() -> None:
    initial = list(MESSAGES)
    model_context = context(initial)
    await model_context.add_message(UserMessage(content="More.", source="user"))
    assert initial == MESSAGES
    initial.clear()
    assert (await model_context.get_messages())[:-1] == MESSAGES


async def test_its_state_is_json_a_snapshot_and_comes_back() -> None:
    model_context = await filled()
    state = await model_context.save_state()
    text = json.dumps(state)
    await model_context.add_message(UserMessage(content="More.", source="user"))
    assert json.dumps(state) == text
    again = context([UserMessage(content="Gone.", source="user")])
    await again.load_state(json.loads(text))
    assert as_json(await again.get_messages()) == as_json(MESSAGES)
    assert json.dumps(await again.save_state()) == text


async def test_states_go_to_and_come_from_autogens_contexts() -> None:
    ours, stock, again = await filled(), UnboundedChatCompletionContext(), context()
    await stock.load_state(json.loads(json.dumps(await ours.save_state())))
    assert as_json(await stock.get_messages()) == as_json(MESSAGES)
    state = {"messages": [m.model_dump(mode="json") for m in await stock.get_messages()]}
    await again.load_state(state)
    assert as_json(await again.get_messages()) == as_json(MESSAGES)


async def test_it_is_bounded_and_what_it_gives_stays_legal() -> None:
    model_context = context()
    for number in range(600):
        await model_context.add_message(UserMessage(content=f"{number}", source="user"))
        await model_context.add_message(AssistantMessage(content=[CALL], source="me"))
        await model_context.add_message(FunctionExecutionResultMessage(content=[RESULT]))
    messages = await model_context.get_messages()
    assert len(messages) <= 400
    assert not isinstance(messages[0], FunctionExecutionResultMessage)
    size = len(json.dumps(await model_context.save_state()))
    assert size < 600 * 600


async def test_a_stock_agent_works_with_it_tools_memory_and_all() -> None:
    memory = ListMemory()
    await memory.add(MemoryContent(content="fact-1", mime_type=MemoryMimeType.TEXT))
    model = PlannedModel("FINAL", multiple_system_messages=True)
    agent = AssistantAgent("stock", model, tools=[add], model_context=context(), memory=[memory])
    for turn in range(6):
        model.then(("add", {"a": 40, "b": turn}))
        await within(agent.run(task=f"Turn {turn}."))
    assert model.violations == []
    assert "fact-1" in model.heard
    last = model.asked[-1].messages
    assert any(isinstance(m, FunctionExecutionResultMessage) for m in last)


# ---- given ones, in our agent ----


def token_limited(model: PlannedModel) -> ChatCompletionContext:
    return TokenLimitedChatCompletionContext(model, token_limit=20)


GIVEN: dict[str, Callable[[PlannedModel], ChatCompletionContext]] = {
    "buffered": lambda _: BufferedChatCompletionContext(4),
    "head_and_tail": lambda _: HeadAndTailChatCompletionContext(1, 3),
    "token_limited": token_limited,
    "unbounded": lambda _: UnboundedChatCompletionContext(),
    "ours": lambda _: CoagContext[Any](),
}


@all_ways
@pytest.mark.parametrize("kind", GIVEN)
async def test_a_given_context_serves_many_turns(way: dict[str, Any], kind: str) -> None:
    model = PlannedModel("FINAL", ("add", {"a": 1, "b": 2}))
    model_context = GIVEN[kind](model)
    agent = CoagAgent("agent", model, tools=[add], model_context=model_context, **way)
    assert agent.model_context is model_context
    for turn in range(8):
        await run(agent, f"token-{turn}-end")
    prompt = model.asked[-1].text
    assert "token-7-end" in prompt
    assert ("token-0-end" in prompt) == (kind != "buffered")
    await check_reusable(agent, model)
    messages = [m.content for m in await model_context.get_messages()]
    assert messages[-1] == "FINAL"
    assert "And now?" in messages or kind == "token_limited"  # that one drops from the middle


async def test_what_a_given_context_began_with_is_shown() -> None:
    model = PlannedModel()
    first: list[LLMMessage] = [UserMessage(content="token-0", source="user")]
    for given in (UnboundedChatCompletionContext(first), context(first)):
        await run(CoagAgent("agent", model, model_context=given))
        assert "token-0" in model.asked[-1].text


async def test_one_system_message_holds_what_the_developer_says() -> None:
    model = PlannedModel()
    agent = CoagAgent("agent", model, system_message="token-5", memory=[ListedMemory("token-9")])
    await run(agent)
    for asked in model.asked:
        system = [m for m in asked.messages if isinstance(m, SystemMessage)]
        assert len(system) == 1
        assert "token-5" in system[0].content
        assert "token-9" not in system[0].content


@pytest.mark.parametrize(
    "info",
    [
        {"function_calling": False},
        {"function_calling": False, "json_output": False, "structured_output": False},
        {"json_output": False, "structured_output": False},
    ],
)
async def test_a_model_that_can_do_little_is_enough(info: dict[str, Any]) -> None:
    model = PlannedModel(**info)
    agent = CoagAgent("agent", model)
    for text in ("One.", "Two."):
        assert "FINAL" in (await run(agent, text)).messages[-1].to_text()
