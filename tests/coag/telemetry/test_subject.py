"""Whose models they are."""

from __future__ import annotations

import pytest
from autogen_ext.models.openai import OpenAIChatCompletionClient

from coag.models import ScriptedModel
from coag.telemetry import provider_of
from coag.telemetry.span_values import model_name


def test_a_provider_is_known_by_the_client() -> None:
    client = OpenAIChatCompletionClient(model="gpt-4o", api_key="none")
    assert provider_of(client=client) == "openai"
    assert provider_of(client=ScriptedModel(lambda _: {})) == "scripted"


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("openai:gpt-5", "openai"),
        ("ollama:llama3:8b", "ollama"),
        ("http://127.0.0.1:8080/v1#tiny", "_OTHER"),
        ("gpt-5", "_OTHER"),
        ("", "_OTHER"),
    ],
)
def test_a_provider_is_known_by_what_the_user_typed(model: str, provider: str) -> None:
    assert provider_of(model=model) == provider


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("scripted:sound", "scripted:sound"),
        ("https://me:secret@host.example/v1#tiny", "tiny"),
        ("https://me:secret@host.example/v1", "host.example"),
        ("https://[broken", "_OTHER"),
    ],
)
def test_a_models_name_is_sent_without_its_address(model: str, name: str) -> None:
    assert model_name(model) == name
