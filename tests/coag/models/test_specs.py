"""Naming models in one word."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from autogen_core.models import ChatCompletionClient

from coag.errors import ConfigurationError, MissingCredentialError, UnknownNameError
from coag.models import (
    ModelSpec,
    SchemeFactory,
    ScriptedModel,
    has_own_limit,
    limit_arguments,
    limit_name_of,
    model_name_of,
    open_model,
)

LOCAL = "http://127.0.0.1:9/v1#tiny"
VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST")


def scripted(name: str) -> ScriptedModel:
    return ScriptedModel(lambda _: "", name=name)


OWN: Mapping[str, SchemeFactory] = {"scripted": scripted}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def base_url_of(client: ChatCompletionClient) -> str:
    return str(client.dump_component().config["base_url"])


def component(**config: Any) -> dict[str, Any]:
    provider = "autogen_ext.models.openai.OpenAIChatCompletionClient"
    return {"provider": provider, "component_type": "model", "config": config}


def written(folder: Path, content: object) -> str:
    path = folder / "model.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


@pytest.mark.parametrize(
    ("name", "limit_name"),
    [
        ("gpt-4o", "max_completion_tokens"),
        ("gpt-99-next", "max_completion_tokens"),
        ("claude-3-haiku-20240307", "max_completion_tokens"),
    ],
)
def test_openai_model_is_opened_with_the_key_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, name: str, limit_name: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abc")
    spec = ModelSpec.parse(f"openai:{name}")
    client = spec.open()
    assert model_name_of(client) == name
    assert spec.limit_name == limit_name
    assert limit_name_of(client) == (limit_name if name.startswith("gpt") else "max_tokens")
    assert base_url_of(client) == "https://api.openai.com/v1"


def test_server_is_named_by_url_and_needs_no_key() -> None:
    spec = ModelSpec.parse(LOCAL)
    client = spec.open()
    assert (spec.scheme, spec.name, spec.public) == ("url", "tiny", LOCAL)
    assert model_name_of(client) == "tiny"
    assert base_url_of(client) == "http://127.0.0.1:9/v1"
    assert client.model_info["structured_output"]
    assert spec.limit_name == limit_name_of(client) == "max_tokens"


def test_ollama_model_is_opened_known_or_not() -> None:
    for name in ("llama3.2", "our-own-model", "qwen2.5:0.5b"):
        spec = ModelSpec.parse(f"ollama:{name}")
        client = spec.open()
        assert model_name_of(client) == name
        assert spec.limit_name == limit_name_of(client) == "options.num_predict"


def test_limit_joins_the_options_that_the_client_was_made_with(tmp_path: Path) -> None:
    described = {
        "provider": "autogen_ext.models.ollama.OllamaChatCompletionClient",
        "component_type": "model",
        "config": {"model": "llama3.2", "options": {"seed": 7, "num_predict": 9}},
    }
    client = open_model(written(tmp_path, described))
    assert limit_arguments(client, limit_name_of(client), 50) == {
        "options": {"seed": 7, "num_predict": 50}
    }
    assert has_own_limit(client)
    assert limit_arguments(client, None, 50) == {}
    assert limit_arguments(client, "max_tokens", None) == {}


@pytest.mark.parametrize("name", ["claude-3-5-sonnet-20241022", "some-next-one"])
def test_anthropic_model_is_opened(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    client = open_model(f"anthropic:{name}")
    assert model_name_of(client) == name
    assert limit_name_of(client) == "max_tokens"
    assert not client.model_info["structured_output"]


@pytest.mark.parametrize(("options", "limited"), [({}, False), ({"max_tokens": 99}, True)])
def test_a_client_may_be_made_with_a_limit_of_its_own(
    options: dict[str, object], limited: bool, tmp_path: Path
) -> None:
    config = {"model": "m", "base_url": "http://127.0.0.1:1/v1", "api_key": "k", **options}
    info = {"vision": False, "function_calling": True, "json_output": True, "family": "unknown"}
    component = {
        "provider": "autogen_ext.models.openai.OpenAIChatCompletionClient",
        "component_type": "model",
        "config": {**config, "model_info": {**info, "structured_output": True}},
    }
    assert has_own_limit(open_model(written(tmp_path, component))) == limited


def test_own_schemes_are_given_explicitly() -> None:
    client = open_model("scripted:sound", schemes=OWN)
    assert model_name_of(client) == "sound"
    assert limit_name_of(client) == "max_tokens"
    with pytest.raises(UnknownNameError):
        open_model("scripted:sound")


@pytest.mark.parametrize("text", ["mystery:model", "gpt-4o", "", "ftp://host/v1#m", "http://#m"])
def test_unknown_form_lists_all_forms(text: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        ModelSpec.parse(text, schemes=OWN)
    for form in ("openai:NAME", "ollama:NAME", "URL#NAME", "FILE.json", "scripted:NAME"):
        assert form in str(caught.value)


@pytest.mark.parametrize("text", ["http://[#m", "http://h:99999#m", "http://me:pass/word@h#m"])
def test_an_address_that_cannot_be_read_is_reported_without_what_it_holds(text: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read") as caught:
        open_model(text)
    assert "pass" not in str(caught.value)


@pytest.mark.parametrize("text", ["openai:", "http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1#"])
def test_a_missing_name_is_reported(text: str) -> None:
    with pytest.raises(ConfigurationError, match="NAME"):
        ModelSpec.parse(text)


@pytest.mark.parametrize(
    ("text", "variable"),
    [("openai:gpt-4o", "OPENAI_API_KEY"), ("anthropic:claude", "ANTHROPIC_API_KEY")],
)
def test_missing_key_names_its_variable(text: str, variable: str) -> None:
    with pytest.raises(MissingCredentialError, match=variable):
        open_model(text)


@pytest.mark.parametrize(
    ("text", "module", "extra"),
    [
        ("openai:gpt-4o", "autogen_ext.models.openai", "openai"),
        (LOCAL, "autogen_ext.models.openai", "openai"),
        ("ollama:llama3.2", "autogen_ext.models.ollama", "ollama"),
        ("anthropic:claude", "autogen_ext.models.anthropic", "anthropic"),
    ],
)
def test_missing_package_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, text: str, module: str, extra: str
) -> None:
    # Without a key too: where both are missing, the package is named first.
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError, match=rf"pip install 'coag\[{extra}\]'"):
        open_model(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no valid JSON"),
        ("[1]", "must be an object"),
        ({"config": {}}, "must be an object"),
        ({"provider": "no.such.Client", "component_type": "model", "config": {}}, "no.such"),
        ({"provider": "json.dumps", "component_type": "model", "config": {}}, "no chat completion"),
        (component(api_key="sk-very-secret"), "wrong at: model"),
    ],
)
def test_unusable_component_file_says_what_is_wrong(
    tmp_path: Path, content: object, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=r"model\.json") as caught:
        open_model(written(tmp_path, content))
    assert message in str(caught.value)
    assert "very-secret" not in str(caught.value)


def test_missing_and_unreadable_files_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such component file"):
        open_model(str(tmp_path / "none.json"))
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be read"):
        open_model(str(tmp_path / "folder.json"))


def test_spec_shows_no_secrets_of_a_url() -> None:
    spec = ModelSpec.parse("https://me:pass@host:1/v1?key=abc#m")
    assert spec.public == "https://host:1/v1#m"
    assert "pass" not in repr(spec)
    assert "abc" not in repr(spec)
    assert "pass@" in base_url_of(spec.open())
