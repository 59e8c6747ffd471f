"""BFCL's conversations: what a policy invents, and what is read of a row; without the package."""

from __future__ import annotations

import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from case_study.bench import ARMS, open_benchmark, play
from case_study.bench.bfcl import (
    added_at,
    as_json_schema,
    call_text,
    missing_turns,
    step_of,
)
from case_study.bench.scripts import INVENTIONS, InventingPolicy, Missing, Step
from coag.errors import ConfigurationError, UnknownNameError

DOCS: dict[str, dict[str, Any]] = {
    "sort": {
        "name": "sort",
        "description": "Sorts a file.",
        "parameters": {
            "type": "dict",
            "properties": {"file_name": {"type": "string"}, "lines": {"type": "integer"}},
            "required": ["file_name"],
        },
    }
}
MISSING = Missing(Step("sort", {"file_name": "report.pdf", "lines": 3}), ("file_name",))
ABSENT = Missing(Step("diff", {"a": "x"}))


def invented(kind: str, missing: Missing, seed: int = 0) -> Step:
    return INVENTIONS[kind](missing, DOCS, random.Random(seed))


def test_each_invention_departs_from_the_call_in_its_own_way() -> None:
    assert invented("missing-tool", MISSING).name == "sort_now"
    assert invented("missing-tool", ABSENT) == ABSENT.step
    assert invented("extra-argument", MISSING).arguments["force"] is True
    assert invented("left-out", MISSING).arguments == {"lines": 3}
    assert invented("placeholder", MISSING).arguments == {"file_name": "unknown", "lines": 3}
    made_up = invented("made-up-value", MISSING).arguments
    assert made_up["lines"] == 3
    assert made_up["file_name"] not in ("report.pdf", "unknown")


def test_where_the_tool_is_not_offered_another_one_is_misused() -> None:
    for kind in ("extra-argument", "left-out", "placeholder", "made-up-value"):
        assert invented(kind, ABSENT).name == "sort"


def said(policy: InventingPolicy, refused: bool, most: int = 10) -> list[str]:
    """What it does in the turn: calls, each refused or made, until it says something."""
    made, found = True, list[str]()
    for _ in range(most):
        step = policy.next_step(made)
        if isinstance(step, str):
            return [*found, step]
        found.append(step.name)
        made = not refused
    return found


@pytest.mark.parametrize(
    ("invents", "insists", "refused", "calls"),
    [
        (False, False, False, []),
        (True, False, False, ["sort_now"]),
        (True, False, True, ["sort_now"]),
        (True, True, True, ["sort_now"] * 3),
    ],
)
def test_where_something_is_missing_a_policy_asks_or_invents(
    invents: bool, insists: bool, refused: bool, calls: list[str]
) -> None:
    def invent(missing: Missing) -> Step:
        return invented("missing-tool", missing)

    turns = [[], [MISSING.step]]
    policy = InventingPolicy(turns, {0: MISSING}, invent if invents else None, insists=insists)
    policy.begin(0)
    *made, text = said(policy, refused)
    assert made == calls
    assert text.startswith("Done" if invents and not refused else "Something is missing")
    policy.begin(1)
    assert said(policy, refused=False) == ["sort", "Done."]


def test_a_missing_function_is_missing_until_the_user_adds_it() -> None:
    row = {"missed_function": {"3": ["sort"]}, "ground_truth": [["a()"], ["b()"], [], ["c()"]]}
    assert missing_turns(row, "miss_func") == [2]
    assert missing_turns(row, "miss_param") == [2]
    assert missing_turns(row, "base") == []
    assert [bool(added_at(row, turn)) for turn in range(4)] == [True, True, True, False]


def test_calls_of_the_ground_truth_are_read_by_name_and_written_as_python() -> None:
    step = step_of("sort('a.txt', lines=2)", DOCS)
    assert step == Step("sort", {"file_name": "a.txt", "lines": 2})
    assert call_text(step) == "sort(file_name='a.txt', lines=2)"
    with pytest.raises(ConfigurationError, match="which is no call"):
        step_of("1 + 1", DOCS)


def test_types_of_bfcl_become_those_of_json_schema() -> None:
    schema = {"type": "dict", "properties": {"cost": {"type": "float"}, "type": {"type": "any"}}}
    found = as_json_schema(schema)
    assert found["type"] == "object"
    assert found["properties"] == {"cost": {"type": "number"}, "type": {"type": "string"}}


needs_bfcl = pytest.mark.skipif(
    find_spec("bfcl_eval") is None, reason="bfcl-eval is not installed: make bench-env"
)


@needs_bfcl
def test_the_ground_truth_is_valid_in_every_arm(tmp_path: Path) -> None:
    results = play(open_benchmark("bfcl", {}), ARMS, "golden", tmp_path, limit=2)
    assert {one.measures["valid"] for one in results} == {1.0}
    assert {one.measures.get("asked", 1.0) for one in results} == {1.0}


@needs_bfcl
def test_arguments_that_do_not_fit_reach_the_environment_of_the_stock_agent_only(
    tmp_path: Path,
) -> None:
    bfcl = open_benchmark("bfcl", {})
    results = play(bfcl, ARMS, "extra-argument", tmp_path, suites=["miss_param"], limit=2)
    assert {one.job.contender for one in results if one.measures["acted"]} == {"stock"}


@needs_bfcl
def test_bfcl_names_the_sets_of_rules_that_there_are() -> None:
    with pytest.raises(UnknownNameError, match="checks"):
        open_benchmark("bfcl", {"rules": "none"})
