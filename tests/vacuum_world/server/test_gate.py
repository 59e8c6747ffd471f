"""The gate as a state machine: no action is lost, doubled or done while it is shut."""

from __future__ import annotations

from concurrent.futures import Future

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from vacuum_world.errors import UnknownRobotError
from vacuum_world.server import Gate
from vacuum_world.showing import PaceChange
from vacuum_world.world import ActionResult, LoggedAction


def logged(number: int) -> LoggedAction:
    result = ActionResult(ok=True, failure=None, reason=None, position=(0, 0), battery=90)
    return LoggedAction(
        number=number,
        tick=0,
        robot="r1",
        action="clean",
        direction=None,
        action_id=None,
        repeated=False,
        refused=False,
        position_before=(0, 0),
        battery_before=100,
        bumped_into=None,
        cleaned=False,
        violation=False,
        result=result,
    )


class GateMachine(RuleBasedStateMachine):
    """Whatever is asked in whatever order, each action is done once, in order, or never."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.asked: list[Future[LoggedAction]] = []
        self.done: list[int] = []
        self.withdrawn: set[int] = set()
        self.paused = False
        self.allowed = 0
        """Actions that may be done while paused, those before the pause included."""

    @rule()
    def ask(self) -> None:
        number = len(self.asked)

        def act() -> LoggedAction:
            self.done.append(number)
            return logged(number)

        if not self.paused:
            self.allowed += 1
        self.asked.append(self.gate.submit(f"r{number}", act))

    @precondition(lambda self: self.asked)
    @rule(place=st.integers(min_value=0))
    def withdraw(self, place: int) -> None:
        number = place % len(self.asked)
        was_done = number in self.done
        assert self.gate.withdraw(self.asked[number]) is not was_done
        if not was_done:
            self.withdrawn.add(number)

    @rule(paused=st.booleans())
    def change(self, paused: bool) -> None:
        self.gate.change(PaceChange(paused=paused))
        self.paused = paused
        if not paused or not self.gate.pace.steps:
            self.allowed = len(self.done)

    @rule(count=st.integers(min_value=1, max_value=3))
    def step(self, count: int) -> None:
        self.gate.step(count)
        if self.paused:
            self.allowed += count

    @invariant()
    def every_action_is_done_once_withdrawn_or_waiting(self) -> None:
        assert self.done == sorted(set(self.done))
        assert not self.withdrawn & set(self.done)
        waiting = [f"r{n}" for n, each in enumerate(self.asked) if not each.done()]
        assert list(self.gate.pace.waiting) == waiting
        assert len(self.done) + len(self.withdrawn) + len(waiting) == len(self.asked)
        for number in self.done:
            assert self.asked[number].result().number == number

    @invariant()
    def nothing_waits_that_may_go_on(self) -> None:
        pace = self.gate.pace
        assert pace.paused is self.paused
        assert not pace.waiting or (pace.paused and not pace.steps)
        assert len(self.done) <= self.allowed


TestGate = GateMachine.TestCase


def test_an_action_that_fails_gives_its_error_to_its_caller() -> None:
    def act() -> LoggedAction:
        raise UnknownRobotError("r9", ())

    gate = Gate()
    gate.change(PaceChange(paused=True))
    asked = gate.submit("r9", act)
    gate.change(PaceChange(paused=False))
    with pytest.raises(UnknownRobotError):
        asked.result(timeout=0)


def test_a_gate_that_closes_withdraws_what_waits_and_holds_nothing_more() -> None:
    gate = Gate()
    gate.change(PaceChange(paused=True))
    before = gate.submit("r1", lambda: logged(1))
    gate.close()
    after = gate.submit("r1", lambda: logged(2))
    assert before.cancelled()
    assert after.cancelled()
    gate.open()
    assert not gate.submit("r1", lambda: logged(3)).done()
