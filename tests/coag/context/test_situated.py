"""`SituatedContext`: the properties of tools in the perceptual state."""

from __future__ import annotations

from typing import Any

from kits.held_steps import a_percept, a_signal

from coag.context import SituatedContext, SituatedState
from coag.schema import Percept, PerceptKind
from coag.situated import PropertyReading


def reading(rev: int, epoch: str = "e1", tool: str = "pump", **properties: Any) -> Percept:
    """A reading as it is perceived."""
    now = PropertyReading(
        tool=tool, epoch=epoch, rev=rev, properties=properties, cursor=f"{epoch}:0"
    )
    name, data = f"{tool}/{epoch}/rev-{rev}", now.model_dump(mode="json")
    return a_percept(PerceptKind.PROPERTY_CHANGE, name, tool, data=data)


def returned(name: str, *, is_error: bool = False) -> Percept:
    """The acknowledgement of an operation."""
    return a_percept(PerceptKind.TOOL_RETURN, name, "pump__power_on", is_error=is_error)


def after(*percepts: Percept) -> SituatedContext[SituatedState]:
    """A context that has perceived these."""
    context: SituatedContext[SituatedState] = SituatedContext()
    for percept in percepts:
        assert context.perceive(percept).hook_problem is None
    return context


def test_the_state_has_the_newest_reading_of_each_tool() -> None:
    tools = after(reading(1, psi=10), reading(3, psi=30), reading(1, tool="valve", open=True))
    assert {name: now.properties for name, now in tools.state.tools.items()} == {
        "pump": {"psi": 30},
        "valve": {"open": True},
    }


def test_a_reading_that_is_older_changes_nothing_and_one_of_a_new_epoch_does() -> None:
    assert after(reading(3, psi=30), reading(2, psi=20)).state.tools["pump"].rev == 3
    restarted = after(reading(3, psi=30), reading(1, epoch="e2", psi=0)).state.tools["pump"]
    assert (restarted.epoch, restarted.rev, restarted.properties) == ("e2", 1, {"psi": 0})


def test_signals_and_acknowledgements_assume_nothing_about_the_tools() -> None:
    state = after(
        reading(1, psi=10), a_signal(7, psi=99), returned("a"), returned("b", is_error=True)
    ).state
    assert state.tools["pump"].properties == {"psi": 10}
    assert (state.tool_calls, state.failures) == (2, 1)


def test_prompts_show_one_line_for_each_tool() -> None:
    context = after(reading(1, psi=10), reading(1, tool="valve", name="ünter"))
    assert context.describe() == 'pump: {"psi": 10}\nvalve: {"name": "ünter"}'


def test_a_failed_operation_is_worth_repeating_once_a_property_has_changed() -> None:
    key = after(reading(1, psi=10)).progress_key()
    assert (
        after(reading(1, psi=10), a_signal(1), returned("a", is_error=True)).progress_key() == key
    )
    assert after(reading(2, psi=10)).progress_key() == key
    assert after(reading(2, psi=11)).progress_key() != key


def test_a_reading_that_is_none_is_said_to_be() -> None:
    context: SituatedContext[SituatedState] = SituatedContext()
    bad = a_percept(PerceptKind.PROPERTY_CHANGE, "pump/e1/rev-1", data={"psi": 10})
    problem = context.perceive(bad).hook_problem
    assert problem is not None
    assert "pump/e1/rev-1" in problem
