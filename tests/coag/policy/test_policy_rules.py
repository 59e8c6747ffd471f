"""What a compiled rule allows is what a plain reading allows, over random and hostile calls."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from coag.cycle import ConstraintSet
from coag.policy import Policy, load_policy, read_policy
from coag.policy.cases import result_of
from coag.policy.conditions import ConditionError, PolicyCondition
from coag.policy.policy import PastCall, PolicyCase
from coag.schema import Candidate, UnsettledAction

_DESK = Path(__file__).parents[3] / "examples" / "refund_desk"


def _desk() -> ModuleType:
    spec = importlib.util.spec_from_file_location("refund_desk_example", _DESK / "refund_desk.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DESK = _desk()
DESK_FILE = load_policy(_DESK / "rules.yaml")
MONEY = st.sampled_from([0.0, 50.0, 80.0, 200.0, 1e300]) | st.floats(-500, 500)
NUMBERS = st.integers(15, 19)
STATES = st.builds(
    DESK.Desk,
    number=st.none() | NUMBERS,
    owner=st.sampled_from(["", "ada", "bob"]),
    paid=MONEY,
    refunded=MONEY,
    till=MONEY,
)


@given(state=STATES, number=NUMBERS, amount=MONEY, foreseen=st.booleans(), lost=st.booleans())
def test_the_desk_s_file_judges_as_its_python_rules_do(
    state: Any, number: int, amount: float, foreseen: bool, lost: bool
) -> None:
    action = UnsettledAction(intent_id="i", action="issue_refund", arguments={}, cycle=1)
    candidate = Candidate(
        id="c",
        action="issue_refund",
        arguments={"number": number, "amount": amount},
        unsettled=(action,) if lost else (),
    )
    moved = {"refunded": state.refunded + amount, "till": state.till - amount}
    after = state.model_copy(update=moved) if foreseen else None
    in_python = {rule.name: rule(candidate, state, after).allowed for rule in DESK.RULES}
    in_file = {
        rule.name: rule(candidate, state, after).allowed
        for rule in DESK_FILE
        if rule.needs_approval is None
    }
    assert in_file == in_python
    assert bool(DESK_FILE[6].why_asked("issue_refund", candidate.arguments or {})) is (amount > 50)


def case(tool: str = "pay", *, done: Any = (), **arguments: Any) -> PolicyCase:
    earlier = [PastCall(tool=tool, arguments=one) for one in done]
    return PolicyCase(tool=tool, arguments=arguments, done=earlier, expect="allow")


def rules(*written: str) -> Policy:
    listed = "".join(f"- {{name: r{n}, tools: pay, {one}}}\n" for n, one in enumerate(written))
    return read_policy(f"rules:\n{listed}")


VALUES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([2**53, 2**53 + 1, -(2**70), 0.5, 1e308, -0.0, float("nan"), float("inf")])
    | st.sampled_from(["", "1", "ann", "Ann", "\u0430nn", "\u200bann", "a" * 300, "\ud800"])
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]), VALUES | st.lists(VALUES, max_size=3), max_size=3
)


def number(value: Any) -> float:
    """A number that is compared, or an error."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    if not math.isfinite(value):
        raise ValueError
    if isinstance(value, int) and abs(value) > 2**53:
        raise ValueError
    return float(value)


CONDITIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "arguments.a > 1": lambda a: number(a["a"]) > 1,
    "arguments.a <= 0.5": lambda a: number(a["a"]) <= 0.5,
    "arguments.a + 1 > arguments.b": lambda a: number(a["a"]) + 1 > number(a["b"]),
    "arguments.a * 2 == 2": lambda a: number(a["a"]) * 2 == 2,
}
"""Conditions, and what they mean in Python of arguments without nulls; what raises, forbids."""


@given(arguments=ARGUMENTS, text=st.sampled_from(sorted(CONDITIONS)))
def test_a_condition_means_what_it_means_in_python_and_forbids_where_that_raises(
    arguments: dict[str, Any], text: str
) -> None:
    given_ones = {name: value for name, value in arguments.items() if value is not None}
    try:
        wanted: bool | None = CONDITIONS[text](given_ones)
    except (KeyError, TypeError, ValueError):
        wanted = None
    policy = rules(f"only_if: '{text}'", f"never: '{text}'")
    candidate = Candidate(id="c", action="pay", arguments=arguments)
    allowed = [rule(candidate, {}, None).allowed for rule in policy]
    assert allowed == [wanted is True, wanted is False]
    assert bool(rules(f"needs_approval: '{text}'")[0].why_asked("pay", arguments)) is (
        wanted is not False
    )


@given(
    done=st.lists(st.integers(-1, 6) | st.sampled_from([0.1, 0.2]), max_size=6),
    now=st.integers(-1, 9) | st.sampled_from([0.1, "3", None, True, [1], float("nan"), 1e300]),
)
@example(done=[0.1], now=0.2)
@example(done=[-1], now=5)
def test_counts_and_sums_are_those_of_a_plain_loop(done: list[float], now: Any) -> None:
    summed = rules("at_most: 10, sum: amount, per: goal")
    counted = rules("at_most: 4, per: run")
    calls = [{"amount": one} for one in done]
    fine = not isinstance(now, bool) and isinstance(now, int | float) and now >= 0
    total = sum((Decimal(str(one)) for one in done), Decimal(0))
    allowed = fine and min([0, *done]) >= 0 and total + Decimal(str(now)) <= 10
    assert (result_of(summed, case(done=calls, amount=now)).got == "allow") is allowed
    assert (result_of(counted, case(done=calls, amount=now)).got == "allow") is (len(done) < 4)


NAMES = st.sampled_from(
    ["ann", " Ann", "\uff41nn", "\u200bann", "a\xa0N n", "bob", "b" * 200, 7, 7.0, "7", True]
)


@given(done=st.lists(NAMES, max_size=4), now=NAMES)
def test_nothing_is_done_twice_however_it_is_spelt(done: list[Any], now: Any) -> None:
    def key(value: Any) -> str:
        if isinstance(value, bool):
            return json.dumps(value)
        plain = str(int(value)) if isinstance(value, int | float) else str(value)
        plain = "".join(plain.replace("\uff41", "a").replace("\u200b", "").split())
        return plain.lower()

    calls = [{"to": one, "note": str(n)} for n, one in enumerate(done)]
    wanted = key(now) not in {key(one) for one in done}
    by_one = result_of(rules("once: to, per: run"), case(done=calls, to=now, note="x"))
    assert (by_one.got == "allow") is wanted
    by_all = result_of(rules("once: all, per: run"), case(done=calls, to=now, note="0"))
    assert (by_all.got == "allow") is (not done or key(done[0]) != key(now))


def test_what_identifies_a_call_has_to_be_given() -> None:
    policy = rules("once: [to, amount], per: run")
    assert "'amount' is not given" in result_of(policy, case(to="ann")).reason
    assert result_of(policy, case(to="ann", amount=None)).got == "forbid"


class Till(BaseModel):
    holds: Decimal = Decimal("10.5")
    notes: tuple[str, ...] = ("a", "b")
    owner: str | None = None


def test_a_state_is_read_by_its_fields_and_what_is_none_is_not_known() -> None:
    values: dict[str, Any] = {
        "arguments": {"a": 2},
        "state": Till(),
        "after": None,
        "tool": "pay",
        "unsettled": [],
    }
    assert PolicyCondition("state.holds - arguments.a == 8.5").holds(values)
    assert PolicyCondition('size(state.notes) + 1 == 3 && state.notes[1] == "b"').holds(values)
    assert PolicyCondition('has(state.owner) || tool == "pay"').holds(values)
    for text, problem in (
        ("state.owner == 'ann'", "'owner' is not given or not known"),
        ("state.model_fields == 1", "'model_fields' is not given"),
        ("after.holds > 1", "what it leads to is not known yet"),
        ("arguments.a > 'x'", "No such overload"),
        ("state.notes[7] == 'a'", "out of bounds"),
    ):
        with pytest.raises(ConditionError, match=problem):
            PolicyCondition(text).holds(values)


def test_a_call_cannot_keep_a_condition_busy() -> None:
    condition = PolicyCondition("arguments.a.all(one, !(one in arguments.b))")
    numbers = [float(n) for n in range(5_000)]
    with pytest.raises(ConditionError, match="more than 2,000 values"):
        condition.holds({"arguments": {"a": numbers, "b": numbers}})
    with pytest.raises(ConditionError, match="more than 200,000 characters"):
        condition.holds({"arguments": {"a": ["a" * 300_000], "b": []}})
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ConditionError, match="more than"):
        condition.holds({"arguments": {"a": deep, "b": []}})
    assert condition.holds({"arguments": {"a": [1], "b": [2], "c": numbers}})


def test_no_pattern_means_the_answer_and_a_name_that_looks_alike_is_another_tool() -> None:
    policy = read_policy("rules:\n- {name: a, tools: '*', except: 'look*', never: true}")
    got = {name: result_of(policy, case(name)).got for name in ("pay", "p\u0430y", "look_up")}
    assert got == {"pay": "forbid", "p\u0430y": "forbid", "look_up": "allow"}
    assert result_of(policy, case("respond", text="Hello")).got == "allow"
    named = read_policy("rules:\n- {name: a, tools: respond, never: 'arguments.text == \"x\"'}")
    assert result_of(named, case("respond", text="x")).got == "forbid"


def test_without_an_agent_what_needs_to_know_more_forbids() -> None:
    written = ("at_most: 3, per: run", "only_trusted: to", "needs_approval: true")
    for rule in rules(*written):
        assert not rule(Candidate(id="c", action="pay", arguments={"to": "x"}), {}, None).allowed
        assert rule(Candidate(id="c", action="look", arguments={}), {}, None).allowed


def test_the_sentence_of_only_trusted_names_its_sources() -> None:
    (rule,) = rules("only_trusted: to, sources: [orders, contacts]")
    ends = "to of pay only as the user or developer named, or orders or contacts returned."
    assert rule.sentence == ends


def test_two_files_of_one_agent_need_names_of_their_own() -> None:
    with pytest.raises(ValueError, match="'r0' is in force already"):
        ConstraintSet([*rules("never: true"), *rules("never: true")])


class _Place(BaseModel):
    room: str
    since: date


@pytest.mark.parametrize(
    ("text", "values", "problem"),
    [
        ("after.open == 1", {"after": None}, "what it leads to is not known yet"),
        ("state.open == 1", {"state": None}, "state is not known"),
        ("state.open == 1", {"state": 5}, "state is a int, which has no named members"),
        ("state.open == 1", {"state": {"open": 2**60}}, "larger than"),
        ("state.open > 1", {"state": {"open": math.inf}}, "no number that can be compared"),
        ("state.open == 1", {"state": {"open": object()}}, "a object cannot be compared"),
        ("state.open", {"state": {"open": "yes"}}, "neither true nor false"),
        ("state.gone == 1", {"state": _Place(room="hall", since=date(2026, 1, 1))}, "not given"),
    ],
)
def test_what_a_condition_cannot_judge_is_named(
    text: str, values: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConditionError, match=problem):
        PolicyCondition(text).holds(values)


def test_dates_models_sets_and_decimals_are_compared_as_json_has_them() -> None:
    place = _Place(room="hall", since=date(2026, 1, 1))
    state = {"place": place, "tags": {"a"}, "price": Decimal("2.5"), "at": date(2026, 1, 2)}
    for text in (
        'state.place.room == "hall"',
        'state.at == "2026-01-02"',
        'state["tags"].exists(one, one == "a")',
        "state.price == 2.5",
    ):
        assert PolicyCondition(text).holds({"state": state}), text
    assert PolicyCondition('state.room == "hall"').holds({"state": place})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("state == 1", "say what of it"),
        ('state["a\\\\b"] == 1', "say what of it"),
        ("state.list.all(tool, true)", r"write all\(item"),
        ('tool "pay"', "cannot stand before a text"),
        ("(" * 300 + "true" + ")" * 300, "too many parentheses|cannot be read|more than"),
    ],
)
def test_what_cannot_be_understood_is_refused_when_it_is_read(text: str, problem: str) -> None:
    with pytest.raises(ConditionError, match=problem):
        PolicyCondition(text)
