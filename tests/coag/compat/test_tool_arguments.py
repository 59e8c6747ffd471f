"""What is judged is what is run: rules, approvers, traces and tools get one and the same value."""

from __future__ import annotations

import itertools
import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, cast
from uuid import UUID

import pytest
from autogen_core import CancellationToken, FunctionCall
from autogen_core.tools import (
    BaseTool,
    FunctionTool,
    StaticWorkbench,
    ToolOverride,
    ToolResult,
    ToolSchema,
    Workbench,
)
from hypothesis import given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    RootModel,
    SecretStr,
    StringConstraints,
    create_model,
    field_serializer,
)

from coag import CoagAgent, ScriptedModel
from coag.compat import ConstrainedWorkbench, StatelessWorkbench, ToolRunner
from coag.cycle import ApprovalAnswer, ApprovalPolicy, ApprovalRequest
from coag.errors import ConfigurationError
from coag.models import scripted_answers
from coag.proof import examine, replay
from coag.schema import (
    Candidate,
    Evaluation,
    EvaluationOutcome,
    Executed,
    ExecutionOutcome,
    Intent,
    TraceRecord,
    Verdict,
)

IDS = itertools.count(1)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: Annotated[str, StringConstraints(strip_whitespace=True, to_upper=True)]
    number: int = 1
    until: date | None = None


@dataclass
class Point:
    x: float
    y: float = 0.0


class Witness:
    """A rule, an approver and a place for what a tool received: what each of them saw."""

    def __init__(self) -> None:
        self.ruled: list[dict[str, Any] | None] = []
        self.approved: list[Mapping[str, Any]] = []
        self.received: list[BaseModel] = []

    def rule(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        if candidate.action == "act":
            self.ruled.append(candidate.arguments)
        return Verdict.allow()

    async def approve(self, request: ApprovalRequest) -> ApprovalAnswer:
        self.approved.append(request.arguments)
        return request.grant("ann")


class Act(BaseTool[BaseModel, BaseModel]):
    """A tool with any type of arguments, which keeps what it received."""

    def __init__(self, kind: type[BaseModel], received: list[BaseModel]) -> None:
        super().__init__(kind, BaseModel, "act", "Acts.")
        self._received = received

    async def run(self, args: BaseModel, cancellation_token: CancellationToken) -> Any:
        self._received.append(args)
        return "done"


async def by_agent(
    tools: Sequence[Any],
    written: Mapping[str, Any],
    name: str = "act",
    benches: Sequence[Workbench] = (),
    **options: Any,
) -> CoagAgent:
    """An agent whose model made one call, and then gave a text."""
    call = FunctionCall(id="1", name=name, arguments=json.dumps(written))
    agent = CoagAgent(
        "clerk",
        ScriptedModel(scripted_answers([[call], *["Done."] * 20])),
        tools=list(tools),
        workbench=list(benches) or None,
        depth="compact",
        **options,
    )
    await agent.run(task="Do it.")
    return agent


def evaluations(records: Iterable[TraceRecord]) -> list[Evaluation]:
    outcomes = [record for record in records if isinstance(record, EvaluationOutcome)]
    return [one for outcome in outcomes for one in outcome.evaluations]


def executed(records: Iterable[TraceRecord]) -> list[Executed]:
    outcomes = [record for record in records if isinstance(record, ExecutionOutcome)]
    return [one for outcome in outcomes for one in outcome.executed]


def intents(records: Iterable[TraceRecord]) -> list[Intent]:
    return [record for record in records if isinstance(record, Intent)]


NOTHING: Any = object()
KINDS: list[tuple[Any, st.SearchStrategy[Any], st.SearchStrategy[Any]]] = [
    (int, st.integers(-1000, 1000), st.integers(-1000, 1000)),
    (float, st.integers(-9, 9) | st.floats(-1e9, 1e9), st.floats(-9, 9)),
    (bool, st.booleans(), st.booleans()),
    (
        Decimal,
        st.sampled_from(["1e9", "0.10", "12.50", "3.14159"]) | st.integers(0, 999),
        st.decimals(-999, 999, places=2),
    ),
    (int | str, st.integers(0, 9) | st.sampled_from(["1e9", " 7 ", "x"]), st.just("d")),
    (Decimal | None, st.none() | st.just("250.0") | st.floats(0, 9), st.none()),
    (Literal["a", "b"], st.sampled_from(["a", "b"]), st.just("b")),
    (Colour, st.sampled_from(["red", "blue"]), st.sampled_from(list(Colour))),
    (
        Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)],
        st.sampled_from(["  Ann ", "BOB", "\tx"]),
        st.just("eve"),
    ),
    (Annotated[int, Field(ge=0, le=9)], st.integers(0, 9), st.integers(0, 9)),
    (date, st.dates().map(str), st.dates()),
    (datetime, st.just("2026-01-02T03:04:05Z"), st.datetimes()),
    (UUID, st.uuids().map(lambda one: one.hex.upper()), st.uuids()),
    (
        Address,
        st.fixed_dictionaries(
            {"street": st.sampled_from([" low ", "High"])},
            optional={"number": st.integers(0, 9), "until": st.just("2026-02-03")},
        ),
        st.just(Address(street="main")),
    ),
    (Point, st.fixed_dictionaries({"x": st.integers(0, 9)}), st.just(Point(1.5))),
    (dict[str, Decimal], st.dictionaries(st.sampled_from("ab"), st.just("1.5")), st.just({})),
    (
        set[str],
        st.lists(st.sampled_from("abc"), unique=True),
        st.frozensets(st.sampled_from("abc")).map(set),
    ),
    (tuple[int, str], st.tuples(st.integers(0, 9), st.just("x")).map(list), st.just((1, "y"))),
]


@st.composite
def calls(draw: st.DrawFn) -> tuple[type[BaseModel], dict[str, Any]]:
    """A type of arguments, and arguments that a model could write for it."""
    fields: dict[str, Any] = {}
    written: dict[str, Any] = {}
    for number in range(draw(st.integers(1, 4))):
        kind, values, defaults = draw(st.sampled_from(KINDS))
        name, default = f"p{number}", draw(st.just(NOTHING) | defaults)
        fields[name] = (kind, ... if default is NOTHING else default)
        if default is NOTHING or draw(st.booleans()):
            written[name] = draw(values)
    return create_model("Args", **fields), written


@given(calls())
async def test_rule_approver_trace_and_tool_get_the_same_value(
    call: tuple[type[BaseModel], dict[str, Any]],
) -> None:
    kind, written = call
    seen = Witness()
    agent = await by_agent(
        [Act(kind, seen.received)],
        written,
        constraints=[seen.rule],
        approval=ApprovalPolicy(actions=["act"]),
        approve=seen.approve,
    )
    (intent,), (received,) = intents(agent.trace), seen.received
    judged = [one for one in evaluations(agent.trace) if one.candidate_id == intent.candidate_id]
    values = [*seen.ruled, *seen.approved, *(one.arguments for one in judged), intent.arguments]
    assert len(values) >= 4
    texts = {json.dumps(value, sort_keys=True) for value in values}
    assert len(texts) == 1, texts
    assert received == kind.model_validate(written)
    assert received == kind.model_validate(intent.arguments)
    unset = {n for n in kind.model_fields if getattr(received, n) is None}
    assert set(kind.model_fields) - unset <= set(intent.arguments)
    assert not examine(agent.trace).violations


# ---- the named holes: a default of 500, "1e9", blanks ----


class Purse:
    """Pays; keeps what was paid."""

    def __init__(self) -> None:
        self.paid: list[Any] = []

    def tools(self) -> list[FunctionTool]:
        async def pay(amount: int = 500) -> str:
            self.paid.append(amount)
            return f"paid {amount}"

        async def transfer(amount: Decimal) -> str:
            self.paid.append(amount)
            return f"paid {amount}"

        async def send(amount: int | str) -> str:
            self.paid.append(amount)
            return f"sent {amount}"

        async def settle(amount: float) -> str:
            self.paid.append(amount)
            return f"settled {amount}"

        return [FunctionTool(one, description="Pays.") for one in (pay, transfer, send, settle)]


def at_most_100(candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
    arguments = candidate.arguments or {}
    if "amount" in arguments and arguments["amount"] > 100:
        return Verdict.forbid("at most 100")
    return Verdict.allow()


def over_100(action: str, arguments: Mapping[str, Any]) -> bool:
    return arguments.get("amount", 0) > 100


HOLES: list[tuple[str, dict[str, Any]]] = [
    ("pay", {}),
    ("transfer", {"amount": "1e9"}),
    ("transfer", {"amount": " 500 "}),
    ("send", {"amount": "1e9"}),
    ("settle", {"amount": "1e9"}),
]


@pytest.mark.parametrize(("name", "written"), HOLES)
@pytest.mark.parametrize("bench", [None, ConstrainedWorkbench, StaticWorkbench])
@pytest.mark.parametrize("stock", [False, True])
async def test_no_spelling_gets_past_at_most_100(
    name: str, written: dict[str, Any], bench: Callable[[Any], Workbench] | None, stock: bool
) -> None:
    purse = Purse()
    tools: list[Any] = list(purse.tools())
    rules = [at_most_100]
    if stock:
        inner: Any = tools if bench is None else bench(tools)
        guarded = ConstrainedWorkbench(inner, constraints=rules)
        assert (await guarded.call_tool(name, written)).is_error
    else:
        benches = [] if bench is None else [bench(tools)]
        agent = await by_agent([] if bench else tools, written, name, benches, constraints=rules)
        assert any(not one.survived for one in evaluations(agent.trace))
    assert purse.paid == []


@pytest.mark.parametrize("workbench", [False, True])
async def test_a_default_over_the_limit_of_an_approval_is_asked_about(workbench: bool) -> None:
    purse, requests = Purse(), list[Mapping[str, Any]]()

    async def deny(request: ApprovalRequest) -> ApprovalAnswer:
        requests.append(request.arguments)
        return request.deny("ann", "too much")

    policy = ApprovalPolicy(when=[over_100])
    if workbench:
        bench = ConstrainedWorkbench(purse.tools(), approval=policy, approve=deny)
        await bench.call_tool("pay", {})
    else:
        await by_agent(purse.tools(), {}, "pay", approval=policy, approve=deny)
    assert purse.paid == []
    assert requests == [{"amount": 500}]


async def test_a_tool_under_another_name_in_a_workbench_is_completed_too() -> None:
    purse = Purse()
    tools = cast("list[BaseTool[Any, Any]]", purse.tools())
    inner = StaticWorkbench(tools, {"pay": ToolOverride(name="spend")})
    result = await ConstrainedWorkbench(inner, constraints=[at_most_100]).call_tool("spend", {})
    assert result.is_error
    assert purse.paid == []


# ---- what JSON cannot show ----


async def complete(kind: type[BaseModel], written: Mapping[str, Any]) -> dict[str, Any]:
    runner = ToolRunner([Act(kind, [])])
    (spec,) = await runner.specs()
    return runner.complete(spec, dict(written))


async def test_a_default_of_none_that_its_type_does_not_take_is_left_out() -> None:
    received: list[Any] = []

    async def act(limit: int = None, size: int = 3) -> str:  # type: ignore[assignment] # pyright: ignore[reportArgumentType] # noqa: RUF013
        received.append((limit, size))
        return "done"

    agent = await by_agent([FunctionTool(act, description="Acts.")], {})
    (intent,) = intents(agent.trace)
    assert intent.arguments == {"size": 3}
    assert received == [(None, 3)]


async def test_a_validator_that_raises_anything_forbids() -> None:
    def broken(value: Any) -> Any:
        raise KeyError(value)

    seen = Witness()
    kind = create_model("Args", n=(Annotated[int, BeforeValidator(broken)], ...))
    await by_agent([Act(kind, seen.received)], {"n": 1})
    assert seen.received == []


async def test_a_default_factory_is_called_once() -> None:
    class Args(BaseModel):
        number: int = Field(default_factory=lambda: next(IDS))

    seen = Witness()
    agent = await by_agent(
        [Act(Args, seen.received)],
        {},
        constraints=[seen.rule],
        approval=ApprovalPolicy(actions=["act"]),
        approve=seen.approve,
    )
    (received,) = seen.received
    assert {json.dumps(each) for each in [*seen.ruled, *seen.approved]} == {
        json.dumps(received.model_dump())
    }
    assert not examine(agent.trace).violations


async def test_an_idempotency_key_is_no_argument_that_is_completed() -> None:
    keys: list[tuple[int, str]] = []

    async def act(amount: int = 5, *, idempotency_key: str) -> str:
        keys.append((amount, idempotency_key))
        return "done"

    agent = await by_agent([FunctionTool(act, description="Acts.")], {})
    (intent,) = intents(agent.trace)
    assert keys == [(5, intent.arguments["idempotency_key"])]
    assert len(keys[0][1]) == 32
    assert not examine(agent.trace).violations


# ---- tools of which only a JSON Schema is known ----


class Remote(StatelessWorkbench):
    """Tools elsewhere: keeps what was sent."""

    component_config_schema = BaseModel
    component_provider_override = "tests.Remote"

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters: Any = parameters
        self.sent: list[Any] = []

    async def list_tools(self) -> list[ToolSchema]:
        return [ToolSchema(name="act", description="Acts.", parameters=self._parameters)]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        self.sent.append(arguments)
        return ToolResult(name=name, result=[])


async def test_a_server_gets_the_defaults_of_its_schema_as_rules_saw_them() -> None:
    remote = Remote(
        {
            "type": "object",
            "properties": {
                "amount": {"type": "integer", "default": 500},
                "to": {"$ref": "#/$defs/to"},
                "note": {"type": "string", "default": None},
            },
            "$defs": {"to": {"type": "object", "properties": {"bank": {"default": "own"}}}},
        }
    )
    seen = Witness()
    await by_agent([], {"to": {}}, benches=[remote], constraints=[seen.rule])
    assert remote.sent == [{"amount": 500, "to": {"bank": "own"}}]
    assert all(one == remote.sent[0] for one in seen.ruled)
    await by_agent([], {"to": {}}, benches=[remote], constraints=[at_most_100])
    assert len(remote.sent) == 1


# ---- looking at runs, new and old ----


@pytest.mark.parametrize("bench", [False, True])
async def test_a_run_with_completed_arguments_replays_to_the_same_records(
    bench: bool, tmp_path: Path
) -> None:
    purse = Purse()

    def build(logs: Path | None = None) -> CoagAgent:
        call = FunctionCall(id="1", name="transfer", arguments='{"amount": "1e9"}')
        model = ScriptedModel(scripted_answers([[call], *["Done."] * 20]))
        tools: list[Any] = list(purse.tools())
        parts: dict[str, Any] = {"workbench": StaticWorkbench(tools)} if bench else {"tools": tools}
        return CoagAgent("clerk", model, depth="compact", logs=logs, **parts)

    agent = build(tmp_path)
    await agent.run(task="Do it.")
    await agent.close()
    assert agent.run_folder is not None
    report = await replay(agent.run_folder, agent=build)
    assert report.divergence is None, str(report.divergence)
    assert purse.paid == [Decimal(10**9)]


class Incomplete(Act):
    """Offers defaults and completes nothing, as every tool was run before."""

    def args_type(self) -> type[BaseModel]:
        return create_model("Nothing")


async def test_a_run_whose_arguments_were_not_completed_replays_as_it_was(tmp_path: Path) -> None:
    kind = create_model("Args", amount=(int, 500))

    def build(made: type[Act], logs: Path | None = None) -> CoagAgent:
        call = FunctionCall(id="1", name="act", arguments="{}")
        model = ScriptedModel(scripted_answers([[call], *["Done."] * 20]))
        return CoagAgent("clerk", model, tools=[made(kind, [])], depth="compact", logs=logs)

    agent = build(Incomplete, tmp_path)
    await agent.run(task="Do it.")
    await agent.close()
    assert [one.arguments for one in intents(agent.trace)] == [{}]
    assert agent.run_folder is not None
    report = await replay(agent.run_folder, agent=lambda: build(Act))
    assert report.divergence is None, str(report.divergence)


async def test_verify_finds_arguments_that_nothing_completed() -> None:
    agent = await by_agent(Purse().tools(), {"amount": 50}, "pay")
    assert not examine(agent.trace).violations
    forged = [_raised(record) for record in agent.trace]
    assert examine(forged).violations


def _raised(record: TraceRecord) -> TraceRecord:
    if isinstance(record, EvaluationOutcome):
        changed = [
            one.model_copy(update={"arguments": {"amount": 900}}) for one in record.evaluations
        ]
        return record.model_copy(update={"evaluations": tuple(changed)})
    return record


def test_an_idempotency_key_is_a_text() -> None:
    def act(amount: int, idempotency_key: int) -> str:
        """Acts."""
        return "done"

    with pytest.raises(ConfigurationError, match="'idempotency_key' is of type 'integer'"):
        CoagAgent("clerk", ScriptedModel(lambda _: "Done."), tools=[act])


class Hidden(BaseModel):
    """Serializers that would hide what runs."""

    amount: int = Field(500, exclude=True)
    fee: float = 7.0

    @field_serializer("fee")
    def small(self, fee: float) -> str:
        return "none"


class Odd(BaseModel):
    names: Iterable[str] = ()
    big: Decimal = Decimal("1e30")
    odd: Decimal = Decimal("0.1234567890123456789")
    inner: int = Field(5, validation_alias="outer", serialization_alias="other")


@dataclass(frozen=True)
class Spot:
    x: int
    y: float


class Names(RootModel[list[str]]):
    pass


def with_default(kind: Any, default: Any) -> type[BaseModel]:
    return create_model("Args", value=(kind, default))


ODD_SHOWN = {
    "names": ["a", "b"],
    "big": 10**30,
    "odd": "0.1234567890123456789",
    "outer": 5,
}


@pytest.mark.parametrize(
    ("kind", "written", "expected"),
    [
        (Hidden, {}, {"amount": 500, "fee": 7.0}),
        (Odd, {"names": ["a", "b"]}, ODD_SHOWN),
        (create_model("Args", amount=(int, "much")), {"amount": 5}, {"amount": 5}),
        (with_default(float, 1), {}, {"value": 1}),
        (with_default(list[float], [1, 2.5]), {}, {"value": [1, 2.5]}),
        (with_default(Spot, Spot(1, 2.5)), {}, {"value": {"x": 1, "y": 2.5}}),
        (with_default(Names, Names(["a", "b"])), {}, {"value": ["a", "b"]}),
        (with_default(dict[int, str], {1: "a"}), {}, {"value": {"1": "a"}}),
        (with_default(set[int], {3, 1, 2}), {}, {"value": [1, 2, 3]}),
        (with_default(deque[int], deque([1, 2])), {}, {"value": [1, 2]}),
        (with_default(Decimal, Decimal("2.50")), {}, {"value": 2.5}),
        (with_default(date, date(2026, 1, 2)), {}, {"value": "2026-01-02"}),
    ],
)
async def test_arguments_of_any_type_are_shown_as_json(
    kind: type[BaseModel], written: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert await complete(kind, written) == expected


def nested(levels: int) -> list[Any]:
    deep: list[Any] = []
    for _ in range(levels):
        deep = [deep]
    return deep


@pytest.mark.parametrize(
    ("kind", "written", "problem"),
    [
        (create_model("Args", amount=(int, "much")), {}, "cannot be judged: amount: "),
        (create_model("Args", pin=(SecretStr, ...)), {"pin": "1234"}, "cannot be judged"),
        (
            create_model("Args", n=(Annotated[int, AfterValidator(lambda n: n * 2)], ...)),
            {"n": 60},
            "makes other values of its own values",
        ),
        (with_default(float, Field(default_factory=lambda: math.inf)), {}, "no JSON number"),
        (with_default(list[Any], Field(default_factory=lambda: nested(300))), {}, "levels"),
    ],
)
async def test_what_json_cannot_show_as_it_would_run_is_refused(
    kind: type[BaseModel], written: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        await complete(kind, written)
