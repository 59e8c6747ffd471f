"""`coag doctor`, against model servers on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kits.fake_server import FakeServer, openai_text
from kits.model_servers import rewriting, sound, without

Say = Callable[..., Any]
SMALL = ("--context", "400", "--max-tokens", "64")


@pytest.fixture
def clinic() -> Iterator[FakeServer]:
    fake = FakeServer(sound())
    fake.start()
    yield fake
    fake.stop()


def spec(server: FakeServer) -> str:
    return f"{server.url}/v1#tiny"


def test_a_sound_model_is_usable_and_what_to_write_is_told(clinic: FakeServer, say: Say) -> None:
    said = say("doctor", spec(clinic), *SMALL)
    assert said.code == 0
    assert "The server enforces a JSON schema, against the prompt." in said.out
    assert "Usable on the rung 'json_schema'." in said.out
    assert 'CoagAgent("assistant", client, proposal="native")' in said.out
    assert '"multiple_system_messages": True,  # the client claims False' in said.out


def test_a_servers_faults_are_told_with_advice(clinic: FakeServer, say: Say) -> None:
    clinic.behave = without(sound(), "response_format", "tools")
    said = say("doctor", spec(clinic), *SMALL)
    assert said.code == 0
    assert '→ Set "structured_output": False' in said.out
    assert 'proposal="json")' in said.out
    assert '"structured_output": False,  # the client claims True' in said.out
    assert '"vision": False,\n' in said.out


def test_an_unusable_model_exits_with_1(clinic: FakeServer, say: Say) -> None:
    clinic.behave = openai_text("")
    said = say("doctor", spec(clinic), *SMALL)
    assert said.code == 1
    assert "BAD" in said.out
    assert "Not usable." in said.out
    assert "schema" not in said.out


def test_a_model_may_be_told_in_json(clinic: FakeServer, say: Say) -> None:
    said = say("doctor", spec(clinic), "--json", *SMALL)
    told = json.loads(said.out)
    assert (said.code, said.out.count("\n")) == (0, 1)
    assert told["usable"] is True
    assert told["model"]["recommendation"]["proposal"] == "native"
    assert {finding["probe"] for finding in told["model"]["findings"]} >= {"schema", "context"}


def test_an_unusable_model_exits_with_1_in_json_too(clinic: FakeServer, say: Say) -> None:
    clinic.behave = openai_text("")
    said = say("doctor", spec(clinic), "--json", *SMALL)
    assert (said.code, json.loads(said.out)["usable"]) == (1, False)


def test_without_a_model_versions_are_told(say: Say) -> None:
    said = say("doctor")
    assert said.code == 0
    assert "autogen-core" in said.out
    assert "(coag: >=0.7.5,<0.8)" in said.out
    assert "telemetry" in said.out


def test_versions_may_be_told_in_json(say: Say) -> None:
    said = say("doctor", "--json")
    told = json.loads(said.out)
    assert (said.code, told["usable"], told["model"]) == (0, True, None)
    assert told["versions"]["sound"] is True
    assert told["versions"]["packages"][0]["name"] == "python"


def test_what_a_server_says_cannot_steer_the_terminal(clinic: FakeServer, say: Say) -> None:
    def hostile(message: dict[str, Any]) -> dict[str, Any]:
        return {"content": "\x1b[2Jfoo[bold]"} if message["content"] else message

    clinic.behave = rewriting(sound(), hostile)
    said = say("doctor", spec(clinic), *SMALL)
    assert "\x1b" not in said.out
    assert "foo[bold]" in said.out


def test_a_bad_spec_is_a_users_error(say: Say) -> None:
    said = say("doctor", "gpt-5")
    assert said.code == 2
    assert "openai:NAME" in said.err


def test_a_missing_key_names_its_variable(say: Say) -> None:
    said = say("doctor", "openai:gpt-5")
    assert (said.code, said.out) == (2, "")
    assert "OPENAI_API_KEY" in said.err


def test_a_context_that_is_too_small_is_a_users_error(say: Say) -> None:
    said = say("doctor", "http://127.0.0.1:9/v1#tiny", "--context", "10")
    assert said.code == 2
    assert "--context" in said.err
