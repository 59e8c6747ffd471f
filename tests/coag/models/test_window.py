"""How large a model's window is, as far as it is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from autogen_ext.models.ollama import OllamaChatCompletionClient
from autogen_ext.models.openai import OpenAIChatCompletionClient
from kits.fake_server import FakeServer, openai_text

from coag import CoagAgent, ScriptedModel
from coag.errors import ConfigurationError
from coag.models import ModelSpec, asked_window, can_be_asked, open_model, window_of
from coag.models.providers import with_window


def hello(request: object) -> str:
    return "Hello."


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(openai_text("Hello.")) as fake:
        yield fake


def test_the_model_info_comes_first() -> None:
    other = ScriptedModel(hello)
    assert window_of(with_window(ScriptedModel(hello), 9_000)) == 9_000
    assert window_of(other) is None


def test_autogens_table_is_used_for_the_models_that_it_knows() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o", api_key="none")
    assert window_of(client) == 128_000
    assert not can_be_asked(client)


def test_ollama_cuts_at_its_own_default_unless_num_ctx_is_set() -> None:
    info: Any = {
        "vision": False,
        "function_calling": True,
        "json_output": True,
        "structured_output": True,
        "family": "unknown",
    }
    plain = OllamaChatCompletionClient(model="qwen", model_info=info)
    larger = OllamaChatCompletionClient(model="qwen", model_info=info, options={"num_ctx": 16_384})
    assert (window_of(plain), window_of(larger)) == (4_096, 16_384)


def test_a_spec_may_end_with_it(server: FakeServer) -> None:
    spec = f"{server.url}/v1#tiny?window=8192"
    assert window_of(open_model(spec)) == 8_192
    assert ModelSpec.parse(spec).public == spec
    assert ModelSpec.parse(spec).name == "tiny"
    with pytest.raises(ConfigurationError, match="window=0 is no size"):
        ModelSpec.parse("openai:gpt-5-mini?window=0")


async def test_a_server_gives_it_in_its_list_of_models(server: FakeServer) -> None:
    server.window = 4_321
    client = open_model(f"{server.url}/v1#tiny")
    assert can_be_asked(client)
    assert await asked_window(client) == 4_321
    await client.close()


async def test_a_server_that_gives_none_is_no_problem(server: FakeServer) -> None:
    client = open_model(f"{server.url}/v1#tiny")
    assert await asked_window(client) is None
    server.list_status = 500
    assert await asked_window(client) is None
    await client.close()


async def test_an_agent_asks_its_server_once_and_fits_its_prompts(server: FakeServer) -> None:
    server.window = 4_000
    client = open_model(f"{server.url}/v1#tiny")
    agent = CoagAgent("a", client, depth="compact")
    for _ in range(2):
        await agent.run(task="Hi.")
    limits = agent.context.working_memory.limits
    assert (limits.window, limits.prompt, limits.known) == (4_000, 3_000, True)
    assert server.listed == 1
    await client.close()
