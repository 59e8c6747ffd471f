from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.errors import ConfigurationError
from coag.memory import Procedure, load_procedures, parse_procedure, seed_procedures
from coag.memory.procedures import fill
from coag.schema import estimate_tokens

SOURCE = """+++
description = "How to greet."
placeholders = ["name"]
+++

Greet {name}. Write {"json": {}} and {other} as they are.
"""


def test_front_matter_and_text_are_read() -> None:
    procedure = parse_procedure("greeting", SOURCE)

    assert procedure == Procedure(
        name="greeting",
        text='Greet {name}. Write {"json": {}} and {other} as they are.',
        placeholders=("name",),
        description="How to greet.",
    )


def test_file_without_front_matter_is_all_text() -> None:
    assert parse_procedure("plain", "\ufeff+ just text\n").text == "\ufeff+ just text"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("+++\nplaceholders = []", "no closing"),
        ("+++\nplaceholders = [\n+++\ntext", "cannot be read"),
        ("+++\nplaceholder = []\n+++\ntext", "cannot be read"),
        ("+++\n+++\n \n", "cannot be read"),
        ('+++\nplaceholders = ["goal"]\n+++\ntext', "lists placeholders .* goal"),
    ],
)
def test_malformed_file_is_refused(source: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'broken'.*{problem}"):
        parse_procedure("broken", source)


def test_only_listed_placeholders_are_filled() -> None:
    procedure = parse_procedure("greeting", SOURCE)

    filled = fill(procedure, procedure.text, {"name": "{other} {name}", "other": "x"})

    assert filled == 'Greet {other} {name}. Write {"json": {}} and {other} as they are.'


def test_missing_value_is_named() -> None:
    procedure = parse_procedure("greeting", SOURCE)

    with pytest.raises(ConfigurationError, match="'greeting' needs a value for: name"):
        fill(procedure, procedure.text, {})


@given(before=st.text(), after=st.text(), value=st.text())
def test_everything_around_a_placeholder_stays_as_it_is(
    before: str, after: str, value: str
) -> None:
    procedure = Procedure(name="p", text="{goal}", placeholders=("goal",))
    text = f"{before}{{goal}}{after}"

    assert fill(procedure, text, {"goal": value}) == (
        f"{before.replace('{goal}', value)}{value}{after.replace('{goal}', value)}"
    )


def test_seeds_cover_the_phases_that_ask_a_model_and_are_short() -> None:
    seeds = seed_procedures()

    assert set(seeds) == {
        "reasoning",
        "proposal",
        "evaluation",
        "selection",
        "deliberation",
        "native",
        "summary",
    }
    for seed in seeds.values():
        assert seed.description
        assert estimate_tokens(seed.text) < 300


def test_folder_of_a_domain_is_loaded_by_name(tmp_path: Path) -> None:
    (tmp_path / "greeting.md").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a procedure")

    assert list(load_procedures(tmp_path)) == ["greeting"]


def test_folder_without_procedures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no procedures"):
        load_procedures(tmp_path)
