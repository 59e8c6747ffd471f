"""No foreign text stops the process: whatever reads it takes time in proportion to its length.

The time of a function is compared with itself on a text twice as long, and bounded for a text of
100,000 characters. Quadratic work fails both by far: it took 17 s and more at that length.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from coag._util.json_schemas import value_fault
from coag._util.text import cleaned, escaped_json, visible, well_formed
from coag.awareness import AwarenessState, PerceptionDomain, RulePerception
from coag.compat import repair_arguments
from coag.context import wrap_as_data
from coag.models import parse_answer
from coag.models.parsing import calls_in_text
from coag.schema import Redactor, Trust, one_line

LENGTH = 100_000
MOST_SECONDS = 3.0
"""Generous: each takes a tenth of it on a quiet machine."""


class Answer(BaseModel):
    number: int


def arguments(text: str) -> None:
    shape = {"type": "string", "pattern": "^(a+)+$", "enum": ["a", "b"]}
    value_fault({"text": text}, json.dumps({"properties": {"text": shape}}))


STATE = AwarenessState(domain="any", at=datetime(2026, 1, 1, tzinfo=UTC))
CODING, TALK = (
    RulePerception(PerceptionDomain.CODING),
    RulePerception(PerceptionDomain.CONVERSATION),
)


def perceived(by: RulePerception) -> Callable[[str], object]:
    def read(text: str) -> None:
        reading = by.perceive(text, STATE)
        with pytest.raises(StopIteration):  # it waits for nothing
            reading.send(None)  # type: ignore[attr-defined]

    return read


READERS: dict[str, Callable[[str], object]] = {
    "redacting a text": Redactor().clean_text,
    "redacting JSON": lambda text: Redactor().clean(json.dumps({"text": text})),
    "cleaning": cleaned,
    "one line": one_line,
    "showing": lambda text: visible(text, LENGTH),
    "escaping JSON": escaped_json,
    "mending characters": well_formed,
    "quoting": lambda text: wrap_as_data(text, text, Trust.UNTRUSTED),
    "calls in a text": lambda text: calls_in_text(text, ["pay"]),
    "parsing an answer": lambda text: parse_answer(text, Answer),
    "repairing arguments": repair_arguments,
    "checking arguments": arguments,
    "perceiving code": perceived(CODING),
    "perceiving talk": perceived(TALK),
}
WORST = [
    *("sk-", "sk-a1", "eyJ", "eyJ.", "://a:", "@", "key", '"token"', '"token":', "token=", "PWD: "),
    *("token: ", "password: ", "\\", '\\"', '"', " ", "\n", " \n", "\t", "-----BEGIN ", "earer "),
    *(
        "PRIVATE KEY-----",
        "asic aaaaaa",
        "ghp_",
        "A",
        "a",
        "\x1b",
        "\x1b[",
        "\x1b]",
        "<",
        "<\u200b",
    ),
    *(
        "{",
        "}",
        "[",
        ']{1"',
        '{"a":',
        "<think>",
        "```",
        "<tool_call>",
        "``` ",
        "/",
        "a_",
        "I tried ",
    ),
]
PIECES = st.lists(st.sampled_from(WORST), min_size=1, max_size=4).map("".join)


def seconds(read: Callable[[str], object], piece: str, length: int, before: str = "") -> float:
    text = before + piece * (length // len(piece))
    begun = time.process_time()
    read(text)
    return time.process_time() - begun


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.timeout(120)
def test_no_text_of_one_piece_repeated_takes_more_than_linear_time(reader: str) -> None:
    read = READERS[reader]
    slow = {piece: seconds(read, piece, LENGTH // 10) for piece in WORST}
    for piece in sorted(slow, key=slow.__getitem__, reverse=True)[:3]:
        assert seconds(read, piece, LENGTH) < MOST_SECONDS, piece


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.timeout(120)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(piece=PIECES, before=st.sampled_from(["", "```", "{", '"token": "', "x"]))
def test_a_text_ten_times_as_long_takes_no_hundred_times_as_long(
    reader: str, piece: str, before: str
) -> None:
    read = READERS[reader]
    longer = seconds(read, piece, 20_000, before)
    if longer > 0.25:  # below that nobody waits, and clocks tell little
        shorter = seconds(read, piece, 2_000, before)
        assert longer < 40 * max(shorter, 0.005) + MOST_SECONDS / 2, (piece, before)
