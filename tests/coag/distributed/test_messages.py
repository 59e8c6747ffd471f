from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.messages import (
    HandoffMessage,
    MultiModalMessage,
    SelectorEvent,
    StopMessage,
    StructuredMessage,
    TextMessage,
    ThoughtEvent,
    ToolCallExecutionEvent,
    ToolCallSummaryMessage,
)
from autogen_core import FunctionCall, Image
from autogen_core.models import FunctionExecutionResult, RequestUsage, UserMessage
from PIL.Image import new as new_image
from pydantic import BaseModel

from coag.distributed.protocol import (
    BeginTurn,
    CoagRequest,
    Message,
    MessageCodec,
    body_of,
    load_message_type,
    read_request,
)
from coag.errors import ConfigurationError
from coag.schema import Candidate

CALL = FunctionCall(id="1", name="add", arguments='{"a": "\\"\U0001f600"}')
RESULT = FunctionExecutionResult(content="3", name="add", call_id="1", is_error=False)


class Weather(BaseModel):
    city: str
    degrees: float | None = None


STOCK: list[Message] = [
    TextMessage(
        content="été \ud800 \u2028 \x00",
        source="a",
        metadata={"k": "v"},
        models_usage=RequestUsage(prompt_tokens=1, completion_tokens=2),
    ),
    MultiModalMessage(content=["look", Image(new_image("RGB", (3, 2), "red"))], source="a"),
    HandoffMessage(
        content="yours", source="a", target="b", context=[UserMessage(content="so", source="user")]
    ),
    ToolCallSummaryMessage(content="3", source="a", tool_calls=[CALL], results=[RESULT]),
    ToolCallExecutionEvent(content=[RESULT], source="a"),
    SelectorEvent(content="b", source="a"),
]


def over_the_wire(message: dict[str, Any]) -> dict[str, Any]:
    """A dumped message as it arrives."""
    body = body_of(BeginTurn(turn="t", instance="i", messages=(message,)))
    sent = CoagRequest(id="1", reply_to="m", body=body).model_dump_json()
    arrived = read_request(CoagRequest.model_validate_json(sent))
    assert isinstance(arrived, BeginTurn)
    return arrived.messages[0]


@pytest.mark.parametrize("message", STOCK, ids=lambda message: type(message).__name__)
def test_a_stock_message_arrives_as_it_was_sent(message: Message) -> None:
    codec = MessageCodec()
    arrived = codec.load(over_the_wire(codec.dump(message)))
    assert type(arrived) is type(message)
    assert arrived.dump() == message.dump()


def test_a_structured_message_arrives_with_its_content_typed() -> None:
    codec = MessageCodec([StructuredMessage[Weather]])
    message = StructuredMessage[Weather](
        content=Weather(city="Rome"), source="a", format_string="{city}"
    )
    arrived = codec.load(over_the_wire(codec.dump(message)))
    assert isinstance(arrived, StructuredMessage)
    assert arrived == message
    assert arrived.to_text() == "Rome"


def test_a_type_that_is_not_known_is_named_when_sent_and_when_received() -> None:
    message = StructuredMessage[Weather](content=Weather(city="Rome"), source="a")
    with pytest.raises(ConfigurationError, match=r"'StructuredMessage\[Weather\]' are not known"):
        MessageCodec().dump(message)
    dumped = MessageCodec([StructuredMessage[Weather]]).dump(message)
    with pytest.raises(ConfigurationError, match="message_types="):
        MessageCodec().load(dumped)


def test_an_event_is_not_taken_for_a_chat_message() -> None:
    codec = MessageCodec()
    with pytest.raises(ValueError, match="ThoughtEvent is an event"):
        codec.load_chat(codec.dump(ThoughtEvent(content="hm", source="a")))


def test_a_type_is_named_by_its_module_or_by_that_of_its_content() -> None:
    named = load_message_type("autogen_agentchat.messages:StopMessage")
    assert named is StopMessage
    assert load_message_type("coag.schema:Candidate") is StructuredMessage[Candidate]
    for wrong in ("nowhere:X", "coag.schema:Nothing", "coag.schema:PHASES", "nonsense", ":"):
        with pytest.raises(ConfigurationError, match=wrong):
            load_message_type(wrong)
