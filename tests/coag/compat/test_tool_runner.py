from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from autogen_core import CancellationToken
from autogen_core.tools import (
    BaseTool,
    FunctionTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    TextResultContent,
    ToolOverride,
    ToolResult,
    ToolSchema,
    Workbench,
)
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from coag.compat import ToolRunner, read_result
from coag.errors import ConfigurationError
from coag.schema import ActionCall, ActionResult, Failure


async def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


async def run(runner: ToolRunner, name: str, **arguments: Any) -> ActionResult:
    await runner.specs()
    return await runner.execute(ActionCall(id="run.intent-1", action=name, arguments=arguments))


async def test_a_function_becomes_an_action_with_its_schema() -> None:
    (spec,) = await ToolRunner([add]).specs()
    assert (spec.name, spec.description, spec.internal) == ("add", "Add two integers.", False)
    assert set(spec.parameters["properties"]) == {"a", "b"}


async def test_a_tool_returns_its_text() -> None:
    assert (await run(ToolRunner([add]), "add", a=2, b=3)).content == "5"


async def test_the_action_id_reaches_the_tool_as_its_call_id() -> None:
    seen: list[str | None] = []

    class Args(BaseModel):
        pass

    class Spy(BaseTool[Args, Args]):
        def __init__(self) -> None:
            super().__init__(Args, Args, "spy", "Spies.")

        async def run(self, args: Args, cancellation_token: CancellationToken) -> Args:
            return args

        async def run_json(
            self,
            args: Mapping[str, Any],
            cancellation_token: CancellationToken,
            call_id: str | None = None,
        ) -> Any:
            seen.append(call_id)
            return await super().run_json(args, cancellation_token, call_id)

    await run(ToolRunner([Spy()]), "spy")
    assert seen == ["run.intent-1"]


async def test_a_tool_that_raises_is_a_failed_result() -> None:
    async def boom() -> str:
        """Raises."""
        raise OSError("no disk")

    result = await run(ToolRunner([boom]), "boom")
    assert result.is_error
    assert result.content == "boom raised OSError: no disk"
    assert not result.outcome_unknown


async def test_an_error_that_says_it_may_have_acted_leaves_the_outcome_unknown() -> None:
    class LineLostError(Exception):
        may_have_happened = True

    async def send() -> str:
        """Sends."""
        raise LineLostError("line lost")

    result = await run(ToolRunner([send]), "send")
    assert result.is_error
    assert result.outcome_unknown


async def test_a_tool_that_hangs_is_given_up_and_its_outcome_is_unknown() -> None:
    async def hang() -> str:
        """Hangs."""
        await asyncio.Event().wait()
        return "never"

    result = await run(ToolRunner([hang], timeout=0.05), "hang")
    assert result.outcome_unknown
    assert "no answer within 0.05 s" in result.content


async def test_a_tool_that_raises_cancelled_error_does_not_cancel_the_agent() -> None:
    async def quit_it() -> str:
        """Cancels itself."""
        raise asyncio.CancelledError

    result = await run(ToolRunner([quit_it]), "quit_it")
    assert result.is_error
    assert "cancelled by itself" in result.content


async def test_a_cancelled_agent_cancels_its_tool_and_stops() -> None:
    started = asyncio.Event()
    ended: list[str] = []

    async def work() -> str:
        """Works."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")
        return "never"

    task = asyncio.create_task(run(ToolRunner([work]), "work"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["cleaned up"]


async def test_megabytes_of_output_are_cut_with_a_note() -> None:
    async def flood() -> str:
        """Floods."""
        return "x" * 2_000_000

    result = await run(ToolRunner([flood]), "flood")
    assert len(result.content) <= 48_000
    assert "of 2,000,000 characters left out here]" in result.content


async def test_what_an_agent_can_read_on_in_says_how() -> None:
    async def flood() -> str:
        """Floods."""
        return "\n".join(f"line {number}" for number in range(10_000))

    result = await run(ToolRunner([flood], readable=lambda: 1_000), "flood")
    assert len(result.content) <= 1_000
    assert result.content.startswith("line 0\n")
    assert result.content.endswith("line 9999")
    assert 'read_more(of="t' in result.content


async def test_a_workbench_brings_its_tools() -> None:
    bench = StaticWorkbench([FunctionTool(add, description="Adds.")])
    runner = ToolRunner(workbenches=[bench])
    assert [spec.name for spec in await runner.specs()] == ["add"]
    assert (await run(runner, "add", a=1, b=1)).content == "2"


async def test_a_workbench_that_raises_is_a_failed_result() -> None:
    class Broken(StaticWorkbench):
        component_provider_override = "tests.Broken"

        async def list_tools(self) -> list[ToolSchema]:
            return [ToolSchema(name="thing", description="A thing.")]

        async def call_tool(
            self,
            name: str,
            arguments: Mapping[str, Any] | None = None,
            cancellation_token: CancellationToken | None = None,
            call_id: str | None = None,
        ) -> ToolResult:
            raise RuntimeError("bench is down")

    result = await run(ToolRunner(workbenches=[Broken([])]), "thing")
    assert result.is_error
    assert "bench is down" in result.content


async def test_of_two_tools_with_one_name_the_given_tool_wins_over_the_workbench() -> None:
    class Other(StaticWorkbench):
        component_provider_override = "tests.Other"

        async def list_tools(self) -> list[ToolSchema]:
            return [ToolSchema(name="add", description="Another add.")]

        async def call_tool(
            self,
            name: str,
            arguments: Mapping[str, Any] | None = None,
            cancellation_token: CancellationToken | None = None,
            call_id: str | None = None,
        ) -> ToolResult:
            return ToolResult(name=name, result=[TextResultContent(content="other")])

    bench: Workbench = Other([])
    assert (await run(ToolRunner([add], [bench]), "add", a=1, b=2)).content == "3"


def test_two_tools_with_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"unique.*\['add'\]"):
        ToolRunner([add, add])


def test_something_that_is_no_tool_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'hammer' is no tool"):
        ToolRunner(["hammer"])  # pyright: ignore[reportArgumentType] - the point of the test


async def test_a_tool_that_is_not_there_is_a_failed_result() -> None:
    assert (await run(ToolRunner(), "fly")).content == "There is no tool 'fly'."


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


async def test_a_dictionary_comes_back_as_json() -> None:
    async def count() -> dict[str, int]:
        """Counts."""
        return {"litres": 30}

    result = await run(ToolRunner([count]), "count")
    assert (result.content, result.data) == ('{"litres": 30}', {"litres": 30})


# ---- hostile tools ----


async def test_a_tool_that_swallows_its_cancellation_is_given_up_all_the_same() -> None:
    let_go = asyncio.Event()
    swallowed: list[str] = []

    async def stubborn() -> str:
        """Does not stop."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            swallowed.append("cancelled")
        await let_go.wait()
        raise ValueError("an error that nobody waits for")

    async with asyncio.timeout(5):
        result = await run(ToolRunner([stubborn], timeout=0.05), "stubborn")
    assert result.outcome_unknown
    assert swallowed == ["cancelled"]
    let_go.set()


async def test_a_cancelled_agent_stops_though_its_tool_does_not() -> None:
    started, let_go = asyncio.Event(), asyncio.Event()

    async def stubborn() -> str:
        """Does not stop."""
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await let_go.wait()
        return "late"

    task = asyncio.create_task(run(ToolRunner([stubborn]), "stubborn"))
    await started.wait()
    task.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(asyncio.CancelledError):
            await task
    let_go.set()


class ReadTimeout(Exception):
    """As clients of HTTP name it."""


class ConnectTimeout(Exception):
    """As they name that nothing was reached."""


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        (TimeoutError("no answer"), True),
        (ReadTimeout("no answer"), True),
        (ConnectionResetError("reset by peer"), True),
        (ConnectTimeout("nobody there"), False),
        (ConnectionRefusedError("refused"), False),
        (ValueError("no such customer"), False),
    ],
)
async def test_a_time_out_that_a_tool_raises_leaves_its_outcome_unknown(
    error: Exception, unknown: bool
) -> None:
    async def query() -> str:
        """Queries."""
        raise error

    result = await run(ToolRunner([query]), "query")
    assert result.content == f"query raised {type(error).__name__}: {error}"
    assert result.outcome_unknown is unknown


async def test_a_tool_that_asks_the_process_to_end_ends_it_through_the_agents_own_task() -> None:
    async def leave() -> str:
        """Leaves."""
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        await run(ToolRunner([leave]), "leave")


async def test_an_error_that_cannot_say_whether_it_acted_leaves_the_outcome_unknown() -> None:
    class OddError(Exception):
        @property
        def may_have_happened(self) -> bool:
            raise RuntimeError("no idea")

    async def odd() -> str:
        """Raises."""
        raise OddError("odd")

    result = await run(ToolRunner([odd]), "odd")
    assert result.content == "odd raised OddError: odd"
    assert result.outcome_unknown


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


def test_data_longer_than_the_output_is_kept_within_its_own_bound() -> None:
    text = json.dumps({"rows": "x" * 10_000})
    result = read_result(text, limit=4_000)
    assert len(result.content) <= 4_000
    assert result.data == {"rows": "x" * 10_000}


def test_a_failure_told_in_json_counts_though_its_data_are_not_kept() -> None:
    result = read_result('{"ok": false, "failure": "deterministic", "n": NaN}')
    assert (result.is_error, result.failure, result.data) == (True, Failure.DETERMINISTIC, None)


def test_data_hold_no_text_that_utf_8_cannot_carry() -> None:
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


async def test_an_error_whose_message_raises_is_told_by_its_type() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    runner = ToolRunner(workbenches=[Bench(MuteError())])
    await runner.specs()
    assert "MuteError: (its message cannot be read)" in runner.problems[0]


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
        {"name": "odd", "parameters": {"properties": {"a": {"pattern": "("}}}},
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


def test_a_tool_with_the_name_of_an_action_of_the_agents_own_is_refused() -> None:
    async def respond(text: str) -> str:
        """Responds."""
        return text

    with pytest.raises(ConfigurationError, match=r"own actions: \['respond'\]"):
        ToolRunner([respond])


class Flapping(StaticWorkbench):
    """A workbench that lists its tool while it is up; else nothing, or it raises."""

    component_provider_override = "tests.Flapping"

    def __init__(self, says: str, *, raises: bool = False) -> None:
        super().__init__([FunctionTool(lambda: says, says, name="send")])
        self.up = True
        self.raises = raises

    async def list_tools(self) -> list[ToolSchema]:
        if not self.up and self.raises:
            raise ConnectionError("away")
        return await super().list_tools() if self.up else []


async def test_of_one_name_in_two_workbenches_the_first_is_offered_and_the_other_told() -> None:
    runner = ToolRunner(workbenches=[Flapping("safe"), Flapping("dangerous")])
    assert [spec.description for spec in await runner.specs()] == ["safe"]
    assert runner.problems == (
        "Flapping has a tool 'send': the one that was offered first under this name stays. "
        "Rename one of them.",
    )


@pytest.mark.parametrize("raises", [True, False])
async def test_a_name_never_becomes_another_workbenchs_while_its_own_is_away(raises: bool) -> None:
    first, second = Flapping("safe", raises=raises), Flapping("dangerous")
    runner = ToolRunner(workbenches=[first, second])
    await runner.specs()
    first.up = False
    assert await runner.specs() == []
    assert "Flapping has a tool 'send'" in runner.problems[-1]
    assert (await run(runner, "send")).content == "safe"
    first.up = True
    assert [spec.description for spec in await runner.specs()] == ["safe"]


async def test_a_tool_that_says_it_was_not_found_is_called_once() -> None:
    paid: list[int] = []

    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        raise ValueError("Tool pay not found.")

    bench = StaticStreamWorkbench([FunctionTool(pay, "Pays.")])
    result = await run(ToolRunner(workbenches=[bench]), "pay", amount=5)
    assert (paid, result.is_error) == ([5], True)


@pytest.mark.parametrize("kind", [StaticWorkbench, StaticStreamWorkbench])
async def test_a_tool_is_called_by_the_name_of_its_override(kind: type[StaticWorkbench]) -> None:
    bench = kind([FunctionTool(add, "Adds.")], {"add": ToolOverride(name="plus")})
    assert (await run(ToolRunner(workbenches=[bench]), "plus", a=1, b=2)).content == "3"


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
