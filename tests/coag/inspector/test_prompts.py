"""Messages taken apart into what their pieces are."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coag.inspector.prompts import message_text, parts_of
from coag.inspector.views import PartKind, PromptPiece
from coag.schema import Trust, estimate_tokens

PIECES = [
    "## Goal\n",
    "# Reasoning\n",
    '<data source="goal" trust="user">\n',
    '<data source="x" trust="untrusted">\n',
    '<data source="x" trust="god">\n',
    '<data source="a\nb" trust="user">\n',
    "\n</data>",
    "</data>\n",
    "<\\data>",
    "\n",
    "\n\n",
    "text",
    "#",
    "\r\n",
    "é\U0001f600",
]
CONTENT = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", ""])},
    optional={"content": CONTENT | JSON, "thought": st.text(), "tool_calls": JSON},
)
RENDERED = (
    "You drive.\n\n## Available actions\n- go: Goes.\n\n# Reasoning\nThink.\n\nAnswer.\n\n"
    '## Goal\n<data source="goal" trust="user">\nClean.\n# not a heading\n</data>\n\n'
    '## State of the environment\n<data source="perception" trust="untrusted">\n\n</data>'
)


def rows_of(parts: tuple[PromptPiece, ...]) -> list[tuple[PartKind, str, str, Trust | None]]:
    return [(part.kind, part.title, part.source, part.trust) for part in parts]


@given(message=MESSAGE, delimited=st.booleans(), same=st.integers(0, 200))
def test_the_pieces_of_a_message_are_the_message(
    message: dict[str, Any], delimited: bool, same: int
) -> None:
    parts = parts_of(message, delimited=delimited, same=same)
    text = message_text(message)
    assert "".join(part.text for part in parts) == text
    assert all(part.text and part.tokens == estimate_tokens(part.text) for part in parts)
    assert sum(part.same for part in parts) == min(same, len(text))
    assert all(part.same == len(part.text) or not after.same for part, after in pairwise(parts))


def test_data_is_shown_apart_from_instructions_with_its_source_and_trust() -> None:
    parts = parts_of({"role": "user", "content": RENDERED}, delimited=True)
    assert rows_of(parts) == [
        (PartKind.INSTRUCTION, "", "", None),
        (PartKind.INSTRUCTION, "Available actions", "", None),
        (PartKind.INSTRUCTION, "Reasoning", "", None),
        (PartKind.DATA, "Goal", "goal", Trust.USER),
        (PartKind.DATA, "State of the environment", "perception", Trust.UNTRUSTED),
    ]


def test_what_is_never_closed_is_no_data() -> None:
    opened = '<data source="x" trust="untrusted">\nsay'
    parts = parts_of({"role": "user", "content": f"{opened}\nmore"}, delimited=True)
    assert rows_of(parts) == [(PartKind.INSTRUCTION, "", "", None)]


def test_prompts_of_other_agents_are_not_taken_apart() -> None:
    parts = parts_of({"role": "user", "content": RENDERED}, delimited=False)
    assert rows_of(parts) == [(PartKind.PLAIN, "", "", None)]


def test_an_answer_is_the_models_own_whatever_it_says() -> None:
    message = {"role": "assistant", "content": RENDERED, "tool_calls": [{"name": "go"}]}
    parts = parts_of(message, delimited=True)
    assert rows_of(parts) == [
        (PartKind.ANSWER, "", "", None),
        (PartKind.ANSWER, "tool calls", "", None),
    ]


@pytest.mark.parametrize(
    "content",
    [
        '<data source="x" trust="user">\n' * 50_000,
        "# h\n" * 50_000,
        "## h\n" + "#" * 200_000,
        "\n</data>" * 50_000,
        '## t\n<data source="x" trust="user">\n\n</data>\n' * 20_000,
    ],
    ids=["opened", "headings", "hashes", "closed", "sections"],
)
def test_hostile_texts_come_in_few_pieces(content: str) -> None:
    parts = parts_of({"role": "user", "content": content}, delimited=True)
    assert len(parts) <= 401
    assert "".join(part.text for part in parts) == content


def test_pieces_beyond_the_bound_are_said_to_be_nothing_in_particular() -> None:
    parts = parts_of({"role": "user", "content": "# h\n" * 1_000}, delimited=True)
    assert rows_of(parts)[-1] == (PartKind.PLAIN, "and more", "", None)
