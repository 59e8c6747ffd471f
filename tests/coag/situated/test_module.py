import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kits.pump import Pump

from coag.errors import StateError
from coag.schema import (
    ActionCall,
    ActionResult,
    Candidate,
    Evaluation,
    EvaluationOutcome,
    Executed,
    ExecutionOutcome,
    ExecutionStatus,
    Percept,
    PerceptKind,
    Phase,
    RetrievalOutcome,
    Section,
    Situation,
    SystemClock,
    Trust,
)
from coag.situated import (
    Activity,
    ActivityStore,
    EnhancedTool,
    InProcessConnection,
    OnSignal,
    SituatedModule,
    SituatedSettings,
    ToolPerception,
    ToolPerceptionSettings,
    VirtualClock,
    Workspace,
)

NOMINAL = {"tool": "pump", "signal": "pump.pressure_nominal"}


class Place:
    """A module with its tools, driven as the cycle drives it."""

    def __init__(self, *tools: EnhancedTool, settings: SituatedSettings | None = None) -> None:
        self.time = VirtualClock()
        self.workspace = Workspace(clock=self.time)
        for tool in tools:
            self.workspace.add(tool)
        self.store = ActivityStore()
        now = SystemClock().now()
        self.store.add(Activity(id="a", agent="x", goal="g", created=now, updated=now))
        self.news = asyncio.Event()
        self.perception = ToolPerception(
            [InProcessConnection(self.workspace)],
            self.store,
            arrived=lambda ids: self.news.set(),
            settings=ToolPerceptionSettings(catalogue_seconds=0),
        )
        self.settings = settings
        self.module = self.another()
        self.cycle = 0

    def another(self) -> SituatedModule:
        return SituatedModule("a", self.perception, self.store, settings=self.settings)

    async def begin(self) -> list[Percept]:
        """A cycle's start: what has arrived is perceived."""
        self.cycle += 1
        taken = list(await self.module.take_percepts())
        for percept in taken:
            await self.module.observe(percept)
        stamp = SystemClock().now()
        await self.module.observe(RetrievalOutcome(cycle=self.cycle, at=stamp, query=""))
        return taken

    async def act(self, action: str, **arguments: Any) -> ActionResult:
        call = ActionCall(id="1", action=action, arguments=arguments)
        result = await self.module.run_action(call)
        failed = ExecutionStatus.FAILED if result.is_error else ExecutionStatus.DONE
        done = Executed(
            candidate_id="1",
            action=action,
            arguments=arguments,
            status=failed,
            internal=True,
            result=result.content,
        )
        at = SystemClock().now()
        outcome = ExecutionOutcome.of([done], cycle=1, at=at, suspended=result.suspends)
        await self.module.observe(outcome)
        return result

    async def operate(self, operation: str, **arguments: Any) -> None:
        """An operation, as its return is perceived."""
        key = f"k{self.cycle}{operation}"
        answer = await self.perception.invoke("a", "pump", operation, arguments, key)
        percept = Percept(
            id=key,
            at=SystemClock().now(),
            kind=PerceptKind.TOOL_RETURN,
            source=f"pump__{operation}",
            trust=Trust.UNTRUSTED,
            content=answer.message,
            is_error=not answer.accepted,
        )
        await self.module.observe(percept)

    async def reach_pressure(self) -> None:
        """The pump runs, and its signal has come and is not perceived."""
        await self.act("mount_manual", tool="pump")
        await self.begin()
        await self.operate("power_on", step=2500)
        await self.time.advance(1)
        await self.until(PerceptKind.SIGNAL)

    async def until(self, kind: PerceptKind) -> None:
        async with asyncio.timeout(5):
            while not any(one.percept.kind is kind for one in self.store.inbox("a")):
                self.news.clear()
                await self.news.wait()

    def verdicts(self, action: str) -> dict[str, bool]:
        """What each rule says of an action."""
        candidate = Candidate(id="1", action=action, arguments={})
        rules = self.module.constraints()
        return {rule.name: rule(candidate, None, None).allowed for rule in rules}  # type: ignore[attr-defined]

    async def shown(self, phase: Phase = Phase.REASONING, budget: int = 4_000) -> Section:
        situation = Situation(activity="a", goal="Pump.", cycle=1, phase=phase, query="")
        section = await self.module.contribute(phase, situation, budget)
        assert section is not None
        return section


@asynccontextmanager
async def situated(
    *tools: EnhancedTool, settings: SituatedSettings | None = None
) -> AsyncGenerator[Place]:
    here = Place(*tools, settings=settings)
    await here.perception.start()
    try:
        yield here
    finally:
        await here.perception.stop()
        await here.workspace.close()


# ---- Manuals ----


async def test_an_operation_needs_its_mounted_manual() -> None:
    async with situated(Pump()) as here:
        assert here.verdicts("pump__power_on")["manual_mounted"] is False
        assert here.verdicts("other__tool")["manual_mounted"] is True
        result = await here.act("mount_manual", tool="pump")
        assert "in focus" in result.content
        assert here.verdicts("pump__power_on")["manual_mounted"] is True
        await here.act("unmount_manual", tool="pump")
        assert here.verdicts("pump__power_on")["manual_mounted"] is False


async def test_a_mounted_manual_is_shown_whole_or_its_protocol_or_named() -> None:
    async with situated(Pump()) as here:
        await here.act("mount_manual", tool="pump")
        await here.begin()
        whole = await here.shown()
        assert "## 2. Usage Interface" in whole.text
        assert whole.trust is Trust.UNTRUSTED
        assert 'status="OFF"' in whole.text
        assert "pump.pressure_nominal" in whole.text
        part = (await here.shown(budget=250)).text
        assert "Never" in part
        assert "2. Usage" not in part
        assert "has no room" in (await here.shown(budget=150)).text


async def test_with_explicit_focus_mounting_perceives_nothing() -> None:
    async with situated(Pump(), settings=SituatedSettings(explicit_focus=True)) as here:
        await here.act("mount_manual", tool="pump")
        assert not here.perception.focused("a")
        result = await here.act("wait_for_signal", tool="pump", signal="pump.stopped")
        assert result.is_error
        assert "focus(tool='pump') first" in result.content


async def test_focus_is_a_decision_that_can_be_narrowed_and_taken_back() -> None:
    async with situated(Pump(), settings=SituatedSettings(explicit_focus=True)) as here:
        await here.act("mount_manual", tool="pump")
        result = await here.act("focus", tool="pump", signals=["pump.stopped"])
        assert result.content.startswith("pump is in focus. Now: ")
        assert here.perception.focused("a") == {"pump": {"pump.stopped"}}
        await here.act("unmount_manual", tool="pump")
        assert "pump" in here.perception.focused("a"), "a manual is another matter"
        assert (await here.act("unfocus", tool="pump")).content == "pump is no longer in focus."
        assert here.perception.focused("a") == {}


async def test_a_wait_for_another_signal_than_those_in_focus_adds_it() -> None:
    async with situated(Pump()) as here:
        await here.act("focus", tool="pump", signals=["pump.stopped"])
        await here.act("wait_for_signal", **NOMINAL)
        both = {"pump.stopped", "pump.pressure_nominal"}
        assert here.perception.focused("a") == {"pump": both}


async def test_a_manual_that_is_put_away_takes_its_focus_with_it() -> None:
    async with situated(Pump()) as here:
        await here.act("focus", tool="pump", signals=["pump.stopped"])
        await here.act("mount_manual", tool="pump")
        assert here.perception.focused("a") == {"pump": {"pump.stopped"}}, "it is kept as it was"
        await here.act("unmount_manual", tool="pump")
        assert here.perception.focused("a") == {}
        result = await here.act("boil")
        assert "no action named 'boil'. Known: abandon, focus" in result.content


# ---- Waiting ----


async def test_a_wait_suspends_and_what_ends_it_is_perceived_behind_its_properties() -> None:
    async with situated(Pump()) as here:
        await here.act("mount_manual", tool="pump")
        await here.begin()
        await here.operate("power_on", step=2500)
        await here.begin()
        result = await here.act("wait_for_signal", **NOMINAL)
        assert result.suspends
        wait = here.module.pending
        assert wait is not None
        assert wait.deadline is not None
        assert (wait.deadline - wait.since).total_seconds() == 15  # three times the latency
        await here.time.advance(1)
        await here.until(PerceptKind.SIGNAL)
        kinds = [one.kind for one in await here.begin()]
        assert kinds == [PerceptKind.PROPERTY_CHANGE, PerceptKind.SIGNAL]
        assert here.module.state.waiting is None
        assert here.module.pending is None


async def test_a_signal_that_came_before_the_wait_has_ended_it_once() -> None:
    async with situated(Pump()) as here:
        await here.reach_pressure()
        await here.begin()
        first = await here.act("wait_for_signal", **NOMINAL)
        assert not first.suspends
        assert "has come already: psi=2500" in first.content
        assert (await here.act("wait_for_signal", **NOMINAL)).suspends


async def test_an_unperceived_signal_ends_a_wait_and_counts_once() -> None:
    async with situated(Pump()) as here:
        await here.reach_pressure()
        assert not (await here.act("wait_for_signal", **NOMINAL)).suspends
        await here.begin()
        assert (await here.act("wait_for_signal", **NOMINAL)).suspends


async def test_a_wait_counts_from_the_last_operation() -> None:
    async with situated(Pump()) as here:
        await here.act("mount_manual", tool="pump")
        await here.operate("switch_off")
        await here.until(PerceptKind.SIGNAL)
        await here.begin()
        await here.operate("power_on")
        result = await here.act("wait_for_signal", tool="pump", signal="pump.stopped")
        assert result.suspends


async def test_a_property_that_has_its_value_ends_a_wait_at_once() -> None:
    async with situated(Pump()) as here:
        asked = {"tool": "pump", "property": "status", "value": "OFF"}
        result = await here.act("wait_for_property", **asked)
        assert result.content == 'Property status of pump is "OFF" already.'
        asked = {"tool": "pump", "property": "pressure", "comparison": ">=", "value": 2500}
        assert (await here.act("wait_for_property", **asked)).suspends


@pytest.mark.parametrize(
    ("action", "arguments", "says"),
    [
        ("wait_for_signal", {"tool": "pipe", "signal": "x"}, "no tool named 'pipe'. Known: pump"),
        ("wait_for_signal", {"tool": "pump", "signal": "boom"}, "Known: pump.pressure_nominal"),
        (
            "wait_for_signal",
            {"tool": "pump", "signal": "pump.pressure_nominal", "where": {"bar": 1}},
            "no field of signal 'pump.pressure_nominal' named 'bar'. Known: psi",
        ),
        ("wait_for_property", {"tool": "pump", "property": "heat", "value": 1}, "Known: pressure"),
        ("wait_for_property", {"tool": "pump", "property": "status", "value": "ON"}, "never has"),
        (
            "wait_for_signal",
            {"tool": "pump", "signal": "pump.stopped", "timeout_seconds": 0},
            "timeout_seconds",
        ),
        ("mount_manual", {"tool": "pipe"}, "no tool named 'pipe'"),
        ("unmount_manual", {"tool": "pump"}, "no mounted manual named 'pump'"),
        ("focus", {"tool": "pump", "signals": ["boom"]}, "no signal of tool 'pump' named 'boom'"),
        ("unfocus", {"tool": "pump"}, "no tool in focus named 'pump'"),
        ("abandon", {"reason": " "}, "needs a reason"),
    ],
)
async def test_what_does_not_exist_is_an_error_that_lists_what_does(
    action: str, arguments: dict[str, Any], says: str
) -> None:
    async with situated(Pump()) as here:
        result = await here.act(action, **arguments)
        assert result.is_error
        assert says in result.content
        assert here.module.pending is None


async def test_without_any_tool_every_action_says_so() -> None:
    async with situated() as here:
        assert (await here.act("list_tools")).content == "There are no tools."
        for action in ("mount_manual", "focus"):
            result = await here.act(action, tool="pump")
            assert result.is_error
            assert "Known: none" in result.content


# ---- Preemption ----


async def test_fresh_signals_forbid_everything_three_times_in_a_row_at_most() -> None:
    async with situated(Pump()) as here:
        await here.act("mount_manual", tool="pump")
        for preempted in (True, True, True, False):
            await here.begin()
            rules = here.module.constraints()
            await here.perception.invoke("a", "pump", "switch_off", {}, f"off{here.cycle}")
            await here.until(PerceptKind.SIGNAL)
            candidate = Candidate(id="1", action="respond", arguments={})
            said = [rule(candidate, None, None) for rule in rules]
            assert all(one.allowed for one in said) is not preempted
            named = [
                one.model_copy(update={"constraint": rule.name})  # type: ignore[attr-defined]
                for one, rule in zip(said, rules, strict=True)
            ]
            judged = Evaluation(candidate_id="1", arguments={}, verdicts=tuple(named))
            at = SystemClock().now()
            await here.module.observe(EvaluationOutcome(cycle=1, at=at, evaluations=(judged,)))
            status = ExecutionStatus.NONE if preempted else ExecutionStatus.DONE
            await here.module.observe(ExecutionOutcome(cycle=1, at=at, status=status, result=""))
        assert here.module.state.preempted == 0


# ---- Crash and resume ----


async def test_after_a_crash_nothing_is_perceived_twice() -> None:
    async with situated(Pump()) as here:
        await here.act("mount_manual", tool="pump")
        taken = list(await here.module.take_percepts())
        for percept in taken:
            await here.module.observe(percept)
        assert len(here.store.inbox("a")) == 1  # the trace may not be flushed yet

        saved = here.module.save_state()
        here.module = here.another()
        here.module.load_state(saved)
        assert list(await here.module.take_percepts()) == []
        assert await here.begin() == []
        assert here.store.inbox("a") == ()
        assert here.verdicts("pump__power_on")["manual_mounted"] is True
        assert "## 2. Usage" in (await here.shown()).text


async def test_a_wait_is_known_again_from_the_trace() -> None:
    async with situated(Pump()) as here:
        saved = here.module.save_state()
        asked = {"tool": "pump", "signal": "pump.stopped"}
        await here.act("wait_for_signal", **asked)
        done = Executed(
            candidate_id="1",
            action="wait_for_signal",
            arguments=asked,
            status=ExecutionStatus.DONE,
            internal=True,
        )
        at = SystemClock().now()
        here.module = here.another()
        here.module.load_state(saved)
        await here.module.observe(ExecutionOutcome.of([done], cycle=1, at=at, suspended=True))
        assert here.module.pending is not None
        assert here.module.pending.condition == OnSignal(tool="pump", name="pump.stopped")


async def test_giving_up_ends_the_turn_with_the_reason_and_a_plan_is_kept() -> None:
    async with situated() as here:
        await here.act("set_plan", plan="1. Wait.")
        assert "1. Wait." in (await here.shown()).text
        result = await here.act("abandon", reason="It leaks.")
        assert result.ends_turn
        assert here.module.abandoned == "It leaks."


def test_a_wrong_state_is_refused() -> None:
    here = Place()
    with pytest.raises(StateError, match="mounted"):
        here.module.load_state({"mounted": 3})
