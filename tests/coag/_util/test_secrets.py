"""Keeping secrets out of logs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag._util.secrets import REDACTED, is_secret_setting
from coag.schema import (
    ENTRY,
    Entry,
    Note,
    Phase,
    Receipt,
    ReceiptStatus,
    Redactor,
    RetrievalOutcome,
    SteppingClock,
)

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


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKC\nAQEA7\n-----END RSA PRIVATE KEY-----"


def cleaned(value: Any, *secrets: str) -> Any:
    return json.loads(Redactor(secrets).clean(json.dumps(value, ensure_ascii=False)))


@given(
    secret=st.text(st.characters(exclude_categories=["Cs"]), min_size=8).filter(
        lambda text: len(text.strip()) >= 8 and len(text.splitlines()) == 1
    ),
    around=st.text(alphabet='ab "\\\n{', max_size=6),
)
def test_a_known_secret_is_removed_wherever_it_is(secret: str, around: str) -> None:
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
    [
        *("OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MY_SECRETS"),
        *("token", "OPENAI_KEY", "GITHUB_PAT", "SSH_PASSPHRASE", "DB_CREDENTIALS", "DATABASE_URL"),
        *("TEST_DATABASE_URL", "DB_PWD", "DB_PASS", "PASS"),
    ],
)
def test_variables_named_like_secrets_are_secrets(name: str) -> None:
    redactor = Redactor.from_environment({name: "abcdefgh-1"})
    assert redactor.clean('"it is abcdefgh-1"') == f'"it is {REDACTED}"'


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/some/long/path"),
        ("PWD", "/some/long/path"),
        ("KEYBOARD", "x" * 9),
        ("MY_API_KEY", "short"),
        ("TOKENIZERS", "x" * 9),
        ("COMPASS", "x" * 9),
    ],
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
        ("AIza" + "a1B2-" * 7, REDACTED),
        ("hf_" + "a1" * 17, REDACTED),
        (f"line\\nhf_{'a1' * 17}", f"line\\n{REDACTED}"),
        ("glpat-" + "a1" * 10, REDACTED),
        ("npm_" + "a1" * 18, REDACTED),
        ("gsk_" + "a1" * 18, REDACTED),
        ("xai-" + "a1" * 18, REDACTED),
        *((f"is {start}{'a1' * 18}.", f"is {REDACTED}.") for start in ("tvly-", "pplx-", "r8_")),
        *((start + "a1" * 18, REDACTED) for start in ("nvapi-", "ya29.")),
        (f"/c?sv=1&sig={'aB%3' * 5}&x=1", f"/c?sv=1&sig={REDACTED}&x=1"),
        (f"X-Amz-Signature={'a1' * 32}", f"X-Amz-Signature={REDACTED}"),
        ("Authorization: Token a1b2c3d4e5", f"Authorization: Token {REDACTED}"),
        ("psql --password hunter22 db", f"psql --password {REDACTED} db"),
        ("x --client-secret 'hunter22' y", f"x --client-secret '{REDACTED}' y"),
        ("x --api-key hunter22 --token 'abc'", f"x --api-key {REDACTED} --token 'abc'"),
        ("a.eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM.b", f"a.{REDACTED}.b"),
        ("wrong API key: sk-short-one", f"wrong API key: {REDACTED}"),
        ("UID=sa;PWD=hunter22;", f"UID=sa;PWD={REDACTED};"),
        ("github_pat_" + "a1_" * 20, REDACTED),
        ("sk" + "_live_" + "a1" * 12, REDACTED),
        ("Authorization: Basic dXNlcjpodW50ZXIy", f"Authorization: Basic {REDACTED}"),
        ("Basic YWxhZGRpbjpvcGVuIQ==.", f"Basic {REDACTED}."),
        ("postgres://ann:hunter2@db/x", f"postgres://ann:{REDACTED}@db/x"),
        ("at redis://:p@ss@db.", f"at redis://:{REDACTED}@db."),
        ("mysql -u ann --password=hunter2 db", f"mysql -u ann --password={REDACTED} db"),
        ("PGPASSWORD=hunter2 psql", f"PGPASSWORD={REDACTED} psql"),
        ("Server=x;Password=hunter2;Port=1", f"Server=x;Password={REDACTED};Port=1"),
        ("password = 'two words'", f"password = '{REDACTED}'"),
        ("?api_key=abc&x=1", f"?api_key={REDACTED}&x=1"),
        (f"before\n{PEM}\nafter", "before\n" + f"{REDACTED}\n" * 4 + "after"),
        ("{'password': 'abc', 'x': 1}", f"{{'password': '{REDACTED}', 'x': 1}}"),
        ('{"password": "cut o', f'{{"password": "{REDACTED}'),
        ('{"password": "with \\\\"}', f'{{"password": "{REDACTED}"}}'),
        ('{"api_key": "abc", "x": 1}', f'{{"api_key": "{REDACTED}", "x": 1}}'),
        ('{"OPENAI_API_KEY":"abc"}', f'{{"OPENAI_API_KEY":"{REDACTED}"}}'),
        ("the password: hunter2 and", f"the password: {REDACTED} and"),
        ("db:\n  password: correcthorse\n  port: 80", f"db:\n  password: {REDACTED}\n  port: 80"),
        ("X-Api-Key: 'abc'", f"X-Api-Key: '{REDACTED}'"),
        ("api_key: abc123", f"api_key: {REDACTED}"),
        (
            "{'password': ['a', 'b'], 'x': ['c']}",
            f"{{'password': ['{REDACTED}', '{REDACTED}'], 'x': ['c']}}",
        ),
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
        "Basic understanding of things",
        '{"token": 5, "max_tokens": 100, "secret": false, "password": "", "monkey": "see"}',
        "max_tokens=100, tokens=5, monkey=see, if token == 5:",
        "see http://host:8080/path and mail ann@host",
        "token: 42, next token: banana",
        "The password: ask your administrator for it.",
        "max_tokens: 100000, prompt_tokens: 123456",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b by ann",
        "run 550e8400-e29b-41d4-a716-446655440000 ended",
        "the token budget is 4096 of 8192, the password policy wants 12 letters",
        "HOME=/srv/ann\nPWD=/srv/ann/key-1\nOLDPWD=/srv\nSHELL=/bin/bash",
        "PWD: /srv/ann/work1",
        '{"PWD": "/srv/agents/1", "HOME": "/srv/ann"}',
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "secretary: Ann, keyboard: qwerty-105, tokenizer: cl100k_base, monkey=1",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "eyJhbGciOiJIUzI1NiJ9",
        "Give --token NAME or --key FILE; sig=3, the signature=none.",
    ],
)
def test_ordinary_words_are_left_alone(text: str) -> None:
    assert cleaned({"text": text}) == {"text": text}


@pytest.mark.parametrize(
    "field",
    [
        *("api_key", "apiKey", "password", "client_secret", "Authorization", "clientSecret"),
        *("token", "refresh_token", "accessToken", "private_key", "aws_secret_access_key"),
        *("DB_PASSPHRASE", "x-api-key", "credentials"),
    ],
)
def test_a_field_named_like_a_secret_is_blacked_out(field: str) -> None:
    assert cleaned({field: "x", "n": {field: 5}}) == {field: REDACTED, "n": {field: 5}}


def test_no_text_of_a_list_in_a_field_named_like_a_secret_stays() -> None:
    fields = {"password": ["one", ["two"], 5, {"type": "string"}]}
    assert cleaned(fields) == {"password": [REDACTED, [REDACTED], 5, {"type": "string"}]}


@pytest.mark.parametrize(
    "field", ["prompt_tokens", "max_tokens", "cached_tokens", "key", "tokenizer", "monkey", "path"]
)
def test_a_field_with_another_name_stays(field: str) -> None:
    assert cleaned({field: "x", "n": {field: 5}}) == {field: "x", "n": {field: 5}}


@pytest.mark.parametrize("field", ["token", "password", "api_key"])
def test_a_count_stays_whatever_its_field_is_called(field: str) -> None:
    assert cleaned({field: 5}) == {field: 5}


def test_no_field_of_the_format_is_named_like_a_secret() -> None:
    names = _names(ENTRY.json_schema())
    assert "prompt_tokens" in names
    example = {name: "x" for name in names}
    assert cleaned(example) == example


@given(
    depth=st.integers(min_value=0, max_value=3),
    secret=st.text(alphabet='ab"\\:, 7\n\u00f6', min_size=1),
    field=st.sampled_from(["password", "clientSecret", "DB_TOKEN", "private_key"]),
)
def test_a_secret_field_is_blacked_out_however_often_its_json_is_escaped(
    depth: int, secret: str, field: str
) -> None:
    def within(value: str) -> dict[str, str]:
        held: Any = {"a": "say", field: value, "z": "end"}
        for _ in range(depth):
            held = {"raw": json.dumps(held)}
        return held

    assert cleaned(within(secret)) == within(REDACTED)


@given(depth=st.integers(min_value=0, max_value=2), ensure_ascii=st.booleans())
def test_a_known_secret_is_gone_however_its_letters_are_escaped(
    depth: int, ensure_ascii: bool
) -> None:
    def within(value: str) -> Any:
        held: Any = {"x": value}
        for _ in range(depth):
            held = {"raw": json.dumps(held, ensure_ascii=ensure_ascii)}
        return held

    assert cleaned(within("p\u00f6ssw\u00f6rt"), "p\u00f6ssw\u00f6rt") == within(REDACTED)
    assert cleaned(["p\\u00F6ssw\\u00F6rt"], "p\u00f6ssw\u00f6rt") == [REDACTED]


PIECES = st.sampled_from(
    [
        *('"', "\\", '\\"', "password", "token", '": "', "=", ":", " ", "\n", "://", "@", "{", "}"),
        *(
            f" {KEY} ",
            PEM,
            "-----BEGIN PRIVATE KEY-----",
            "Bearer " + "a" * 20,
            "x",
            "\u00f6",
            "Basic Og==",
        ),
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
JSON = st.recursive(
    TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(value=JSON)
def test_a_line_without_its_secrets_is_json_of_the_same_shape(value: Any) -> None:
    assert _shape(cleaned(value)) == _shape(value)


@given(value=JSON)
def test_a_cleaned_line_holds_nothing_more_to_clean(value: Any) -> None:
    text = Redactor().clean(json.dumps(value))
    assert KEY not in text
    assert "MIIEowIBAAKC" not in text


def test_a_private_key_shown_as_lines_is_gone() -> None:
    lines = ["here:", *PEM.split("\n"), "so"]
    assert cleaned(lines) == ["here:", *[REDACTED] * 4, "so"]


def test_two_secrets_as_names_stay_two_fields() -> None:
    assert list(cleaned({KEY: 1, KEY + "7": 2}).values()) == [1, 2]


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


@pytest.mark.parametrize("name", ["--token", "key", "sig", "X-Auth", "MY_PAT", "db-pass", "PWD"])
def test_settings_named_like_secrets_are(name: str) -> None:
    assert is_secret_setting(name)


@pytest.mark.parametrize("name", ["--verbose", "monkey", "path", "OLDPWD", "compass", "tokens"])
def test_other_settings_are_none(name: str) -> None:
    assert not is_secret_setting(name)


def test_the_shells_directory_is_no_secret_and_a_password_of_that_name_is() -> None:
    fields = {"PWD": "/srv/agents", "DB_PWD": "hunter2"}
    assert cleaned(fields) == {"PWD": "/srv/agents", "DB_PWD": REDACTED}
    assert cleaned({"PWD": "hunter2"}) == {"PWD": REDACTED}
    assert not is_secret_setting("PWD", "/srv/agents")


def test_many_secrets_as_names_stay_as_many_fields() -> None:
    fields = {f"{KEY}{number}": number for number in range(3_000)}
    assert list(cleaned(fields).values()) == list(range(3_000))


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [string for item in value for string in _strings(item)]  # pyright: ignore[reportUnknownVariableType] - JSON
    if isinstance(value, dict):
        return [string for pair in value.items() for item in pair for string in _strings(item)]  # pyright: ignore[reportUnknownVariableType] - JSON
    return []


def _shape(value: Any) -> Any:
    if isinstance(value, list):
        return [_shape(item) for item in value]  # pyright: ignore[reportUnknownVariableType] - JSON
    if isinstance(value, dict):
        return [_shape(item) for item in value.values()]  # pyright: ignore[reportUnknownVariableType] - JSON
    return "" if isinstance(value, str) else value


def _names(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {name for item in schema for name in _names(item)}  # pyright: ignore[reportUnknownVariableType] - JSON
    if not isinstance(schema, dict):
        return set()
    inner: set[str] = {name for item in schema.values() for name in _names(item)}  # pyright: ignore[reportUnknownVariableType] - JSON
    return inner | set(schema.get("properties", {}))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType] - JSON
