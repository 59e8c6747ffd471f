from __future__ import annotations

import pytest
from autogen_ext.models.replay import ReplayChatCompletionClient
from kits.mcp_server import PIXEL

from coag.compat.mcp import sampler
from coag.errors import CoagError


async def test_a_request_for_sampling_is_answered_by_the_model() -> None:
    client = ReplayChatCompletionClient(["42"])
    request = {
        "systemPrompt": "Be short.",
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "6 times 7?"}},
            {"role": "assistant", "content": {"type": "text", "text": "Hm."}},
            {"role": "user", "content": [{"type": "image", "data": PIXEL}]},
        ],
    }
    answer = await sampler(client)(request)
    assert answer["content"] == {"type": "text", "text": "42"}
    (asked,) = client.create_calls
    kinds = [message.type for message in asked["messages"]]
    assert kinds == ["SystemMessage", "UserMessage", "AssistantMessage", "UserMessage"]


async def test_content_that_a_model_cannot_be_shown_is_named() -> None:
    request = {"messages": [{"role": "user", "content": {"type": "audio", "data": ""}}]}
    with pytest.raises(CoagError, match="'audio'"):
        await sampler(ReplayChatCompletionClient(["x"]))(request)
