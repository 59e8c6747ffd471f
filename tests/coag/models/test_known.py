"""What the kept table says of models, and where something else is said instead."""

from __future__ import annotations

import json
import logging
import runpy
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from autogen_core import Image
from autogen_core.models import UserMessage
from autogen_ext.models.anthropic import AnthropicChatCompletionClient
from autogen_ext.models.openai import OpenAIChatCompletionClient
from kits.fake_server import FakeServer, openai_text
from PIL import Image as Pictures

from coag.errors import ConfigurationError
from coag.models import open_model, window_of

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "coag/models/known_models.json"
HOSTS = {
    "deepseek": "api.deepseek.com",
    "mistral": "api.mistral.ai",
    "xai": "api.x.ai",
    "gemini": "generativelanguage.googleapis.com",
}
GEMINI = f"https://{HOSTS['gemini']}/v1beta/openai"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "k")


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(openai_text("A red square.")) as fake:
        yield fake


def claims(spec: str) -> tuple[bool, bool, bool]:
    """Vision, function calling, structured output."""
    info = open_model(spec).model_info
    return info["vision"], info["function_calling"], info["structured_output"]


def component(tmp_path: Path, kind: str = "openai.OpenAI", **config: Any) -> str:
    described = {
        "provider": f"autogen_ext.models.{kind}ChatCompletionClient",
        "component_type": "model",
        "config": {"api_key": "k", **config},
    }
    path = tmp_path / "model.json"
    path.write_text(json.dumps(described))
    return str(path)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("openai:gpt-6-sol", (True, True, True)),
        ("openai:gpt-5.4-mini", (True, True, True)),
        ("openai:gpt-audio-1.5", (False, True, False)),
        ("openai:gpt-5-chat", (True, False, True)),
        # Its server enforces schemas; AutoGen's client for Anthropic cannot send one.
        ("anthropic:claude-opus-5-5", (True, True, False)),
        (f"{GEMINI}#gemini-3.8-flash", (True, True, True)),
        (f"https://{HOSTS['deepseek']}#deepseek-v4-pro", (False, True, True)),
        (f"https://{HOSTS['mistral']}/v1#mistral-large-4", (True, True, True)),
        (f"https://{HOSTS['xai']}/v1#grok-4.7", (True, True, True)),
    ],
)
def test_models_of_this_year_are_opened_with_what_they_can_do(
    spec: str, expected: tuple[bool, bool, bool], caplog: pytest.LogCaptureFixture
) -> None:
    assert claims(spec) == expected
    assert caplog.records == []


@pytest.mark.parametrize(
    ("spec", "window"),
    [
        ("openai:gpt-6-sol", 922_000),
        ("openai:gpt-5-mini", 272_000),  # AutoGen's table counts what it writes, too
        ("anthropic:claude-opus-5-5", 1_000_000),
        (f"{GEMINI}#gemini-3.8-flash", 1_048_576),
        ("openai:gpt-6-sol?window=9000", 9_000),
    ],
)
def test_their_windows_are_known_unless_the_spec_names_one(spec: str, window: int) -> None:
    assert window_of(open_model(spec)) == window


def test_the_table_goes_before_what_autogen_says() -> None:
    assert not OpenAIChatCompletionClient(model="o1", api_key="k").model_info["vision"]
    assert claims("openai:o1") == (True, True, True)


def test_a_snapshot_without_a_row_is_as_its_model() -> None:
    assert claims("anthropic:claude-haiku-5-5-20261130") == claims("anthropic:claude-haiku-5-5")
    assert window_of(open_model("openai:gpt-5.4-mini-2026-12-24")) == 272_000


def test_another_servers_model_of_the_same_name_is_another_model() -> None:
    client = open_model("http://127.0.0.1:9/v1#gpt-6-sol")
    assert not client.model_info["vision"]
    assert window_of(client) is None


@pytest.mark.parametrize(
    "spec",
    [
        "openai:gpt-99-next",
        "anthropic:some-next-one",
        "anthropic:claude-opus-99",  # AutoGen takes it for Claude 2, which calls no tools
        f"{GEMINI}#gemini-99",
    ],
)
def test_a_model_that_nobody_knows_is_assumed_and_the_log_points_to_the_doctor(
    spec: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert claims(spec) == (False, True, not spec.startswith("anthropic"))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "`coag doctor`" in caplog.text
    assert spec.partition(":")[2].rpartition("#")[2] in caplog.text


@pytest.mark.parametrize(
    "spec", ["http://127.0.0.1:9/v1#tiny", "ollama:our-own", "openai:o1-mini", "ollama:llama3.2"]
)
def test_servers_of_your_own_and_models_that_autogen_knows_need_no_remark(
    spec: str, caplog: pytest.LogCaptureFixture
) -> None:
    open_model(spec)
    assert caplog.records == []


def test_a_claude_that_is_newer_than_autogen_calls_tools_and_sees() -> None:
    stock = AnthropicChatCompletionClient(model="claude-opus-5-5", api_key="k")
    assert not stock.model_info["function_calling"]
    assert claims("anthropic:claude-opus-5-5")[:2] == (True, True)
    assert (
        open_model("anthropic:claude-3-5-sonnet-20241022")
        .model_info["family"]
        .startswith("claude-3-5")
    )


def test_a_component_file_may_name_a_model_that_is_newer_than_autogen(tmp_path: Path) -> None:
    assert claims(component(tmp_path, model="gpt-6-sol")) == (True, True, True)
    claude = component(tmp_path, "anthropic.Anthropic", model="claude-opus-5-5")
    assert claims(claude) == (True, True, False)
    with pytest.raises(ConfigurationError, match="model_info is required"):
        open_model(component(tmp_path, model="gpt-99-next"))
    with pytest.raises(ConfigurationError, match="model_info is required"):
        open_model(component(tmp_path, model="gpt-6-sol", base_url="http://127.0.0.1:9/v1"))


def test_what_a_component_file_says_of_a_model_holds(tmp_path: Path) -> None:
    said = {
        "vision": False,
        "function_calling": False,
        "json_output": False,
        "structured_output": False,
        "family": "unknown",
    }
    client = open_model(component(tmp_path, model="gpt-6-sol", model_info=said))
    assert dict(client.model_info) == said


def test_a_client_of_a_known_model_comes_back_from_its_component() -> None:
    client = open_model("openai:gpt-6-sol")
    again = type(client).load_component(client.dump_component())
    assert again.model_info == client.model_info
    assert window_of(again) == 922_000


async def test_an_image_reaches_a_model_that_sees(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    client = open_model("openai:gpt-5.4-mini")
    picture = Image(Pictures.new("RGB", (8, 8), "red"))
    with pytest.warns(UserWarning, match="Resolved model mismatch"):
        await client.create([UserMessage(content=["What is it?", picture], source="user")])
    parts = server.seen[0]["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
    await client.close()


def test_the_table_names_its_source_its_notice_and_its_day() -> None:
    table = json.loads(TABLE.read_text())
    assert table["source"].startswith("litellm ")
    assert "MIT" in table["notice"]
    assert date.fromisoformat(table["date"]) > date(2026, 1, 1)
    rows = [row for models in table["models"].values() for row in models.values()]
    assert len(rows) > 100
    assert all([type(one) for one in row] == [int, bool, bool, bool] and row[0] > 0 for row in rows)


def test_the_table_is_made_of_chat_models_by_the_names_of_their_own_servers() -> None:
    made = runpy.run_path(str(ROOT / "requirements/model_table.py"))
    chat = {"mode": "chat", "max_input_tokens": 9.0, "supports_vision": True}
    known = {
        "gpt-a": {**chat, "litellm_provider": "openai"},
        "ft:gpt-a": {**chat, "litellm_provider": "openai"},
        "gpt-pictures": {**chat, "litellm_provider": "openai", "mode": "image_generation"},
        "gpt-unsized": {**chat, "litellm_provider": "openai", "max_input_tokens": None},
        "xai/grok-a": {**chat, "litellm_provider": "xai", "supports_function_calling": True},
    }
    assert made["rows"](known, "openai") == {"gpt-a": [9, True, False, False]}
    assert made["rows"](known, "xai") == {"grok-a": [9, True, True, False]}
    with pytest.raises(SystemExit, match="no models of 'anthropic'"):
        made["written"]("1", known)
