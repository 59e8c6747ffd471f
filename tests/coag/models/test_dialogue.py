"""Asking in the middle of a dialogue of AutoGen's messages."""

from __future__ import annotations

import json

from autogen_core import FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from PIL.Image import new as new_image
from pydantic import BaseModel

from coag.models import (
    AskSettings,
    ScriptedModel,
    StructuredModel,
    continued,
    merged_system,
    scripted_answers,
    sent_messages,
)
from coag.schema import OutputMode

CALL = FunctionCall(id="1", name="look", arguments="{}")
DIALOGUE: list[LLMMessage] = [
    SystemMessage(content="Be brief."),
    UserMessage(content="Look.", source="user"),
    AssistantMessage(content=[CALL], thought="I look.", source="a"),
    FunctionExecutionResultMessage(
        content=[FunctionExecutionResult(content="a door", name="look", call_id="1")]
    ),
]


class Seen(BaseModel):
    what: str


async def test_dialogue_is_sent_as_it_is_and_recorded_in_front_of_what_is_added() -> None:
    model = ScriptedModel(scripted_answers(["no", '{"what": "door"}']))
    answer = await StructuredModel(model).ask(
        (), Seen, dialogue=DIALOGUE, settings=AskSettings(extra={"temperature": 0})
    )
    assert (answer.value, answer.text) == (Seen(what="door"), '{"what": "door"}')
    first, second = model.requests
    assert list(first.messages) == DIALOGUE
    assert list(second.messages[:4]) == DIALOGUE
    assert second.extra["temperature"] == 0
    recorded = answer.calls[1].messages
    assert [one["role"] for one in recorded[:4]] == ["system", "user", "assistant", "tool"]
    assert [one["role"] for one in recorded[4:]] == ["user", "assistant", "user"]
    assert recorded[2] == {
        "role": "assistant",
        "content": "I look.",
        "source": "a",
        "tool_calls": [{"id": "1", "name": "look", "arguments": "{}"}],
    }
    brought = {"id": "1", "name": "look", "is_error": None, "characters": 6}
    assert recorded[3] == {"role": "tool", "content": "a door", "results": [brought]}


async def test_what_a_rung_adds_is_in_the_users_last_message() -> None:
    model = ScriptedModel(scripted_answers(['{"what": "door"}']))
    await StructuredModel(model).ask(
        (), Seen, dialogue=DIALOGUE[:2], settings=AskSettings(mode=OutputMode.PROMPT)
    )
    (sent,) = model.requests
    assert len(sent.messages) == 2
    assert sent.last_user_text.startswith("Look.\n\nAnswer with one JSON object")


def test_messages_continue_without_two_of_the_user_in_a_row() -> None:
    again = UserMessage(content="Again.", source="user")
    assert continued([], [again]) == [again]
    assert continued(DIALOGUE, []) == DIALOGUE
    assert continued(DIALOGUE, [again]) == [*DIALOGUE, again]
    assert [each.content for each in continued(DIALOGUE[:2], [again])][1] == "Look.\n\nAgain."
    parts = UserMessage(content=["See:"], source="user")
    (one,) = continued([parts], [again])
    assert one.content == ["See:", "Again."]


def test_system_messages_become_one_at_the_front() -> None:
    scattered: list[LLMMessage] = [*DIALOGUE[1:], SystemMessage(content="Now."), DIALOGUE[0]]
    merged = merged_system(scattered)
    assert merged[0] == SystemMessage(content="Now.\n\nBe brief.")
    assert merged[1:] == DIALOGUE[1:]
    assert merged_system(DIALOGUE[1:]) == DIALOGUE[1:]


def test_the_record_of_a_dialogue_distinguishes_speakers_thoughts_and_images() -> None:
    dark, light = (Image.from_pil(new_image("RGB", (2, 3), color)) for color in ("black", "white"))
    thinking = AssistantMessage(content="A door.", thought="Hm.", source="a")
    dialogues: list[list[LLMMessage]] = [
        [UserMessage(content="Look.", source="user")],
        [UserMessage(content="Look.", source="ann")],
        [UserMessage(content=["Look.", dark], source="user")],
        [UserMessage(content=["Look.", light], source="user")],
        [UserMessage(content=[dark, "Look."], source="user")],
        [thinking],
        [thinking.model_copy(update={"thought": None})],
    ]
    recorded = [json.dumps(sent_messages(dialogue)) for dialogue in dialogues]
    assert len(set(recorded)) == len(dialogues)
    assert "2x3 " in recorded[2]
