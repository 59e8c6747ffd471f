import asyncio
from datetime import timedelta
from typing import Any

import pytest
from kits.pump import Pump
from pydantic import BaseModel

from coag.errors import ConfigurationError, StateError
from coag.situated import (
    EnhancedTool,
    ScaledClock,
    VirtualClock,
    Workspace,
    internal_operation,
    observable,
    operation,
    signal,
)


def test_arguments_are_described_by_annotations_and_the_docstring() -> None:
    [power_on, _] = Pump().describe().operations

    assert power_on.parameters == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "step": {
                "type": "integer",
                "default": 1000,
                "description": "Psi that are added in a second, at most 3000.",
            }
        },
    }


def test_an_id_comes_from_the_call_or_the_class() -> None:
    class ReliefValve(EnhancedTool):
        """A valve."""

    class Named(EnhancedTool):
        """Another."""

        id = "main_valve"

    ids = [ReliefValve().id, Named().id, Named("spare").id]
    assert ids == ["relief_valve", "main_valve", "spare"]
    with pytest.raises(ConfigurationError, match="'two words'"):
        Named("two words")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pressure", 3001),
        ("pressure", -1),
        ("pressure", "10"),
        ("pressure", 1.5),
        ("pressure", True),
        ("status", "ON"),
        ("valves", [1]),
    ],
)
def test_a_property_takes_only_what_was_declared_and_keeps_its_value(
    name: str, value: object
) -> None:
    pump = Pump()

    with pytest.raises(ValueError, match=f"Property '{name}' of tool 'pump' cannot be"):
        setattr(pump, name, value)

    assert (pump.pressure, pump.state.rev) == (0, 0)


def test_only_an_assignment_that_changes_the_value_raises_the_revision() -> None:
    pump = Pump()

    pump.pressure = 0
    pump.pressure = 10
    pump.pressure = 10
    pump.valves = ["a"]

    assert pump.state.rev == 2
    assert pump.state.as_json() == {"status": "OFF", "pressure": 10, "valves": ["a"]}


def test_a_number_that_json_cannot_express_is_refused() -> None:
    class Scale(EnhancedTool):
        """Weighs."""

        weight = observable(float, 0.0)

    with pytest.raises(ValueError, match="weight"):
        Scale().weight = float("nan")


def test_a_model_can_be_the_value_of_a_property() -> None:
    class Place(BaseModel):
        x: int
        y: int

    class Rover(EnhancedTool):
        """Drives."""

        place = observable(Place, Place(x=0, y=0))

    rover = Rover()
    rover.place = Place(x=1, y=2)

    assert rover.place.y == 2
    assert rover.state.as_json() == {"place": {"x": 1, "y": 2}}


def test_tools_of_one_class_have_states_of_their_own() -> None:
    first, second = Pump("first"), Pump("second")

    first.pressure = 7

    assert second.pressure == 0


@pytest.mark.parametrize("payload", [{}, {"psi": "much"}, {"psi": 1, "msg": "extra"}])
def test_a_payload_that_breaks_its_schema_is_not_emitted(payload: dict[str, Any]) -> None:
    workspace = Workspace()
    pump = Pump()
    workspace.add(pump)

    with pytest.raises(ValueError, match=r"Signal 'pump.pressure_nominal' of tool 'pump'"):
        pump.nominal.emit(**payload)

    assert workspace.signals("pump").events == ()


def test_a_tool_outside_of_workspaces_cannot_emit() -> None:
    with pytest.raises(StateError, match=r"workspace\.add"):
        Pump().nominal.emit(psi=1)


def test_a_subclass_inherits_and_replaces_declarations() -> None:
    class BigPump(Pump):
        """Pumps more."""

        pressure = observable(int, 0, minimum=0, maximum=9000)

        @operation
        def vent(self) -> None:
            """Lets pressure out."""

    pump = BigPump()
    pump.pressure = 9000

    assert list(pump.declared.operations) == ["power_on", "switch_off", "vent"]
    assert Pump().declared.operations.keys() == {"power_on", "switch_off"}


# ---- Declarations that cannot work ----


def test_a_property_that_cannot_have_its_first_value_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cannot be 5 at first"):
        observable(int, 5, maximum=3)


def test_a_type_that_json_cannot_express_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has no JSON Schema"):
        observable(asyncio.Event, None)
    with pytest.raises(ConfigurationError, match="has no JSON Schema"):
        signal("pump.done", payload={"event": asyncio.Event})


@pytest.mark.parametrize("name", ["", "pump pressure", ".x", "pump..x", "1pump"])
def test_a_signal_needs_a_plain_name(name: str) -> None:
    with pytest.raises(ConfigurationError, match="A signal cannot be called"):
        signal(name)


def start(tool: EnhancedTool) -> None:
    """Starts."""


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        *(
            ({name: observable(bool, False)}, f"{name}: this name is used by EnhancedTool")
            for name in ("state", "host", "describe")
        ),
        ({"open__valve": observable(bool, False)}, "open__valve"),
        (
            {"done": signal("pump.done"), "again": signal("pump.done")},
            r"Wrong\.again is a second signal 'pump\.done'",
        ),
        (
            {"start": operation(completed_by="pump.done")(start)},
            r"completed by signal 'pump\.done'",
        ),
    ],
)
def test_declarations_that_cannot_work_together_are_refused(
    members: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        type("Wrong", (EnhancedTool,), members)


def test_an_internal_operation_that_is_not_async_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"ramp runs on by itself only if it is `async"):

        class _Wrong(EnhancedTool):  # pyright: ignore[reportUnusedClass]
            @internal_operation  # pyright: ignore[reportArgumentType]
            def ramp(self) -> None:
                """Runs on."""


def test_a_check_is_said_in_words() -> None:
    with pytest.raises(ConfigurationError, match="preconditions"):
        operation(check=bool)


def test_an_operation_has_a_docstring_annotations_and_named_arguments() -> None:
    def without_docstring(self: Pump) -> None: ...

    def without_annotation(self: Pump, level) -> None:  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
        """Sets."""

    def with_any_number(self: Pump, *levels: int) -> None:
        """Sets."""

    def with_condition(self: Pump, if_rev: int) -> None:
        """Sets."""

    for method in (without_docstring, without_annotation, with_any_number, with_condition):  # pyright: ignore[reportUnknownVariableType]
        with pytest.raises(ConfigurationError, match=method.__name__):
            operation(method)  # pyright: ignore[reportUnknownArgumentType]


def test_an_annotation_that_is_not_known_is_refused_by_name() -> None:
    def wrong(self: "Pump", level: "NoSuchType") -> None:  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]  # noqa: F821
        """Sets."""

    with pytest.raises(ConfigurationError, match="NoSuchType"):
        operation(wrong)  # pyright: ignore[reportUnknownArgumentType]


def test_a_tool_says_what_it_is_for() -> None:
    class Silent(EnhancedTool):
        pass

    with pytest.raises(ConfigurationError, match="Silent does not say what it is for"):
        Workspace().add(Silent())


# ---- Time ----


async def test_a_virtual_clock_wakes_sleepers_in_order_each_at_its_moment() -> None:
    clock = VirtualClock()
    start, log = clock.now(), list[tuple[str, timedelta]]()

    async def sleeper(name: str, *waits: float) -> None:
        for seconds in waits:
            await clock.sleep(seconds)
            log.append((name, clock.now() - start))

    tasks = [asyncio.create_task(sleeper("slow", 3)), asyncio.create_task(sleeper("quick", 1, 1.5))]
    await clock.advance(10)
    await asyncio.gather(*tasks)

    assert log == [
        ("quick", timedelta(seconds=1)),
        ("quick", timedelta(seconds=2.5)),
        ("slow", timedelta(seconds=3)),
    ]
    assert clock.monotonic() == 10


async def test_a_cancelled_sleeper_leaves_the_virtual_clock() -> None:
    clock = VirtualClock()
    cancelled = asyncio.create_task(clock.sleep(1))
    left = asyncio.create_task(clock.sleep(2))
    await clock.advance(0)
    cancelled.cancel()

    await clock.advance(2)

    assert cancelled.cancelled()
    assert left.done()


async def test_a_scaled_clock_sleeps_for_a_part_of_the_time() -> None:
    async with asyncio.timeout(5):
        await ScaledClock(speed=100_000).sleep(1_000)
    with pytest.raises(ValueError, match="above 0"):
        ScaledClock(0)
