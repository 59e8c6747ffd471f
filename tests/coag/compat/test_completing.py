"""What is judged is what is run: arguments are completed by the tool's own type before rules."""

from __future__ import annotations

import json
import uuid
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, StaticWorkbench
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, SecretStr, StringConstraints, TypeAdapter

from coag import CoagAgent, ScriptedModel, Verdict
from coag.compat import ConstrainedWorkbench, ScriptedApprover, ToolRunner
from coag.cycle import ApprovalPolicy, with_defaults
from coag.models import scripted_answers
from coag.proof import examine
from coag.schema import ActionSpec, Candidate, EvaluationOutcome, Intent

Stripped = Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    item: Stripped
    pieces: int = 1


GOT: list[dict[str, Any]] = []


class Doubled(BaseModel):
    amount: Annotated[int, AfterValidator(lambda number: number * 2)]


class Order(BaseModel):
    number: str = Field(default_factory=lambda: uuid.uuid4().hex)


class Wanted(BaseModel):
    """What the shop takes, with all that pydantic converts."""

    amount: Decimal = Decimal(500)
    to: Stripped = "shop"
    weight: float | int | str = 2
    colour: Colour = Colour.RED
    day: date | None = None
    lines: list[Line] = Field(default_factory=list[Line])
    way: Literal["air", "sea"] = "sea"


class Bought(BaseModel):
    text: str = "bought"


class Shop(BaseTool[Wanted, Bought]):
    """Buys; keeps what it was given."""

    def __init__(self) -> None:
        super().__init__(Wanted, Bought, "shop", "Buys.")

    async def run(self, args: Wanted, cancellation_token: CancellationToken) -> Bought:
        GOT.append(dict(args))
        return Bought()


def by_json(value: Any) -> Any:
    """A value as the rules are shown it."""
    if isinstance(value, Decimal):
        exact = float(value) == value
        return float(value) if exact else str(value)
    return TypeAdapter(Any).dump_python(value, mode="json")


class Watching:
    """A rule that keeps what it judges."""

    name = "watching"

    def __init__(self, limit: float | None = None) -> None:
        self.seen: list[dict[str, Any]] = []
        self.limit = limit

    def __call__(self, candidate: Candidate, state: Any, projection: Any) -> Verdict:
        if candidate.action == "respond":
            return Verdict.allow()
        self.seen.append(dict(candidate.arguments or {}))
        if self.limit is not None and self.seen[-1]["amount"] > self.limit:
            return Verdict.forbid("at most 100")
        return Verdict.allow()


def buyer(rule: Watching, written: str, **more: Any) -> CoagAgent:
    answer = {"situation": "s", "candidates": [{"action": "shop", "arguments": written}]}
    done = {"situation": "s", "candidates": [{"action": "respond", "arguments": {"text": "Done."}}]}
    model = ScriptedModel(scripted_answers([answer, *[done] * 5]))
    options: dict[str, Any] = {"tools": [Shop()], "depth": "compact", "proposal": "json", **more}
    return CoagAgent("buyer", model, constraints=[rule], **options)


@pytest.mark.parametrize("written", ["{}", '{"amount": "1e9"}', '{"amount": 101}'])
async def test_a_limit_holds_for_defaults_and_for_what_a_tool_would_convert(written: str) -> None:
    GOT.clear()
    for agent in (
        buyer(Watching(100), written),
        buyer(Watching(100), written, tools=None, workbench=StaticWorkbench([Shop()])),
    ):
        await agent.run(task="Buy.")
        assert GOT == []
        assert not examine(agent.trace).violations


@pytest.mark.parametrize("inner", [[Shop()], StaticWorkbench([Shop()])])
async def test_a_limit_holds_behind_a_constrained_workbench(inner: Any) -> None:
    GOT.clear()
    bench = ConstrainedWorkbench(inner, constraints=[Watching(100)])
    for arguments in ({}, {"amount": "1e9"}):
        assert "at most 100" in (await bench.call_tool("shop", arguments)).to_text()
    assert GOT == []
    assert not (await bench.call_tool("shop", {"amount": "1e1", "to": " Me "})).is_error
    assert (GOT[0]["amount"], GOT[0]["to"]) == (10, "me")


async def test_a_policy_over_an_amount_asks_about_the_default() -> None:
    GOT.clear()
    asked: list[dict[str, Any]] = []

    def large(action: str, arguments: Any) -> bool:
        asked.append(dict(arguments))
        return arguments["amount"] > 100

    policy = ApprovalPolicy(when=[large])
    approver = ScriptedApprover([False])
    await buyer(Watching(), "{}", approval=policy, approve=approver).run(task="Buy.")
    assert GOT == []
    assert asked[0]["amount"] == 500


ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "amount": st.integers(0, 50) | st.sampled_from(["1e2", " 7 ", "0.25", 0.5, "1e400"]),
        "to": st.sampled_from(["Shop", " shop\t", "me"]),
        "weight": st.sampled_from([1, 1.0, 1.5, "1", "1e9"]),
        "colour": st.sampled_from(["red", "blue"]),
        "day": st.sampled_from(["2026-01-01", None]),
        "lines": st.lists(
            st.fixed_dictionaries({"item": st.sampled_from([" A ", "b"])}), max_size=2
        ),
        "way": st.sampled_from(["air", "sea"]),
    },
)


@given(ARGUMENTS)
async def test_rules_see_what_the_tool_gets_and_the_trace_says_the_same(
    arguments: dict[str, Any],
) -> None:
    GOT.clear()
    rule = Watching()
    agent = buyer(rule, json.dumps(arguments))
    await agent.run(task="Buy.")
    intents = [r.arguments for r in agent.trace if isinstance(r, Intent)]
    judged = [
        e.arguments for r in agent.trace if isinstance(r, EvaluationOutcome) for e in r.evaluations
    ][: len(intents)]
    assert len(GOT) == len(intents)
    for got, intent, evaluated in zip(GOT, intents, judged, strict=True):
        shown = {name: by_json(value) for name, value in got.items() if value is not None}
        assert {k: v for k, v in intent.items() if v is not None} == shown
        assert evaluated == intent
        assert all(seen == intent for seen in rule.seen)
    assert not examine(agent.trace).violations


def test_what_would_be_changed_again_is_refused_with_the_reason() -> None:
    def pay(bill: Doubled) -> str:
        """Pays."""
        return str(bill)

    def sign(key: SecretStr) -> str:
        """Signs."""
        return key.get_secret_value()

    for function, arguments in ((pay, {"bill": {"amount": 1}}), (sign, {"key": "abc"})):
        runner = ToolRunner([function])
        with pytest.raises(ValueError, match="makes other values of its own values"):
            runner.complete(ActionSpec(name=function.__name__, description=""), arguments)


async def test_a_default_that_is_made_anew_is_made_once() -> None:
    got: list[Order] = []

    def order(order: Order) -> str:
        """Orders."""
        got.append(order)
        return "ordered"

    rule = Watching()
    answer = {"situation": "s", "candidates": [{"action": "order", "arguments": '{"order": {}}'}]}
    done = {"situation": "s", "candidates": [{"action": "respond", "arguments": {"text": "Done."}}]}
    agent = CoagAgent(
        "a",
        ScriptedModel(scripted_answers([answer, done])),
        tools=[order],
        constraints=[rule],
        depth="compact",
        proposal="json",
    )
    await agent.run(task="Order.")
    (made,) = got
    evaluated = next(
        e.arguments for r in agent.trace if isinstance(r, EvaluationOutcome) for e in r.evaluations
    )
    assert evaluated == {"order": {"number": made.number}}
    assert not examine(agent.trace).violations


async def test_defaults_of_a_schema_are_filled_in_where_only_that_is_known() -> None:
    schema = {
        "properties": {
            "amount": {"type": "integer", "default": 500},
            "options": {"properties": {"fast": {"default": True}, "note": {"default": None}}},
        }
    }
    assert with_defaults({}, schema) == {"amount": 500}
    assert with_defaults({"options": {}}, schema) == {"amount": 500, "options": {"fast": True}}
