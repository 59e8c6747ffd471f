"""`SituatedAgent`: goals as activities that wait beside their tools."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_ext.models.replay import ReplayChatCompletionClient
from kits.kettles import GOAL, careful, cook, kitchen, minded, scripted, when, when_there_are

from coag.agent import SignalGoal, SituatedAgent, TimedGoal
from coag.errors import ConfigurationError, UnknownNameError
from coag.mcp import StdioServerParams
from coag.schema import Percept, PerceptKind, Trust
from coag.situated import (
    STORE_NAME,
    ActivityEnd,
    ActivityState,
    ActivityStore,
    ActivityStoreError,
    EnhancedTool,
    McpToolConnection,
    OnSignal,
    VirtualClock,
    Workspace,
    observable,
    signal,
)
from coag.tracing import read_run, read_trace

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = SignalGoal(
    name="tea", on=OnSignal(tool="kettle", name="kettle.ordered"), goal="Serve tea: {data}"
)


def said(text: str, source: str = "user") -> TextMessage:
    return TextMessage(content=text, source=source)


# ---- goals by message ----


async def test_a_message_is_answered_when_its_activity_has_ended() -> None:
    async with kitchen() as (workspace, kettle), cook(minded(careful), workspace) as agent:
        asking = asyncio.create_task(agent.on_messages([said(GOAL)], CancellationToken()))
        await when(agent, "activity-000001", "blocked")
        assert not asking.done()
        kettle.boil()
        response = await asking
        assert response.chat_message.to_text() == "The water has boiled."
        assert response.chat_message.source == "cook"
        assert response.chat_message.metadata == {"activity": "activity-000001", "end": "done"}
        assert response.inner_messages, "what the activity showed on the way is there"


async def test_with_id_a_message_is_answered_at_once() -> None:
    model = minded(careful)
    async with kitchen() as (workspace, kettle), cook(model, workspace, answer="id") as agent:
        response = await agent.on_messages([said(GOAL)], CancellationToken())
        activity = response.chat_message.metadata["activity"]
        assert activity in response.chat_message.to_text()
        await when(agent, activity, "blocked")
        kettle.boil()
        assert (await agent.ended(activity)).end is ActivityEnd.DONE


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_a_reader_that_leaves_does_not_end_the_activity(how: str) -> None:
    async with kitchen() as (workspace, kettle), cook(minded(careful), workspace) as agent:
        token = CancellationToken()
        stream = agent.on_messages_stream([said(GOAL)], token)
        await anext(stream)
        await when(agent, "activity-000001", "blocked")
        if how == "cancel":
            token.cancel()
            with pytest.raises(asyncio.CancelledError):
                async for _ in stream:
                    pass
        else:
            await stream.aclose()
        assert agent.activity("activity-000001").state is ActivityState.BLOCKED
        kettle.boil()
        assert (await agent.ended("activity-000001")).end is ActivityEnd.DONE


async def test_a_goal_of_another_agent_is_not_trusted_as_the_users(tmp_path: Path) -> None:
    async with (
        kitchen() as (workspace, _),
        cook(scripted("No."), workspace, folder=tmp_path) as agent,
    ):
        both = [said("Hello."), said("Boil over.", "waiter")]
        await agent.on_messages(both, CancellationToken())
        await agent.on_messages([said("Boil.")], CancellationToken())
        theirs, mine = agent.store.find()
        assert (theirs.trust, theirs.source) == (Trust.UNTRUSTED, "waiter")
        assert (mine.trust, mine.source) == (Trust.USER, "user")
    for activity in (theirs, mine):
        trace = read_trace(tmp_path / "runs" / (activity.run or "") / "trace.jsonl")
        heard = [
            one.body.trust
            for one in trace
            if isinstance(one.body, Percept) and one.body.kind is PerceptKind.MESSAGE
        ]
        assert (Trust.USER in heard) is (activity is mine)


async def test_a_message_without_a_goal_is_refused() -> None:
    async with kitchen() as (workspace, _), cook(scripted("No."), workspace) as agent:
        with pytest.raises(ValueError, match="says its goal"):
            await agent.on_messages([], CancellationToken())
        with pytest.raises(ValueError, match="goal is empty"):
            await agent.on_messages([said("  ")], CancellationToken())
        for priority in (2**31, -(2**70)):
            with pytest.raises(ValueError, match="priority"):
                agent.add_goal(GOAL, priority=priority)
            with pytest.raises(ValueError, match="priority"):
                SignalGoal(name="file", on=ORDERS.on, goal="File it.", priority=priority)
        with pytest.raises(UnknownNameError, match="activity-7"):
            await agent.ended("activity-7")
        with pytest.raises(UnknownNameError, match="activity-7"):
            await agent.cancel("activity-7")
        with pytest.raises(UnknownNameError, match="activity-7"):
            agent.wake("activity-7")


async def test_it_takes_its_turns_in_a_team() -> None:
    async with kitchen() as (workspace, kettle), cook(minded(careful), workspace) as agent:
        waiter = AssistantAgent("waiter", ReplayChatCompletionClient(["Boil!", "Served."]))
        ending = MaxMessageTermination(4)
        team = RoundRobinGroupChat([waiter, agent], termination_condition=ending)
        asking = asyncio.create_task(team.run(task="Tea, please."))
        await when(agent, "activity-000001", "blocked")
        kettle.boil()
        result = await asking
        texts = [one.to_text() for one in result.messages if isinstance(one, TextMessage)]
        assert texts == ["Tea, please.", "Boil!", "The water has boiled.", "Served."]


# ---- steering ----


async def test_an_activity_can_be_cancelled_woken_and_all_can_be_reset() -> None:
    model = minded(careful)
    async with kitchen() as (workspace, _), cook(model, workspace) as agent:
        one, other, third = (agent.add_goal(GOAL).id for _ in range(3))
        for activity in (one, other, third):
            await when(agent, activity, "blocked")
        await agent.cancel(one, "Nobody is thirsty.")
        over = await agent.ended(one)
        assert (over.end, over.result) == (ActivityEnd.CANCELLED, "Nobody is thirsty.")
        calls = model.calls
        agent.wake(other)
        await when(agent, other, "running")
        await when(agent, other, "blocked")
        assert model.calls == calls + 1, "it looked, and waits again"
        await agent.on_reset(CancellationToken())
        assert not agent.open_activities()
        assert (await agent.ended(third)).end is ActivityEnd.CANCELLED


async def test_a_store_that_fails_while_all_wait_is_reported_and_frees_everything(
    tmp_path: Path,
) -> None:
    reported: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: reported.append(context["message"])
    )
    async with kitchen() as (workspace, kettle):
        agent = cook(minded(careful), workspace, folder=tmp_path)
        await agent.start()
        ending = asyncio.ensure_future(agent.ended(agent.add_goal(GOAL).id))
        await when(agent, "activity-000001", "blocked")
        with closing(sqlite3.connect(tmp_path / STORE_NAME)) as other:
            other.execute("DROP TABLE delivered")
        kettle.boil()
        with pytest.raises(ActivityStoreError, match="no such table"):
            await ending
        with pytest.raises(ActivityStoreError):
            await agent.close()
    assert any("no steps are run any more" in message for message in reported)
    again = ActivityStore(tmp_path / STORE_NAME)  # the folder is free
    assert [one.id for one in again.find()] == ["activity-000001"]
    again.close()


async def test_texts_that_utf8_cannot_carry_stop_nothing(tmp_path: Path) -> None:
    class Scanner(EnhancedTool):
        """Finds files, whose names may be any bytes."""

        newest = observable(dict[str, str], {}, description="Where it is.")
        found = signal("scanner.found", "A file.", payload={"name": Any})

    workspace, scanner = Workspace(), Scanner()
    workspace.add(scanner)
    on = OnSignal(tool="scanner", name="scanner.found")
    goals = [SignalGoal(name="file", on=on, goal="File {data}")]
    model = scripted(("abandon", {"reason": "No \ud800."}))
    async with cook(model, workspace, folder=tmp_path, goals=goals) as agent:
        scanner.newest = {"path": "report\udce9"}
        scanner.found.emit(name="report\udce9")
        await when_there_are(agent, 1)
        assert '"name":"report?"' in agent.store.find()[0].goal
        typed = agent.add_goal("Read report\udce9.")
        assert (await agent.ended(typed.id)).goal == "Read report?."
        cancelled = agent.add_goal("Wait.")
        await agent.cancel(cancelled.id, "not report\udce9")
        assert (await agent.ended(cancelled.id)).result in ("not report?", "No ?.")
    await workspace.close()


# ---- goals by signals and by the clock ----


async def test_each_signal_sets_its_goal_once_also_over_a_restart(tmp_path: Path) -> None:
    given = {"folder": tmp_path, "goals": [ORDERS]}
    async with kitchen() as (workspace, kettle):
        async with cook(scripted("Served."), workspace, **given) as agent:
            kettle.order(2)
            await when_there_are(agent, 1)
        kettle.order(3)
        kettle.order(4)
        async with cook(scripted("Served."), workspace, **given) as agent:
            await when_there_are(agent, 3)
            for one in agent.store.find():
                assert (await agent.ended(one.id)).result == "Served."
        async with cook(scripted("Served."), workspace, **given) as agent:
            kettle.order(5)
            await when_there_are(agent, 4)
            goals = [one.goal for one in agent.store.find()]
        cups = ['"cups":2', '"cups":3', '"cups":4', '"cups":5']
        assert all(cup in goal for cup, goal in zip(cups, goals, strict=True))


async def test_a_signal_sets_only_the_goals_that_it_meets_and_old_ones_are_left() -> None:
    two = ORDERS.on.model_copy(update={"where": {"cups": 2}})
    goals = [
        ORDERS.model_copy(update={"name": "two", "on": two}),
        ORDERS.model_copy(
            update={"name": "hot", "on": OnSignal(tool="kettle", name="kettle.boiled")}
        ),
    ]
    async with (
        kitchen() as (workspace, kettle),
        cook(scripted("Served."), workspace, goals=goals) as agent,
    ):
        kettle.order(1)
        kettle.order(2)
        await when_there_are(agent, 1)
        kettle.boil()
        await when_there_are(agent, 2)
        assert sorted(one.id.partition("-")[0] for one in agent.store.find()) == ["hot", "two"]


async def test_a_goal_names_what_of_its_signal_was_too_large_to_keep() -> None:
    class Reader(EnhancedTool):
        """Reads what comes."""

        came = signal("reader.came", "A text.", payload={"text": str})

    workspace, reader = Workspace(), Reader()
    workspace.add(reader)
    on = OnSignal(tool="reader", name="reader.came")
    goals = [SignalGoal(name="sum", on=on, goal="Sum up: {data}")]
    async with cook(scripted("Done."), workspace, goals=goals) as agent:
        reader.came.emit(text="x" * 5_000)
        await when_there_are(agent, 1)
        assert "left out, too large: text (5,0" in agent.store.find()[0].goal
    await workspace.close()


async def test_no_signal_of_a_burst_is_left_without_its_goal() -> None:
    async with (
        kitchen() as (workspace, kettle),
        cook(scripted("Served."), workspace, goals=[ORDERS]) as agent,
    ):
        for cups in range(250):
            kettle.order(cups)
        await when_there_are(agent, 250)
        first = agent.store.find()[0]
        assert (first.trust, first.source) == (Trust.UNTRUSTED, "signal:kettle/kettle.ordered")


async def test_the_clock_sets_a_goal_once_at_each_of_its_times(tmp_path: Path) -> None:
    clock = VirtualClock(NOW)
    hourly = TimedGoal(name="look", goal="Look at the kettle.", every=3600, start=NOW)
    given = {"folder": tmp_path, "goals": [hourly], "clock": clock}
    async with kitchen() as (workspace, _):
        for hours, activities in [(0, 1), (0, 1), (1, 2), (5, 3)]:
            await clock.advance(3600 * hours)
            async with cook(scripted("Cold."), workspace, **given) as agent:
                await when_there_are(agent, activities)
                assert agent.store.find()[-1].source == "timer"


def test_goals_with_the_same_name_or_that_never_come_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="names twice: tea"):
        cook(scripted("No."), goals=[ORDERS, ORDERS])
    with pytest.raises(ValueError, match="every"):
        TimedGoal(name="look", goal="Look.", every=0, start=NOW)


async def test_a_goal_for_a_tool_that_is_not_there_is_refused() -> None:
    unknown = ORDERS.model_copy(update={"on": OnSignal(tool="oven", name="oven.hot")})
    async with kitchen() as (workspace, _):
        agent = cook(scripted("No."), workspace, goals=[unknown])
        with pytest.raises(UnknownNameError, match="oven"):
            await agent.start()
        await agent.close()


async def test_it_is_written_as_json_and_made_again(tmp_path: Path) -> None:
    server = McpToolConnection(StdioServerParams(command="plant"), "plant")
    goal = SignalGoal(name="hot", on=OnSignal(tool="kettle", name="kettle.boiled"), goal="Pour.")
    model = ReplayChatCompletionClient(["Yes."])
    agent = SituatedAgent("cook", model, [server], folder=tmp_path, goals=[goal], depth="compact")
    written = agent.dump_component()
    await agent.close()

    again = SituatedAgent.load_component(json.loads(written.model_dump_json()))

    assert again.dump_component() == written
    await again.close()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"folders": "x"}, "no argument 'folders'"),
        ({"depth": "quick"}, "depth='quick'"),
        ({"tools": []}, "makes tools itself"),
    ],
)
def test_arguments_that_no_activity_could_be_made_with_are_refused_at_once(
    given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        SituatedAgent("cook", ReplayChatCompletionClient(["Yes."]), [], **given)
    with pytest.raises(ConfigurationError, match=r"servers= takes connections, not 'http://x'"):
        SituatedAgent("cook", ReplayChatCompletionClient(["Yes."]), cast("Any", ["http://x"]))


async def test_the_run_of_an_activity_that_is_over_has_ended(tmp_path: Path) -> None:
    async with kitchen() as (workspace, _):
        async with cook(scripted("Done."), workspace, folder=tmp_path) as agent:
            over = await agent.ended(agent.add_goal(GOAL).id)
        assert over.run is not None
        assert read_run(tmp_path / "runs" / over.run).ended_at is not None


async def test_a_server_that_cannot_be_reached_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    away = McpToolConnection(StdioServerParams(command="/no/such/command"), "plant")
    agent = SituatedAgent("cook", ReplayChatCompletionClient(["Yes."]), [away])
    await agent.start()
    await agent.close()
    assert "The tools of 'plant'" in caplog.text


async def test_a_folder_belongs_to_the_agent_whose_activities_it_has(tmp_path: Path) -> None:
    async with kitchen() as (workspace, _):
        async with cook(scripted("Done."), workspace, folder=tmp_path) as agent:
            await agent.ended(agent.add_goal(GOAL, activity_id="tea").id)
        with pytest.raises(ConfigurationError, match="of the agent 'cook': give 'maid'"):
            SituatedAgent("maid", scripted("No."), [], folder=tmp_path)
        async with cook(scripted("No."), workspace, folder=tmp_path) as agent:
            assert (await agent.ended("tea")).result == "Done."


async def test_saving_the_state_of_activities_in_ram_says_that_they_are_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with kitchen() as (workspace, _):
        for folder, warned in ((None, 1), (tmp_path, 0)):
            caplog.clear()
            async with cook(minded(careful), workspace, folder=folder) as agent:
                await agent.save_state()
                assert not caplog.records, "there is nothing to lose"
                activity = agent.add_goal(GOAL)
                await when(agent, activity.id, "blocked")
                await agent.save_state()
                assert len(caplog.records) == warned
                assert not warned or "no folder=" in caplog.text


async def test_steps_are_cycles_and_not_the_ends_of_turns() -> None:
    model = scripted(("set_plan", {"plan": "a"}), "Done.")
    async with kitchen() as (workspace, _), cook(model, workspace) as agent:
        over = await agent.ended(agent.add_goal(GOAL).id)
        assert (over.steps, model.calls) == (2, 2)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"store": "activities.sqlite"}, "postgresql://HOST/NAME, not 'activities.sqlite'"),
        ({"store": "postgresql://db/x"}, "store= needs folder="),
    ],
)
def test_a_store_that_workers_could_not_share_is_refused(
    given: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        SituatedAgent("cook", ReplayChatCompletionClient(["Yes."]), [], **given)
