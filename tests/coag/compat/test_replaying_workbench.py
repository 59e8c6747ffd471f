"""Tools that answer from a recorded run."""

from __future__ import annotations

import asyncio
import runpy
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import (
    TextMessage,
    ToolCallExecutionEvent,
    ToolCallSummaryMessage,
)
from autogen_core import CancellationToken, FunctionCall, Image
from autogen_core.tools import (
    BaseStreamTool,
    FunctionTool,
    ImageResultContent,
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
from kits.stock import only, pull, push, pushes, recorder, written
from PIL.Image import new as new_image
from pydantic import BaseModel

from coag.compat import (
    ConstrainedWorkbench,
    GuardedResult,
    RecordedAgent,
    Recorder,
    RecordingClient,
    RecordingWorkbench,
    ReplayingClient,
    ReplayingWorkbench,
    read_result,
)
from coag.errors import ConfigurationError, RecordedToolError, ReplayDivergenceError
from coag.models import ScriptedModel, scripted_answers
from coag.schema import (
    ActionsListed,
    Intent,
    Note,
    Receipt,
    ReceiptStatus,
)

GREEN = ("push", {"button": "green"})


class Nothing(BaseModel):
    pass


class Played(BaseModel):
    beats: int


class Drum(BaseStreamTool[Nothing, ToolCallSummaryMessage, Played]):
    """Shows what it plays."""

    def __init__(self) -> None:
        super().__init__(Nothing, Played, "drum", "Drums.")

    async def run(self, args: Nothing, cancellation_token: CancellationToken) -> Played:
        raise NotImplementedError

    async def run_stream(
        self, args: Nothing, cancellation_token: CancellationToken
    ) -> AsyncGenerator[ToolCallSummaryMessage | Played, None]:
        beat = ToolCallSummaryMessage(content="boom", source="drum", tool_calls=[], results=[])
        yield beat
        yield beat.model_copy(update={"content": "bang"})
        yield Played(beats=2)


class Shelf(StaticWorkbench):
    """Gives the results of a test."""

    def __init__(self, *results: ToolResult | BaseException) -> None:
        super().__init__([FunctionTool(pull, description="Pulls.")])
        self._results = list(results)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        result = self._results.pop(0)
        if isinstance(result, BaseException):
            raise result
        return result


async def use(workbench: Workbench, *calls: tuple[str, dict[str, Any]]) -> list[ToolResult]:
    await workbench.list_tools()
    return [await workbench.call_tool(name, arguments) for name, arguments in calls]


async def taped(
    inner: Workbench | Sequence[Any], *calls: tuple[str, dict[str, Any]], logs: Path | None = None
) -> Recorder:
    """The record of some calls of tools or of a workbench."""
    recorded = recorder(logs)
    await use(RecordingWorkbench(inner, recorded), *calls)
    recorded.close()
    return recorded


async def streamed(workbench: StaticStreamWorkbench, name: str) -> list[Any]:
    await workbench.list_tools()
    return [item async for item in workbench.call_tool_stream(name, {})]


# ---- the same results ----

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
IMAGE = Image.from_pil(new_image("RGB", (2, 1), "teal"))
PARTS = TEXTS.map(lambda text: TextResultContent(content=text)) | st.just(
    ImageResultContent(content=IMAGE)
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "name": st.just("pull") | TEXTS.filter(bool),
    "result": st.lists(PARTS, max_size=3),
    "is_error": st.booleans(),
}
RESULTS = st.builds(ToolResult, **FIELDS) | st.builds(
    GuardedResult, may_have_happened=st.booleans(), **FIELDS
)


@given(result=RESULTS)
async def test_any_result_comes_back_with_its_parts_its_class_and_its_error(
    result: ToolResult,
) -> None:
    recorded = recorder()
    assert await use(RecordingWorkbench(Shelf(result), recorded), ("pull", {"lever": 1})) == [
        result
    ]
    replayed = ReplayingWorkbench(written(recorded))
    (again,) = await use(replayed, ("pull", {"lever": 1}))
    assert type(again) is type(result)
    assert again.model_dump_json() == result.model_dump_json()
    assert replayed.unused == ()


async def test_receipt_of_a_plain_result_holds_its_text_and_no_more() -> None:
    recorded = recorder()
    calls = [("push", {"button": button}) for button in ("green", "blue", "red")]
    results = await use(RecordingWorkbench([push], recorded), *calls)
    receipts = only(recorded, Receipt)
    assert [receipt.status for receipt in receipts] == [
        ReceiptStatus.DONE,
        ReceiptStatus.FAILED,  # the tool says so in its JSON
        ReceiptStatus.FAILED,
    ]
    assert [receipt.returned is None for receipt in receipts] == [True, False, True]
    assert await use(ReplayingWorkbench(written(recorded)), *calls) == results


async def test_tools_are_listed_with_their_schemas_and_written_once() -> None:
    strict = FunctionTool(pull, description="Pulls.", strict=True, name="pull")
    bare = ToolSchema(name="bare")

    class Odd(StaticStreamWorkbench):
        async def list_tools(self) -> list[ToolSchema]:
            return [*await super().list_tools(), bare]

    recorded = recorder()
    workbench = RecordingWorkbench(
        Odd([FunctionTool(push, description="Pushes."), strict]), recorded
    )
    schemas = await workbench.list_tools()
    assert await workbench.list_tools() == schemas
    (listed,), (note,) = only(recorded, ActionsListed), only(recorded, Note)
    assert [spec.name for spec in listed.specs] == ["push", "pull", "bare"]
    assert set(note.details) == {"pull", "bare"}
    assert await ReplayingWorkbench(written(recorded)).list_tools() == schemas


async def test_tools_that_change_are_listed_as_they_were_between_two_calls() -> None:
    class Changing(StaticStreamWorkbench):
        async def list_tools(self) -> list[ToolSchema]:
            now = "Now." if only(recorded, Receipt) else "Once."
            return [{**schema, "description": now} for schema in await super().list_tools()]

    async def used(workbench: Workbench) -> list[str]:
        seen: list[str] = []
        for _ in range(2):
            seen += [schema.get("description", "") for schema in await workbench.list_tools()]
            await workbench.call_tool(*GREEN)
        return seen

    recorded = recorder()
    inner = Changing([FunctionTool(push, description="")])
    wanted = await used(RecordingWorkbench(inner, recorded))
    assert len(only(recorded, ActionsListed)) == 2
    assert await used(ReplayingWorkbench(written(recorded))) == wanted == ["Once.", "Now."]


async def test_two_workbenches_share_a_run_and_each_is_replayed_by_its_names() -> None:
    recorded = recorder()
    pushing, pulling = (RecordingWorkbench([tool], recorded) for tool in (push, pull))
    await use(pushing, GREEN)
    await use(pulling, ("pull", {"lever": 1}))
    replayed = ReplayingWorkbench(written(recorded), tools=["pull"])
    assert await replayed.list_tools() == await pulling.list_tools()
    await use(replayed, ("pull", {"lever": 1}))
    assert replayed.unused == ()
    both = await ReplayingWorkbench(written(recorded)).list_tools()
    assert [schema["name"] for schema in both] == ["push"]
    with pytest.raises(ConfigurationError, match="fly"):
        ReplayingWorkbench(written(recorded), tools=["fly"])
    with pytest.raises(ConfigurationError, match="RecordingWorkbench"):
        ReplayingWorkbench([])


async def test_what_a_tool_shows_is_shown_again(tmp_path: Path) -> None:
    recorded = recorder(tmp_path)
    items = await streamed(RecordingWorkbench([Drum()], recorded), "drum")
    recorded.close()
    assert [type(item).__name__ for item in items] == [
        "ToolCallSummaryMessage",
        "ToolCallSummaryMessage",
        "ToolResult",
    ]
    assert await streamed(ReplayingWorkbench(recorded.folder), "drum") == items

    class Talking(StaticStreamWorkbench):
        async def call_tool_stream(self, *_args: Any, **_kwargs: Any) -> AsyncGenerator[Any, None]:
            yield "boom"
            yield ToolResult(name="drum", result=[])

    talk = recorder()
    items = await streamed(RecordingWorkbench(Talking([Drum()]), talk), "drum")
    assert await streamed(ReplayingWorkbench(written(talk)), "drum") == items
    other = [item async for item in ReplayingWorkbench(written(talk)).call_tool_stream("x")]
    assert [item.is_error for item in other] == [True]


@pytest.mark.parametrize("streaming", [False, True])
async def test_renamed_tools_and_workbenches_that_do_not_stream_are_recorded(
    streaming: bool,
) -> None:
    kind = StaticStreamWorkbench if streaming else StaticWorkbench
    renamed = kind([FunctionTool(pull, description="")], {"pull": ToolOverride(name="tug")})
    recorded = recorder()
    workbench = RecordingWorkbench(renamed, recorded)
    await workbench.list_tools()
    items = [item async for item in workbench.call_tool_stream("tug", {"lever": 2})]
    assert [item.to_text() for item in items] == ["pulled 2"]
    replayed = ReplayingWorkbench(written(recorded))
    assert [item async for item in replayed.call_tool_stream("tug", {"lever": 2})] == items


async def test_workbench_within_is_started_stopped_reset_and_described() -> None:
    inner = StaticStreamWorkbench([FunctionTool(pull, description="")])
    workbench = RecordingWorkbench(inner, recorder())
    assert workbench.wrapped is inner
    async with workbench:
        await workbench.reset()
        await workbench.load_state(await workbench.save_state())
    assert await workbench.save_state() == await inner.save_state()
    component = RecordingWorkbench(ConstrainedWorkbench([]), recorder()).dump_component()
    assert component.provider == "coag.compat.ConstrainedWorkbench"


# ---- the same calls ----


async def test_call_that_differs_is_an_error_that_is_kept_and_raised_at_the_end() -> None:
    recorded = await taped([push], GREEN)
    replayed = ReplayingWorkbench(written(recorded))
    (result,) = await use(replayed, ("push", {"button": "blue"}))
    assert result.is_error
    assert "push was not run: The replay differs at tool call 1" in result.to_text()
    with pytest.raises(ReplayDivergenceError) as caught:
        replayed.check()
    found = caught.value
    assert (found.where, found.recorded, found.now) == ("arguments.button", '"green"', '"blue"')
    with pytest.raises(ReplayDivergenceError):
        await replayed.stop()
    assert [intent.action for intent in replayed.unused] == ["push"]
    fresh = ReplayingWorkbench(written(recorded))
    with pytest.raises(ReplayDivergenceError, match="all 1 recorded tool calls"):
        async with fresh:
            await use(fresh, *[GREEN] * 2)


async def test_assistant_does_not_hang_in_a_replay_that_diverges() -> None:
    recorded = await taped([push], GREEN)
    replayed = ReplayingWorkbench(written(recorded))
    model = ScriptedModel(scripted_answers([[pushes("blue")]]))
    agent = AssistantAgent("a", model, workbench=replayed)
    async with asyncio.timeout(5):
        result = await agent.run(task="go")
    assert "The replay differs" in result.messages[-1].to_text()


@pytest.mark.broken_trace("it cuts the trace as a crash does")
async def test_call_that_a_crash_broke_off_has_no_result(tmp_path: Path) -> None:
    recorded = await taped([push], GREEN, logs=tmp_path)
    trace = recorded.folder.trace_path
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join(lines[:-1]) + lines[-1][:30])
    replayed = ReplayingWorkbench(recorded.folder)
    await use(replayed, GREEN)
    with pytest.raises(ReplayDivergenceError, match="not yet at its end"):
        replayed.check()


async def test_cancelled_call_leaves_a_receipt_and_no_result() -> None:
    begun = asyncio.Event()

    async def wait() -> str:
        """Waits."""
        begun.set()
        await asyncio.Event().wait()
        return ""

    recorded = recorder()
    workbench = RecordingWorkbench([wait], recorded)
    running = asyncio.create_task(use(workbench, ("wait", {})))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    (receipt,) = only(recorded, Receipt)
    assert receipt.status is ReceiptStatus.CANCELLED
    replayed = ReplayingWorkbench(written(recorded))
    await use(replayed, ("wait", {}))
    with pytest.raises(ReplayDivergenceError, match="cancelled"):
        replayed.check()


async def test_workbench_that_raises_is_written_down_and_raises_again() -> None:
    class LostError(RuntimeError):
        may_have_happened = True

    errors = [ConnectionError("no route"), LostError("gone")]
    recorded = recorder()
    workbench = RecordingWorkbench(Shelf(*errors), recorded)
    for error in errors:
        with pytest.raises(type(error)):
            await use(workbench, ("pull", {"lever": 1}))
    statuses = [receipt.status for receipt in only(recorded, Receipt)]
    assert statuses == [ReceiptStatus.FAILED, ReceiptStatus.UNKNOWN]
    replayed = ReplayingWorkbench(written(recorded))
    with pytest.raises(RecordedToolError, match="'pull' raised ConnectionError: no route"):
        await use(replayed, ("pull", {"lever": 1}))


@pytest.mark.broken_trace("it ends the trace under a running agent")
async def test_nothing_runs_whose_intent_cannot_be_written(tmp_path: Path) -> None:
    pulled: list[int] = []

    def yank(lever: int) -> str:
        """Yanks."""
        pulled.append(lever)
        return ""

    recorded = recorder(tmp_path)
    workbench = RecordingWorkbench([yank], recorded)
    await workbench.list_tools()
    recorded.close()
    (result,) = await use(workbench, ("yank", {"lever": 1}))
    assert result.is_error
    items = [item async for item in workbench.call_tool_stream("yank", {"lever": 1})]
    assert items == [result]
    assert workbench.problem is not None
    assert pulled == []


async def test_stream_that_ends_without_a_result_or_is_left_has_a_receipt() -> None:
    class Silent(StaticStreamWorkbench):
        async def call_tool_stream(self, *_args: Any, **_kwargs: Any) -> AsyncGenerator[Any, None]:
            yield "boom"

    recorded = recorder()
    workbench = RecordingWorkbench(Silent([Drum()]), recorded)
    with pytest.raises(RuntimeError, match="ended without a result"):
        await streamed(workbench, "drum")
    stream = workbench.call_tool_stream("drum", {})
    assert await anext(stream) == "boom"
    await stream.aclose()
    statuses = [receipt.status for receipt in only(recorded, Receipt)]
    assert statuses == [ReceiptStatus.FAILED, ReceiptStatus.CANCELLED]


async def test_tools_get_the_models_call_id_or_that_of_the_intent() -> None:
    class Ids(Shelf):
        async def call_tool(self, *args: Any, **kwargs: Any) -> ToolResult:
            content = TextResultContent(content=str(args[3]))
            return ToolResult(name="pull", result=[content])

    seen: list[str] = []
    for intent_ids in (False, True):
        workbench = RecordingWorkbench(Ids(), recorder(), intent_ids=intent_ids)
        result = await workbench.call_tool("pull", {"lever": 1}, call_id="model-1")
        seen.append(result.to_text())
    assert seen == ["model-1", "intent-000001"]


# ---- with agents ----


async def play(client: Any, workbench: Workbench, recorded: Recorder) -> Sequence[Any]:
    agent = AssistantAgent("clerk", client, workbench=workbench, reflect_on_tool_use=True)
    result = await RecordedAgent(agent, recorded).run(task="Push both.")
    return result.messages


async def test_recorded_agent_and_workbench_write_each_call_once(tmp_path: Path) -> None:
    calls = [pushes("green"), pushes("blue")]
    unknown = FunctionCall(id="2", name="fly", arguments="{}")
    model = ScriptedModel(scripted_answers([[*calls, unknown], "Done."]))
    recorded, again = recorder(tmp_path / "a"), recorder(tmp_path / "b")
    workbench = RecordingWorkbench([push], recorded)
    wanted = await play(RecordingClient(model, recorded), workbench, recorded)
    recorded.close()
    assert [intent.action for intent in only(recorded, Intent)] == ["push", "push", "fly"]
    receipts = {receipt.intent_id: receipt.status for receipt in only(recorded, Receipt)}
    assert len(receipts) == len(only(recorded, Receipt)) == 3
    replayed = ReplayingWorkbench(recorded.folder)
    client = ReplayingClient(recorded.folder)
    messages = await play(client, replayed, again)
    again.close()
    assert [message.to_text() for message in messages] == [each.to_text() for each in wanted]
    results = [each for each in messages if isinstance(each, ToolCallExecutionEvent)]
    assert [result.is_error for result in results[0].content] == [False, False, True]
    replayed.check()
    assert (replayed.unused, client.unused) == ((), ())


def test_example_replays_a_team_to_the_same_messages(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[3] / "examples" / "replay_team.py"
    runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out
    assert "reviewer  APPROVED" in printed
    assert printed.endswith("the same: True\n")


async def test_component_names_the_folder_and_the_tools(tmp_path: Path) -> None:
    recorded = await taped([push], GREEN, logs=tmp_path)
    replayed = ReplayingWorkbench(recorded.folder, tools=["push"])
    await replayed.reset()
    await replayed.load_state(await replayed.save_state())
    loaded = Workbench.load_component(replayed.dump_component())
    assert isinstance(loaded, ReplayingWorkbench)
    (result,) = await use(loaded, GREEN)
    assert not read_result(result.to_text()).is_error
    with pytest.raises(ConfigurationError, match="records in RAM"):
        ReplayingWorkbench(written(recorded)).dump_component()


async def test_class_of_a_result_that_is_nowhere_is_refused_before_anything_runs() -> None:
    class LocalResult(ToolResult):
        extra: int = 1

    result = LocalResult(name="pull", result=[])
    recorded = await taped(Shelf(result), ("pull", {"lever": 1}))
    with pytest.raises(ConfigurationError):
        ReplayingWorkbench(written(recorded))
    (receipt,) = only(recorded, Receipt)
    for kind, problem in (
        ("nowhere.at_all:Result", r"Import 'nowhere\.at_all'"),
        ("coag.schema:Intent", "no ToolResult"),
    ):
        returned = receipt.returned.model_copy(update={"type": kind})
        changed = receipt.model_copy(update={"returned": returned})
        records = [changed if each is receipt else each for each in recorded.records]
        with pytest.raises(ConfigurationError, match=problem):
            ReplayingWorkbench(records)


@pytest.mark.parametrize("written", ['["a"]', '"a"', "3", "true"])
@pytest.mark.parametrize("turns", [True, False])
async def test_arguments_that_are_no_object_hang_no_stock_agent(written: str, turns: bool) -> None:
    def look(place: str = "") -> str:
        """Looks around."""
        return f"nothing at {place}"

    call = FunctionCall(id="1", name="look", arguments=written)
    recorder = Recorder(agent="a")
    model = RecordingClient(ScriptedModel(scripted_answers([[call], "done"])), recorder)
    agent = AssistantAgent("a", model, workbench=RecordingWorkbench([look], recorder))
    recorded = RecordedAgent(agent, recorder) if turns else agent
    message = TextMessage(content="Look.", source="user")
    async with asyncio.timeout(20):
        await recorded.on_messages([message], CancellationToken())
    (intent,) = [record for record in recorder.records if isinstance(record, Intent)]
    assert intent.arguments == {"unparsed": written}
