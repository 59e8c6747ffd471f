"""What the user is advised to check when a model cannot be reached."""

from __future__ import annotations

import pytest

from coag.cli.chat import what_to_check
from coag.errors import ModelCallError
from coag.models import ModelSpec


class AnsweredError(Exception):
    """What a provider's client raises: it names the status that the server answered with."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status_code = status


def hint(spec: str, status: int | None = None) -> str:
    error = ModelCallError(spec, "no answer")
    error.__cause__ = None if status is None else AnsweredError(status)
    return what_to_check(error, ModelSpec.parse(spec))


@pytest.mark.parametrize(
    ("spec", "variable", "usual"),
    [
        ("openai:big", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
        ("ollama:small", "OLLAMA_HOST", "http://127.0.0.1:11434"),
        ("anthropic:long", "ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
    ],
)
def test_a_providers_usual_address_is_named_unless_a_variable_names_another_one(
    spec: str, variable: str, usual: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)
    assert hint(spec) == f"Check that the server at {usual} runs and knows this model."
    monkeypatch.setenv(variable, "http://me:secret@gate.example:81/v2?key=secret")
    assert "the server at http://gate.example:81/v2 runs" in hint(spec)
    assert "secret" not in hint(spec)


def test_a_model_from_a_file_is_named_itself_as_its_address_is_not_known() -> None:
    assert hint("mine.json") == "Check that the server of mine.json runs and knows this model."


@pytest.mark.parametrize(
    ("spec", "status", "advice"),
    [
        ("openai:big", 401, "Check the key in OPENAI_API_KEY: the server at"),
        ("mine.json", 403, "Check the key: the server of mine.json refused it."),
        ("openai:big", 404, "Check the model's name 'big' and the URL"),
        ("ollama:small", 429, "Wait, or check the account"),
        ("ollama:small", 500, "it answered with status 500"),
    ],
)
def test_advice_goes_by_how_the_server_answered(spec: str, status: int, advice: str) -> None:
    assert advice in hint(spec, status)
