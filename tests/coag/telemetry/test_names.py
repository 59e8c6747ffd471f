"""Our copy of OpenTelemetry's names is theirs; names of providers and models."""

from __future__ import annotations

from typing import Any

import pytest
from autogen_ext.models.openai import OpenAIChatCompletionClient
from opentelemetry.semconv.attributes.error_attributes import ERROR_TYPE

from coag.models import ScriptedModel
from coag.telemetry import names as _names
from coag.telemetry.attributes import model_name, provider_of

# No part of the package's stable names: it may be gone from a later version.
_INCUBATING = "opentelemetry.semconv._incubating"
gen_ai_attributes: Any = pytest.importorskip(f"{_INCUBATING}.attributes.gen_ai_attributes")
gen_ai_metrics: Any = pytest.importorskip(f"{_INCUBATING}.metrics.gen_ai_metrics")


def _texts(module: object) -> set[str]:
    return {value for value in vars(module).values() if isinstance(value, str)}


@pytest.mark.skipif(
    not hasattr(gen_ai_attributes, "GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS"),
    reason="conventions of before the names of the cache",
)
def test_names_that_are_not_ours_are_those_of_the_conventions() -> None:
    known = _texts(gen_ai_attributes) | _texts(gen_ai_metrics)
    used = _texts(_names)
    assert {name for name in used if name.startswith("gen_ai.")} <= known
    assert ERROR_TYPE in used


def test_operations_are_those_of_the_conventions() -> None:
    known = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    assert {_names.CHAT, _names.INVOKE_AGENT, _names.EXECUTE_TOOL} <= known


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
