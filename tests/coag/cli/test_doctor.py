"""`coag doctor`, against model servers on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kits.fake_server import FakeServer, openai_text
from kits.model_servers import rewriting, sound, without

from coag.cli.doctor import _code  # pyright: ignore[reportPrivateUsage] - what it advises to write
from coag.doctor import Report, check_versions
from coag.doctor.findings import Recommendation
from coag.doctor.versions import Installation
from coag.schema import OutputMode, TokenUsage

Say = Callable[..., Any]
SMALL = ("--context", "400", "--max-tokens", "64")


@pytest.fixture
def clinic() -> Iterator[FakeServer]:
    with FakeServer(sound()) as fake:
        yield fake


def spec(server: FakeServer) -> str:
    return f"{server.url}/v1#tiny"


def test_a_sound_model_is_usable_and_the_code_is_printed(clinic: FakeServer, say: Say) -> None:
    result = say("doctor", spec(clinic), *SMALL)
    assert result.code == 0
    assert "The server enforces a JSON schema, against the prompt." in result.out
    assert "Usable in output mode 'json_schema'." in result.out
    assert 'CoagAgent("assistant", client, proposal="native")' in result.out
    assert '"multiple_system_messages": True,  # the client claims False' in result.out


def test_a_servers_faults_are_reported_with_advice(clinic: FakeServer, say: Say) -> None:
    clinic.behave = without(sound(), "response_format", "tools")
    result = say("doctor", spec(clinic), *SMALL)
    assert result.code == 0
    assert '→ Set "structured_output": False' in result.out
    assert 'proposal="json")' in result.out
    assert '"structured_output": False,  # the client claims True' in result.out
    assert '"vision": False,\n' in result.out


def test_an_unusable_model_exits_with_1(clinic: FakeServer, say: Say) -> None:
    clinic.behave = openai_text("")
    result = say("doctor", spec(clinic), *SMALL)
    assert result.code == 1
    assert "BAD" in result.out
    assert "Not usable." in result.out
    assert "schema" not in result.out


def test_the_report_on_a_model_may_be_json(clinic: FakeServer, say: Say) -> None:
    result = say("doctor", spec(clinic), "--json", *SMALL)
    report = json.loads(result.out)
    assert (result.code, result.out.count("\n")) == (0, 1)
    assert report["usable"] is True
    assert report["model"]["recommendation"]["proposal"] == "native"
    assert {finding["probe"] for finding in report["model"]["findings"]} >= {"schema", "context"}


def test_an_unusable_model_exits_with_1_in_json_too(clinic: FakeServer, say: Say) -> None:
    clinic.behave = openai_text("")
    result = say("doctor", spec(clinic), "--json", *SMALL)
    assert (result.code, json.loads(result.out)["usable"]) == (1, False)


def test_without_a_model_versions_are_checked(say: Say) -> None:
    result = say("doctor")
    assert result.code == 0
    assert "autogen-core" in result.out
    assert "(coag: >=0.7.5,<0.8)" in result.out
    assert "telemetry" in result.out


def test_the_report_on_versions_may_be_json(say: Say) -> None:
    result = say("doctor", "--json")
    report = json.loads(result.out)
    assert (result.code, report["usable"], report["model"]) == (0, True, None)
    assert report["versions"]["sound"] is True
    assert report["versions"]["packages"][0]["name"] == "python"


def test_what_a_server_says_cannot_steer_the_terminal(clinic: FakeServer, say: Say) -> None:
    def hostile(message: dict[str, Any]) -> dict[str, Any]:
        return {"content": "\x1b[2Jfoo[bold]"} if message["content"] else message

    clinic.behave = rewriting(sound(), hostile)
    result = say("doctor", spec(clinic), *SMALL)
    assert "\x1b" not in result.out
    assert "foo[bold]" in result.out


def test_a_bad_spec_is_a_users_error(say: Say) -> None:
    result = say("doctor", "gpt-5")
    assert result.code == 2
    assert "openai:NAME" in result.err


def test_a_missing_key_names_its_variable(say: Say) -> None:
    result = say("doctor", "openai:gpt-5")
    assert (result.code, result.out) == (2, "")
    assert "OPENAI_API_KEY" in result.err


def test_a_context_that_is_too_small_is_a_users_error(say: Say) -> None:
    result = say("doctor", "http://127.0.0.1:9/v1#tiny", "--context", "10")
    assert result.code == 2
    assert "--context" in result.err


@pytest.fixture
def silent(tmp_path: Path) -> str:
    """The spec of a model that has an answer to nothing, from a component file."""
    component: dict[str, Any] = {
        "provider": "autogen_ext.models.replay.ReplayChatCompletionClient",
        "component_type": "model",
        "config": {"chat_completions": []},
    }
    (tmp_path / "silent.json").write_text(json.dumps(component))
    return "silent.json"


def test_a_model_of_a_component_file_is_examined_too(silent: str, say: Say) -> None:
    result = say("doctor", silent, *SMALL)
    assert result.code == 1
    assert result.out.startswith("silent.json\n")
    assert result.out.endswith("Not usable. Fix what is BAD above, then ask again.\n")
    report = json.loads(say("doctor", silent, "--json", *SMALL).out)
    assert report["usable"] is False
    assert "bad" in {finding["grade"] for finding in report["model"]["findings"]}


def test_where_a_client_claims_what_is_so_no_model_info_is_advised() -> None:
    sound = {"vision": False, "json_output": True}
    advice = Recommendation(
        rung=OutputMode.JSON_SCHEMA,
        proposal="native",
        parallel=True,
        model_info=sound,
        context_tokens=0,
    )
    same = Report(
        model="m",
        usable=True,
        findings=(),
        claimed=sound,
        recommendation=advice,
        usage=TokenUsage(),
    )
    assert _code(same) == ['agent = CoagAgent("assistant", client, proposal="native")']
    other = same.model_copy(update={"claimed": {"vision": True, "json_output": True}})
    assert _code(other)[1:3] == [
        '    "vision": False,  # the client claims True',
        '    "json_output": True,',
    ]


@pytest.fixture
def old_openai(monkeypatch: pytest.MonkeyPatch) -> str:
    """An installation in which one package is older than coag asks for; gives its bounds."""
    here = Installation.here()
    facts = replace(here, versions={**here.versions, "openai": "0.1"})
    report = check_versions(facts)
    monkeypatch.setattr("coag.cli.doctor.check_versions", lambda: report)
    return next(check.bounds for check in report.packages if check.name == "openai")


def test_what_is_installed_in_a_wrong_version_is_bad_and_says_what_goes_wrong(
    old_openai: str, say: Say
) -> None:
    result = say("doctor")
    assert result.code == 1
    assert re.search(r"^BAD +openai", result.out, re.M)
    assert f"0.1 (coag[openai]: {old_openai})" in result.out
    assert "→ AutoGen's OpenAI client may fail to import or to ask" in result.out
    assert result.out.endswith("Install what is BAD above in a version that works.\n")


def test_wrong_versions_are_reported_before_a_model_is_examined(
    old_openai: str, silent: str, say: Say
) -> None:
    out = say("doctor", silent, *SMALL).out
    assert re.match(r"BAD +openai", out)
    assert old_openai in out.splitlines()[0]
    assert "autogen-core" not in out
