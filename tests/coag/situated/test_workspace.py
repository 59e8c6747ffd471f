import asyncio
import logging
from typing import Any

import pytest
from kits.pump import Counter, Pump

from coag.errors import ConfigurationError, StateError, UnknownNameError
from coag.situated import (
    Acknowledgement,
    EnhancedTool,
    InProcessConnection,
    OperationFailedError,
    ToolConnectionError,
    VirtualClock,
    Workspace,
    internal_operation,
    observable,
    operation,
    signal,
)


def workspace_of(
    *tools: EnhancedTool, clock: VirtualClock | None = None, **kwargs: Any
) -> Workspace:
    workspace = Workspace(clock=clock or VirtualClock(), **kwargs)
    for tool in tools:
        workspace.add(tool)
    return workspace


class Gate(EnhancedTool):
    """Opens when it is let."""

    runs = observable(int, 0)
    fault: BaseException | None = None

    def __init__(self) -> None:
        super().__init__()
        self.entered = asyncio.Event()
        self.let = asyncio.Event()

    @operation
    async def open(self) -> str:
        """Opens."""
        self.runs += 1
        self.entered.set()
        await self.let.wait()
        if self.fault is not None:
            raise self.fault
        return "open"


# ---- Operations ----


async def test_an_operation_is_acknowledged_at_once_and_continues_by_itself() -> None:
    workspace = workspace_of(Pump(), clock=(clock := VirtualClock()))

    ack = await workspace.invoke("pump", "power_on", {"step": 2500}, "k1")
    assert (ack.accepted, ack.data, ack.rev) == (True, None, 1)
    assert ack.message == "Pressure is building."
    assert workspace.properties("pump").properties["status"] == "RAMPING"
    await clock.advance(1)

    [nominal] = workspace.signals("pump", ack.cursor).events
    reading = workspace.properties("pump")
    assert reading.properties == {"status": "NOMINAL", "pressure": 2500, "valves": []}
    assert (nominal.data, nominal.rev, nominal.cause) == ({"psi": 2500}, reading.rev, "k1")
    assert nominal.timestamp == clock.now()
    assert reading.cursor == nominal.cursor


async def test_a_signal_of_the_operation_itself_comes_behind_its_acknowledgement() -> None:
    workspace = workspace_of(Pump())

    ack = await workspace.invoke("pump", "switch_off", {}, "k1")

    assert ack.data == {"psi_before": 0}
    assert [event.name for event in workspace.signals("pump", ack.cursor).events] == [
        "pump.stopped"
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"step": "1000"}, "wrong arguments: step: Input should be a valid integer"),
        ({"stp": 1}, "stp: Extra inputs are not permitted"),
        ({"step": 4000}, "a step of 4000 psi would burst the pipe"),
        ({"if_rev": 0}, "if_rev: Extra inputs"),
        ({"step": {1, 2}}, "it is not JSON"),
    ],
)
async def test_wrong_arguments_are_refused_with_the_reason(
    arguments: dict[str, Any], reason: str
) -> None:
    workspace = workspace_of(Pump())

    ack = await workspace.invoke("pump", "power_on", arguments, "k1")

    assert not ack.accepted
    assert reason in ack.message
    assert workspace.properties("pump").rev == 0
    assert workspace.became_of("pump", "k1").status == "did_not_happen"


async def test_a_precondition_that_does_not_hold_is_a_refusal() -> None:
    workspace = workspace_of(Pump())
    await workspace.invoke("pump", "power_on", {})

    ack = await workspace.invoke("pump", "power_on", {}, "k2")

    assert not ack.accepted
    assert ack.message.endswith("its precondition does not hold: `status` is `OFF`")
    await workspace.close()


async def test_a_name_that_nothing_has_is_an_error_that_lists_what_there_is() -> None:
    workspace = workspace_of(Pump())

    with pytest.raises(UnknownNameError, match=r"'valve'. Known: pump"):
        await workspace.invoke("valve", "open", {}, "k1")
    with pytest.raises(UnknownNameError, match=r"'open'. Known: power_on, switch_off"):
        await workspace.invoke("pump", "open", {}, "k1")
    for read in (workspace.manual, workspace.properties, workspace.signals, workspace.remove):
        with pytest.raises(UnknownNameError):
            read("valve")


@pytest.mark.parametrize(
    ("condition", "accepted"),
    [
        ({"if_rev": 0}, True),
        ({"if_rev": 1}, False),
        ({"if_value": {"value": 1}}, True),
        ({"if_value": {"value": 2}}, False),
        ({"if_value": {"number": 1}}, False),
        ({"if_value": 1}, False),
        ({"if_rev": "0"}, False),
    ],
)
async def test_compare_and_set_runs_an_operation_only_if_nothing_has_changed(
    condition: dict[str, Any], accepted: bool
) -> None:
    workspace = workspace_of(counter := Counter())

    ack = await workspace.invoke("counter", "increment", {"json": 2, **condition}, "k1")

    assert (ack.accepted, counter.value) == ((True, 3) if accepted else (False, 1))


async def test_of_many_that_compare_and_set_at_once_one_succeeds() -> None:
    workspace = workspace_of(counter := Counter())

    value = {"if_value": {"value": 1}}
    calls = (workspace.invoke("counter", "increment", value, f"k{n}") for n in range(20))
    acks = await asyncio.gather(*calls)

    assert sum(ack.accepted for ack in acks) == 1
    assert counter.value == 2


async def test_operations_of_a_tool_run_one_at_a_time() -> None:
    workspace = workspace_of(gate := Gate())
    first = asyncio.create_task(workspace.invoke("gate", "open", {}, "k1"))
    await gate.entered.wait()
    second = asyncio.create_task(workspace.invoke("gate", "open", {}, "k2"))
    await asyncio.sleep(0)
    assert gate.runs == 1

    gate.let.set()
    await asyncio.gather(first, second)

    assert gate.runs == 2


# ---- Keys ----


async def test_a_repeated_key_gets_the_same_acknowledgement_and_runs_nothing() -> None:
    workspace = workspace_of(counter := Counter())

    first = await workspace.invoke("counter", "increment", {}, "k1")
    again = await workspace.invoke("counter", "increment", {}, "k1")

    assert again == first.model_copy(update={"repeated": True})
    assert counter.value == 2


async def test_a_key_is_known_while_its_call_still_runs_and_when_its_caller_has_left() -> None:
    workspace = workspace_of(gate := Gate())
    left = asyncio.create_task(workspace.invoke("gate", "open", {}, "k1"))
    await gate.entered.wait()
    assert workspace.became_of("gate", "k1").status == "unknown"
    left.cancel()
    again = asyncio.create_task(workspace.invoke("gate", "open", {}, "k1"))
    gate.let.set()

    ack = await again

    assert (ack.message, ack.repeated, gate.runs) == ("open", True, 1)
    assert workspace.became_of("gate", "k1").status == "happened"


async def test_a_key_of_another_call_is_refused() -> None:
    workspace = workspace_of(counter := Counter())
    await workspace.invoke("counter", "increment", {"json": 1}, "k1")

    ack = await workspace.invoke("counter", "increment", {"json": 2}, "k1")

    assert not ack.accepted
    assert "key 'k1' was used for another operation or other arguments" in ack.message
    assert counter.value == 2


async def test_what_became_of_a_call_is_unknown_once_calls_were_forgotten() -> None:
    workspace = workspace_of(Counter(), keep_keys=2)
    assert workspace.became_of("counter", "never").status == "did_not_happen"

    for number in range(3):
        await workspace.invoke("counter", "increment", {}, f"k{number}")

    known = [workspace.became_of("counter", key).status for key in ("k0", "k1", "k2", "never")]
    assert known == ["unknown", "happened", "happened", "unknown"]


async def test_calls_that_still_run_are_not_forgotten() -> None:
    workspace = workspace_of(gate := Gate(), keep_keys=1)
    names = ("k0", "k1", "k2")
    calls = [asyncio.create_task(workspace.invoke("gate", "open", {}, key)) for key in names]
    await gate.entered.wait()
    gate.let.set()
    await asyncio.gather(*calls)

    again = await workspace.invoke("gate", "open", {}, "k2")

    assert (again.repeated, gate.runs) == (True, 3)
    assert workspace.became_of("gate", "k0").status == "unknown"


async def test_calls_without_a_key_are_separate() -> None:
    workspace = workspace_of(counter := Counter())

    for _ in range(2):
        ack: Acknowledgement = await workspace.invoke("counter", "increment", {})
        assert not ack.repeated

    assert counter.value == 3
    assert workspace.signals("counter").events[0].cause is None


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (RuntimeError("stuck"), "RuntimeError: stuck"),
        (asyncio.CancelledError(), "it was cancelled"),
    ],
)
async def test_an_operation_that_raises_is_an_error_whose_effect_is_unknown(
    fault: BaseException, says: str
) -> None:
    workspace = workspace_of(gate := Gate())
    gate.fault = fault
    gate.let.set()

    for _ in range(2):
        with pytest.raises(OperationFailedError, match=says):
            await workspace.invoke("gate", "open", {}, "k1")

    assert gate.runs == 1
    assert workspace.became_of("gate", "k1").status == "unknown"


async def test_an_operation_that_is_not_acknowledged_in_time_is_ended() -> None:
    workspace = workspace_of(Gate(), acknowledge_seconds=0.01)

    with pytest.raises(OperationFailedError, match=r"within 0.01 s; .* internal operation"):
        await workspace.invoke("gate", "open", {}, "k1")


async def test_a_check_that_raises_and_an_answer_that_is_not_json_are_errors_of_the_tool() -> None:
    class Broken(EnhancedTool):
        """Does not work."""

        @operation(preconditions="none that can be checked", check=lambda tool: tool.missing)
        def checked(self) -> None:
            """Never runs."""

        @operation
        def answers(self) -> Any:
            """Answers."""
            return object()

    workspace = workspace_of(Broken())

    with pytest.raises(OperationFailedError, match="check raised AttributeError"):
        await workspace.invoke("broken", "checked", {})
    with pytest.raises(OperationFailedError, match="answers"):
        await workspace.invoke("broken", "answers", {})


# ---- Subscribers ----


async def test_subscribers_get_hints_of_changes_signals_and_tools() -> None:
    workspace, hints = workspace_of(pump := Pump()), list[str | None]()
    unsubscribe = workspace.subscribe(hints.append)

    pump.pressure = 5
    pump.pressure = 5
    pump.stopped.emit()
    workspace.add(Counter())
    workspace.remove("counter")
    unsubscribe()
    pump.pressure = 6

    assert hints == ["pump", "pump", None, None]


async def test_a_subscriber_that_raises_keeps_nothing_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    workspace, hints = workspace_of(pump := Pump()), list[str | None]()

    def raises(tool: str | None) -> None:
        raise RuntimeError(f"cannot take {tool}")

    workspace.subscribe(raises)
    workspace.subscribe(hints.append)
    pump.pressure = 5

    assert hints == ["pump"]
    assert "cannot take pump" in caplog.text


# ---- Tools come and go ----


class Factory(EnhancedTool):
    """Makes pumps."""

    made = signal("factory.made", payload={"id": str})

    @operation
    def make(self, name: str) -> str:
        """Makes a pump.

        Args:
            name: Its id.
        """
        self.workspace.add(Pump(name))
        self.made.emit(id=name)
        return f"{name} is there."

    @operation
    def scrap(self, name: str) -> None:
        """Removes a tool, be it this one."""
        self.workspace.remove(name)


async def test_a_tool_can_make_and_remove_others_and_itself() -> None:
    workspace = workspace_of(Factory())

    await workspace.invoke("factory", "make", {"name": "north"})
    await workspace.invoke("north", "power_on", {})
    assert [described.id for described in workspace.catalogue()] == ["factory", "north"]
    for name in ("north", "factory"):
        assert (await workspace.invoke("factory", "scrap", {"name": name})).accepted

    assert workspace.catalogue() == ()
    await workspace.close()


async def test_removing_a_tool_ends_what_it_runs() -> None:
    workspace = workspace_of(pump := Pump(), clock=(clock := VirtualClock()))
    await workspace.invoke("pump", "power_on", {})
    workspace.remove("pump")

    await clock.advance(10)

    assert (pump.pressure, pump.status) == (0, "RAMPING")
    with pytest.raises(StateError, match="was removed"):
        pump.now()


async def test_a_tool_that_is_added_again_has_another_epoch() -> None:
    workspace = workspace_of(Pump())
    await workspace.invoke("pump", "switch_off", {})
    before = workspace.properties("pump")
    workspace.remove("pump")
    workspace.add(Pump())

    after = workspace.properties("pump")

    assert after.epoch != before.epoch
    assert workspace.signals("pump", before.cursor).truncated


def test_an_id_is_taken_once_and_a_tool_is_in_one_workspace() -> None:
    workspace = workspace_of(pump := Pump())

    with pytest.raises(ConfigurationError, match="has a tool 'pump' already"):
        workspace.add(Pump())
    with pytest.raises(ConfigurationError, match="in a workspace already"):
        Workspace().add(pump)
    assert workspace.tool("pump") is pump


async def test_an_internal_operation_that_raises_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Fragile(EnhancedTool):
        """Breaks."""

        def added(self) -> None:
            self.run()

        @internal_operation
        async def run(self) -> None:
            raise RuntimeError("broken")

    clock = VirtualClock()
    with caplog.at_level(logging.ERROR):
        workspace_of(Fragile(), clock=clock)
        await clock.advance(0)

    assert "Internal operation fragile.run raised." in caplog.text


async def test_closing_finishes_calls_and_ends_all_tasks() -> None:
    workspace = workspace_of(gate := Gate(), Pump())
    before = asyncio.all_tasks()
    await workspace.invoke("pump", "power_on", {})
    call = asyncio.create_task(workspace.invoke("gate", "open", {}, "k1"))
    await gate.entered.wait()
    gate.let.set()

    await workspace.close()

    assert (await call).accepted
    assert asyncio.all_tasks() == before
    with pytest.raises(StateError, match="closed"):
        workspace.add(Pump())
    with pytest.raises(ToolConnectionError, match="closed"):
        await InProcessConnection(workspace).invoke("gate", "open", {}, "k2")


async def test_closing_does_not_wait_for_a_call_for_ever() -> None:
    workspace = workspace_of(gate := Gate(), acknowledge_seconds=0.01)
    call = asyncio.create_task(workspace.invoke("gate", "open", {}, "k1"))
    await gate.entered.wait()

    async with asyncio.timeout(5):
        await workspace.close()

    with pytest.raises(OperationFailedError):
        await call


# ---- In process ----


async def test_a_connection_passes_on_hints_of_what_is_in_focus() -> None:
    workspace, hints = workspace_of(pump := Pump(), counter := Counter()), list[str | None]()
    connection = InProcessConnection(workspace)
    connection.on_hint(hints.append)
    await connection.focus({"pump"})

    pump.pressure = 1
    counter.value = 5
    workspace.remove("counter")
    await connection.close()
    pump.pressure = 2

    assert hints == ["pump", None]


async def test_a_connection_says_what_it_could_not_do_and_whether_it_may_have_happened() -> None:
    connection = InProcessConnection(workspace_of(gate := Gate()), name="plant")
    gate.fault = RuntimeError("stuck")
    gate.let.set()

    with pytest.raises(ToolConnectionError, match=r"'plant': .*stuck") as failed:
        await connection.invoke("gate", "open", {}, "k1")
    with pytest.raises(ToolConnectionError, match="'valve'") as unknown:
        await connection.invoke("valve", "open", {}, "k1")
    with pytest.raises(ToolConnectionError, match="is no cursor"):
        await connection.read_signals("gate", "nonsense")

    assert (failed.value.may_have_happened, unknown.value.may_have_happened) == (True, False)
