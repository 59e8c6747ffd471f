"""Keeping secrets out of logs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.schema import (
    ENTRY,
    Entry,
    Note,
    Phase,
    Receipt,
    ReceiptStatus,
    RetrievalOutcome,
    SteppingClock,
)
from coag.tracing import REDACTED, Redactor

NOW = SteppingClock().now()
KEY = "sk-" + "a1B2" * 8
ENTRIES = (
    Entry(seq=0, body=RetrievalOutcome(cycle=1, at=NOW, query="q")),
    Entry(
        seq=1,
        body=Receipt(
            intent_id="i", at=NOW, cycle=1, status=ReceiptStatus.CANCELLED, content="none"
        ),
    ),
    Entry(seq=2, body=Note(at=NOW, cycle=1, about="x", text="y")),
)


def cleaned(value: Any, *secrets: str) -> Any:
    return json.loads(Redactor(secrets).clean(json.dumps(value, ensure_ascii=False)))


@given(
    secret=st.text(st.characters(exclude_categories=["Cs"]), min_size=8).filter(
        lambda text: len(text.strip()) >= 8 and len(text.splitlines()) == 1
    ),
    around=st.text(alphabet='ab "\\\n{', max_size=6),
)
def test_a_known_secret_is_gone_wherever_it_stands(secret: str, around: str) -> None:
    # No word of the format, which would be left standing alone.
    secret = "7" + secret.strip()
    value = {"text": around + secret + around, "list": [{"deep": secret}], secret: 1}
    text = Redactor([secret]).clean(json.dumps(value, ensure_ascii=False))
    for string in _strings(json.loads(text)):
        assert secret not in string or secret in REDACTED


def test_a_secret_within_written_json_is_gone() -> None:
    secret = 'quo"ted\\secret'
    assert cleaned({"raw": json.dumps({"x": secret})}, secret) == cleaned(
        {"raw": json.dumps({"x": REDACTED})}
    )


def test_every_line_of_a_secret_of_several_lines_is_gone() -> None:
    secret = "-----BEGIN-----\nMIIEowIBAAKC\n-----END-----"
    assert cleaned(["MIIEowIBAAKC", "no"], secret) == [REDACTED, "no"]


@pytest.mark.parametrize(
    "name",
    ["OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MY_SECRETS", "token"],
)
def test_variables_named_like_secrets_are_secrets(name: str) -> None:
    redactor = Redactor.from_environment({name: "abcdefgh-1"})
    assert redactor.clean('"it is abcdefgh-1"') == f'"it is {REDACTED}"'


@pytest.mark.parametrize(
    ("name", "value"),
    [("PATH", "/some/long/path"), ("MY_API_KEY", "short"), ("TOKENIZERS", "x" * 9)],
)
def test_other_variables_and_short_values_are_left_alone(name: str, value: str) -> None:
    redactor = Redactor.from_environment({name: value})
    assert redactor.clean(f'"it is {value}"') == f'"it is {value}"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"key {KEY}.", f"key {REDACTED}."),
        (f"line\n{KEY}", f"line\n{REDACTED}"),
        (json.dumps(f"line\n{KEY}"), json.dumps(f"line\n{REDACTED}")),
        ("Authorization: Bearer abcdefghijklmnop123", f"Authorization: Bearer {REDACTED}"),
        ("bearer abcdefghijklmnop123==", f"bearer {REDACTED}"),
        ("ghp_" + "a1" * 18, REDACTED),
        ("AKIA" + "A1B2" * 4, REDACTED),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM", REDACTED),
        ('{"api_key": "abc", "x": 1}', f'{{"api_key": "{REDACTED}", "x": 1}}'),
        ('{"OPENAI_API_KEY":"abc"}', f'{{"OPENAI_API_KEY":"{REDACTED}"}}'),
    ],
)
def test_what_looks_like_a_key_is_gone(text: str, expected: str) -> None:
    assert cleaned({"text": text}) == {"text": expected}


@pytest.mark.parametrize(
    "text",
    [
        "task-oriented-and-very-long-words-4ever",
        "sk-learn-pipeline-component",
        "The bearer of good news is here.",
        "The password is wrong, authorization failed.",
        "prompt_tokens",
    ],
)
def test_ordinary_words_are_left_alone(text: str) -> None:
    assert cleaned({"text": text}) == {"text": text}


@pytest.mark.parametrize(
    "field", ["api_key", "apiKey", "password", "client_secret", "Authorization"]
)
def test_a_field_named_like_a_secret_is_blacked_out(field: str) -> None:
    assert cleaned({field: "x", "n": {field: 5}}) == {field: REDACTED, "n": {field: 5}}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.body.record)
@pytest.mark.parametrize("word", [*Phase, "intent_id", "cancelled", "working_memory"])
def test_a_trace_stays_readable_even_if_a_password_is_one_of_its_words(
    entry: Entry, word: str
) -> None:
    line = Redactor([word]).clean(entry.model_dump_json())
    assert ENTRY.validate_json(line) == entry


def test_a_text_without_secrets_is_given_back_as_it_is() -> None:
    text = '{ "a":   "secretary" }'
    assert Redactor(["something-else"]).clean(text) is text


def test_an_indented_text_stays_indented() -> None:
    text = json.dumps({"password": "x"}, indent=2)
    expected = json.dumps({"password": REDACTED}, indent=2)
    assert Redactor().clean(text, indent=2) == expected


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [string for item in value for string in _strings(item)]  # pyright: ignore[reportUnknownVariableType] - JSON
    if isinstance(value, dict):
        return [string for pair in value.items() for item in pair for string in _strings(item)]  # pyright: ignore[reportUnknownVariableType] - JSON
    return []
