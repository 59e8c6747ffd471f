from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from autogen_core import CancellationToken
from autogen_core.tools import (
    FunctionTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    ToolResult,
    ToolSchema,
)
from hypothesis import given
from hypothesis import strategies as st

from coag.compat import ToolRunner, read_result, tool
from coag.errors import ConfigurationError
from coag.schema import ActionCall, ActionResult, Failure


async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def run(runner: ToolRunner, name: str, **arguments: Any) -> ActionResult:
    await runner.specs()
    return await runner.execute(ActionCall(id="run.intent-1", action=name, arguments=arguments))


@pytest.mark.parametrize(
    ("text", "is_error", "failure"),
    [
        ('{"ok": true}', False, None),
        ('{"ok": false, "failure": "deterministic"}', True, Failure.DETERMINISTIC),
        ('{"ok": false, "failure": "transient"}\nSTATE {}', True, Failure.TRANSIENT),
        ('{"ok": false, "failure": "odd"}', True, None),
        ('{"ok": fal', False, None),
        ("plain words", False, None),
    ],
)
def test_a_tool_can_say_how_it_went(text: str, is_error: bool, failure: Failure | None) -> None:
    result = read_result(text)
    assert (result.is_error, result.failure) == (is_error, failure)


async def test_a_tool_that_asks_the_process_to_end_ends_it_through_the_agents_own_task() -> None:
    async def leave() -> str:
        """Leaves."""
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await run(ToolRunner([leave]), "leave")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 60 + "]" * 60,
        '{"n": NaN}',
        '{"n": -Infinity}',
        '{"n": 1e999}',
        '{"n": ' + "9" * 5_000 + "}",
        '{"rows": "' + "x" * 20_000 + '"}',
    ],
)
def test_data_beyond_our_bounds_is_not_kept(text: str) -> None:
    assert read_result(text).data is None


def test_data_have_bounds_of_their_own() -> None:
    result = read_result(json.dumps({"rows": "x" * 10_000}), limit=4_000)
    assert len(result.content) <= 4_000
    assert result.data == {"rows": "x" * 10_000}
    result = read_result('{"ok": false, "failure": "deterministic", "n": NaN}')
    assert (result.is_error, result.failure, result.data) == (True, Failure.DETERMINISTIC, None)
    assert read_result('{"a\\ud800": ["\\udfff"]}').data == {"a?": ["?"]}


@given(st.text() | st.text(alphabet='{}[]",:1eNa-\\ud8', max_size=40))
def test_whatever_a_tool_says_the_result_survives_json(text: str) -> None:
    result = read_result(text)
    assert ActionResult.model_validate_json(result.model_dump_json()) == result


class Bench(StaticWorkbench):
    """A workbench that lists what it was given, or raises it."""

    component_provider_override = "tests.Bench"

    def __init__(self, listed: Any) -> None:
        super().__init__([])
        self.listed = listed

    async def list_tools(self) -> list[ToolSchema]:
        if isinstance(self.listed, BaseException):
            raise self.listed
        return self.listed


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (OSError("no such host"), "Bench could not list its tools: OSError: no such host"),
        (asyncio.CancelledError(), "Bench was cancelled by itself"),
    ],
)
async def test_a_workbench_that_cannot_list_its_tools_is_left_out(
    problem: BaseException, why: str
) -> None:
    bench = Bench(problem)
    runner = ToolRunner([add], [bench])
    assert [spec.name for spec in await runner.specs()] == ["add"]
    assert why in runner.problems[0]

    bench.listed = [ToolSchema(name="thing")]
    assert [spec.name for spec in await runner.specs()] == ["add", "thing"]
    assert runner.problems == ()


@pytest.mark.parametrize(
    "schema",
    [
        {"name": "odd", "parameters": True},
        {"name": "odd", "parameters": {"properties": True}},
        {"name": "odd", "parameters": {"default": float("nan")}},
        {"name": "an odd\nname"},
        {"name": None},
        {"description": "Nameless."},
        {"name": "odd", "parameters": {"properties": {"a": {"pattern": "(?<=a)b"}}}},
        {"name": "odd", "parameters": {"$ref": "#"}},
        {"name": "odd", "parameters": {"enum": ["x" * 100_000]}},
        "odd",
    ],
)
async def test_a_tool_that_cannot_be_offered_does_not_keep_the_others_away(schema: Any) -> None:
    runner = ToolRunner(workbenches=[Bench([schema, ToolSchema(name="good")])])
    assert [spec.name for spec in await runner.specs()] == ["good"]
    assert "Bench has a tool that is left out" in runner.problems[0]


async def test_a_workbench_cannot_take_over_the_agents_own_actions() -> None:
    runner = ToolRunner(workbenches=[Bench([ToolSchema(name="respond"), ToolSchema(name="good")])])
    assert [spec.name for spec in await runner.specs()] == ["good"]
    assert "'respond'" in runner.problems[0]


async def test_a_tool_that_says_it_was_not_found_is_called_once() -> None:
    paid: list[int] = []

    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        raise ValueError("Tool pay not found.")

    bench = StaticStreamWorkbench([FunctionTool(pay, "Pays.")])
    result = await run(ToolRunner(workbenches=[bench]), "pay", amount=5)
    assert (paid, result.is_error) == ([5], True)


async def test_what_a_tool_does_to_its_arguments_stays_with_it() -> None:
    class Scribbler(StaticWorkbench):
        component_provider_override = "tests.Scribbler"

        async def call_tool(
            self,
            name: str,
            arguments: Mapping[str, Any] | None = None,
            cancellation_token: CancellationToken | None = None,
            call_id: str | None = None,
        ) -> ToolResult:
            assert isinstance(arguments, dict)
            arguments["list"].append("scribble")
            arguments["more"] = 1
            return ToolResult(name=name, result=[])

    runner = ToolRunner(workbenches=[Scribbler([FunctionTool(add, "", name="note")])])
    await runner.specs()
    call = ActionCall(id="1", action="note", arguments={"list": []})
    await runner.execute(call)
    assert call.arguments == {"list": []}


# ---- what tools do wrong ----


class LineLostError(Exception):
    may_have_happened = True


class OddError(Exception):
    @property
    def may_have_happened(self) -> bool:
        raise RuntimeError("no idea")


class ReadTimeout(Exception):
    """As clients of HTTP name it."""


class ConnectTimeout(Exception):
    """As they name that nothing was reached."""


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        (OSError("no disk"), False),
        (LineLostError("line lost"), True),
        (OddError("odd"), True),
        (TimeoutError("no answer"), True),
        (ReadTimeout("no answer"), True),
        (ConnectionResetError("reset by peer"), True),
        (ConnectionError("line went dead"), True),
        (asyncio.IncompleteReadError(b"", 3), True),
        (httpx.ReadError("cut"), True),
        (httpx.RemoteProtocolError("closed without an answer"), True),
        (httpx.ConnectError("nobody there"), False),
        (ConnectTimeout("nobody there"), False),
        (ConnectionRefusedError("refused"), False),
        (ValueError("no such customer"), False),
    ],
)
@pytest.mark.parametrize("bench", [False, True])
async def test_what_a_tool_raises_is_a_failed_result_that_says_whether_it_acted(
    error: Exception, unknown: bool, bench: bool
) -> None:
    async def act() -> str:
        """Acts."""
        raise error

    class Raising(StaticWorkbench):
        component_provider_override = "tests.Raising"

        async def call_tool(self, *args: Any, **kwargs: Any) -> ToolResult:
            raise error

    benches = [Raising([FunctionTool(act, "Acts.")])] if bench else []
    result = await run(ToolRunner([] if bench else [act], benches), "act")
    assert result.is_error
    assert result.content == f"act raised {type(error).__name__}: {error}"
    assert result.outcome_unknown is unknown


class RefusedError(Exception):
    may_have_happened = False


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        (KeyError("id"), True),
        (ConnectionRefusedError("refused"), False),
        (RefusedError("no such customer"), False),
    ],
)
async def test_what_a_critical_tool_raises_leaves_open_whether_it_acted_unless_it_says_so(
    error: Exception, unknown: bool
) -> None:
    @tool(critical=True)
    def pay() -> str:
        """Pays."""
        raise error

    result = await run(ToolRunner([pay]), "pay")
    assert result.outcome_unknown is unknown


@pytest.mark.parametrize("ends", ["late", "cancelled", "cancelled, and stops"])
async def test_a_tool_that_is_given_up_is_cancelled_and_not_waited_for(ends: str) -> None:
    started, let_go = asyncio.Event(), asyncio.Event()
    seen: list[str] = []

    async def work() -> str:
        """Works."""
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            if ends == "cancelled, and stops":
                raise
        await let_go.wait()
        raise ValueError("an error that nobody waits for")

    runner = ToolRunner([work], timeout=0.05 if ends == "late" else 60)
    task = asyncio.create_task(run(runner, "work"))
    await started.wait()
    async with asyncio.timeout(5):
        if ends == "late":
            result = await task
            assert (result.is_error, result.outcome_unknown) == (True, True)
            assert "no answer within 0.05 s" in result.content
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    assert seen == ["cancelled"]
    let_go.set()


async def test_a_function_becomes_an_action_and_a_workbench_brings_its_tools() -> None:
    async def count() -> dict[str, int]:
        """Counts."""
        return {"litres": 30}

    bench = StaticWorkbench([FunctionTool(add, "Another."), FunctionTool(add, "", name="plus")])
    runner = ToolRunner([add, count], [bench])
    first, *others = await runner.specs()
    assert (first.name, first.description, first.internal) == ("add", "Add two integers.", False)
    assert set(first.parameters["properties"]) == {"a", "b"}
    assert [spec.name for spec in others] == ["count", "plus"]
    assert (await run(runner, "add", a=2, b=3)).content == "5"
    assert (await run(runner, "plus", a=1, b=1)).content == "2"
    assert (await run(runner, "fly")).content == "There is no tool 'fly'."
    result = await run(runner, "count")
    assert (result.content, result.data) == ('{"litres": 30}', {"litres": 30})


def test_tools_of_one_name_and_objects_that_are_no_tools_are_refused() -> None:
    async def respond(text: str) -> str:
        """Responds."""
        return text

    for tools, problem in (
        ([add, add], r"unique.*\['add'\]"),
        (["hammer"], "'hammer' is no tool"),
        ([respond], r"own actions: \['respond'\]"),
    ):
        with pytest.raises(ConfigurationError, match=problem):
            ToolRunner(tools)  # pyright: ignore[reportArgumentType] - the point of the test


async def test_output_is_cut_with_a_note_of_how_to_read_on() -> None:
    async def flood() -> str:
        """Floods."""
        return "\n".join(f"line {number}" for number in range(200_000))

    result = await run(ToolRunner([flood]), "flood")
    assert len(result.content) <= 48_000
    assert "characters left out here]" in result.content
    result = await run(ToolRunner([flood], readable=lambda: 1_000), "flood")
    assert len(result.content) <= 1_000
    assert result.content.startswith("line 0\n")
    assert result.content.endswith("line 199999")
    assert 'read_more(of="t' in result.content


async def test_a_tool_that_is_left_out_of_what_is_offered_is_noted_once() -> None:
    async def respond(text: str) -> str:
        """Answers."""
        return text

    bench = StaticWorkbench(
        [FunctionTool(respond, "Answers."), FunctionTool(add, "Adds.", name="add")]
    )
    runner, notes = ToolRunner([add], [bench]), list[str]()
    for _ in range(2):
        assert [one["name"] for one in await runner.schemas(notes.append)] == ["add"]
    own, taken = notes
    assert own == "StaticWorkbench has a tool 'respond': the agent's own action stays."
    assert taken.startswith("StaticWorkbench has a tool 'add': the one that was offered first")
