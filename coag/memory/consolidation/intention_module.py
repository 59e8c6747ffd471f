"""Intentions at the seam: reminders as percepts, and the actions `remind_me`, `cancel_reminder`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from pydantic import Field, ValidationError

from coag._util.validation import first_error, module_state
from coag.errors import CoagError
from coag.memory.actions import MEMORY_ACTIONS
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    ExecutionOutcome,
    Failure,
    Moment,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    RetrievalOutcome,
    Section,
    Situation,
    Trust,
    Value,
    one_line,
)

from .intentions import OCCURRENCES, AtEvent, AtTime, InContext, Intention, Intentions

REMIND_ACTION = "remind_me"
CANCEL_ACTION = "cancel_reminder"
_OWN = {*MEMORY_ACTIONS, REMIND_ACTION, "respond"}
"""Actions that give back what the agent wrote itself."""
_REST = 3_600.0
"""Seconds between two reminders of a context that recurs, where none are given."""
_SHOWN = 20
"""Intentions that a prompt lists at most."""


class _ReminderWish(Value):
    text: str = Field(min_length=1, max_length=1_000, description="What to be reminded of.")
    at: Moment | None = Field(
        default=None, description="The time, ISO 8601 with zone, e.g. 2026-05-01T09:00:00Z."
    )
    after_seconds: float | None = Field(
        default=None, gt=0, allow_inf_nan=False, description="In place of `at`: so long from now."
    )
    event: str | None = Field(
        default=None, min_length=1, max_length=200, description="In place of a time: the sender, "
        "tool or signal (tool/signal) that the agent perceives then."
    )  # fmt: skip
    about: str | None = Field(
        default=None, min_length=1, max_length=200, description="In place of a time: when this "
        "comes up."
    )  # fmt: skip
    every_seconds: float | None = Field(
        default=None, ge=1, allow_inf_nan=False, description="Again each time, so long after one "
        "another."
    )  # fmt: skip
    again: bool = Field(default=False, description="For an event: each time, not once.")


class _ModuleState(Value):
    perceived: tuple[str, ...] = ()
    tainted: bool = False


class IntentionModule:
    """A cognitive module: an agent perceives its reminders, and makes and cancels them.

    It is also a `PerceptSource` and an `ActionSource`. Each percept that the agent has is an event
    and, by its text, a context. A reminder is given until the cycle that perceived it has an
    outcome, so that the trace has it.

    Args:
        intentions: The agent's intentions.
        times: Whether it fires those by time, too; False where a `SituatedAgent` does that.
    """

    name = "intentions"

    def __init__(self, intentions: Intentions, *, times: bool = True) -> None:
        self.intentions = intentions
        self._kinds = ("time", "event", "context") if times else ("event", "context")
        self._taker = f"module-{id(self)}"
        self._detached = False
        self._perceived: tuple[str, ...] = ()
        self._tainted = False
        """Whether the agent was shown untrusted text in this activity."""
        self._occurred: tuple[str, ...] = ()
        """Keys of the last percepts. A resumed run observes those of its open cycle again: they
        do not fire what was intended after them."""

    # ---- Percepts ----

    async def take_percepts(self) -> Sequence[Percept]:
        """The reminders that are due and not perceived; none where the module is detached."""
        if self._detached:
            return []
        if "time" in self._kinds:
            self.intentions.check()
        waiting = await self.intentions.unperceived(self._taker, kinds=self._kinds)
        return [one for one in waiting if one.id not in self._perceived]

    async def observe(self, event: Percept | Outcome) -> None:
        """Takes a percept for an event and a context; ends the reminders that were perceived."""
        if not isinstance(event, Percept):
            if self._perceived:  # the outcome was flushed, and what was perceived before it, too
                if not self._detached:
                    self.intentions.perceived(self._perceived)
                self._perceived = ()
            self._tainted = self._tainted or _is_tainted(event)
            return
        self._tainted = self._tainted or event.trust is Trust.UNTRUSTED
        if event.kind is PerceptKind.REMINDER:
            self._perceived = (*self._perceived, event.id)
            return
        if not self._detached:
            key = f"{event.at.isoformat()} {event.id}"  # each run counts its percepts from 1
            self._occurred = (*self._occurred, key)[-OCCURRENCES:]
            self.intentions.happened(*_events_of(event), key=key)
            await self.intentions.mentioned(event.content, key=key)

    def detach(self) -> None:
        """For a replay or a fork: no reminder fires or ends by what happens there."""
        self._detached = True

    # ---- Actions ----

    def action_specs(self) -> Sequence[ActionSpec]:
        """To be reminded, and to give it up; both are internal."""
        return _SPECS

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Runs one; what is wrong is in its result."""
        try:
            if call.action == REMIND_ACTION:
                return self._remind(_ReminderWish.model_validate(call.arguments))
            if call.action == CANCEL_ACTION:
                return self._cancel(str(call.arguments.get("id", "")))
        except ValidationError as error:
            return _refused(f"{call.action}: {first_error(error)}")
        except (ValueError, CoagError) as error:
            return _refused(f"{call.action}: {error}")
        return _refused(f"There is no action {call.action!r}: {REMIND_ACTION}, {CANCEL_ACTION}.")

    def _remind(self, wish: _ReminderWish) -> ActionResult:
        trigger = self._trigger(wish)
        trust = Trust.UNTRUSTED if self._tainted else Trust.USER
        one = self.intentions.add(wish.text, trigger, trust=trust, after=self._occurred)
        text = f"You will be reminded {_when(one)} (reminder {one.id})."
        return ActionResult(content=text, data=one.model_dump(mode="json"))

    def _trigger(self, wish: _ReminderWish) -> AtTime | AtEvent | InContext:
        given = [
            name
            for name in ("at", "after_seconds", "event", "about")
            if getattr(wish, name) is not None
        ]
        if len(given) != 1:
            named = " and ".join(given) or "none of them"
            raise ValueError(
                f"say when by exactly one of at, after_seconds, event and about, not {named}."
            )
        if wish.again and wish.event is None:
            raise ValueError("again is for an event; a time or a topic recurs by every_seconds.")
        if wish.event is not None:
            if wish.every_seconds is not None:
                raise ValueError("an event has no every_seconds; give again=true for each time.")
            return AtEvent(event=wish.event, recurring=wish.again)
        if wish.about is not None:
            rest = None if wish.every_seconds is None else max(wish.every_seconds, _REST)
            return InContext(cue=wish.about, rest=rest)
        now = self.intentions.clock.now()
        try:
            at = wish.at or now + timedelta(seconds=wish.after_seconds or 0.0)
        except OverflowError:
            raise ValueError(
                f"after_seconds={wish.after_seconds!r} is beyond all calendars; give less."
            ) from None
        if at < now:
            raise ValueError(
                f"at={at.isoformat()} has passed: it is {now.isoformat()}. Give a time to come."
            )
        return AtTime(at=at, every=wish.every_seconds)

    def _cancel(self, name: str) -> ActionResult:
        if self.intentions.cancel(name):
            return ActionResult(content=f"Reminder {name} is cancelled.")
        waiting = ", ".join(f"{one.id} ({one_line(one.text, 40)})" for one in self._first())
        return _refused(f"There is no reminder {name!r}. Those that wait: {waiting or 'none'}.")

    # ---- Prompts ----

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """The reminders that wait, for the proposal of actions; data, not instruction."""
        waiting = self._first() if phase is Phase.PROPOSAL else ()
        if not waiting:
            return None
        lines = [f"- {one.id}: {one_line(one.text, 120)} ({_when(one)})" for one in waiting]
        trusted = all(one.trust is not Trust.UNTRUSTED for one in waiting)
        return Section(
            title="Reminders that wait",
            text="\n".join(lines),
            source=self.name,
            trust=Trust.USER if trusted else Trust.UNTRUSTED,
            budget=budget,
        )

    def _first(self) -> tuple[Intention, ...]:
        return self.intentions.pending()[:_SHOWN]

    # ---- State ----

    def save_state(self) -> Mapping[str, Any]:
        """What was perceived and may not be given again; the intentions are on disk."""
        saved = _ModuleState(perceived=self._perceived, tainted=self._tainted)
        return saved.model_dump(mode="json")

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state.

        Raises:
            StateError: It is none.
        """
        saved = module_state(_ModuleState, state, self.name)
        self._perceived, self._tainted = saved.perceived, saved.tainted

    def reset_state(self) -> None:
        """Forgets the activity; the intentions stay."""
        self._tainted = False
        self.intentions.release(self._taker)


def _is_tainted(outcome: Outcome) -> bool:
    """Whether a phase was shown untrusted text, or an action of a module brought any."""
    shown: list[Trust] = []
    if isinstance(outcome, RetrievalOutcome):
        shown += [hit.record.provenance.trust for hit in outcome.records]
        shown += [one.trust for one in outcome.felt]
    brought = isinstance(outcome, ExecutionOutcome) and any(
        done.internal and done.result and done.action not in _OWN for done in outcome.executed
    )
    return brought or bool(outcome.untrusted_from) or Trust.UNTRUSTED in shown


def _events_of(percept: Percept) -> list[str]:
    """The names under which a percept is an event."""
    names = [percept.source, percept.kind.value, f"{percept.kind.value}:{percept.source}"]
    data: Any = percept.data
    if percept.kind is PerceptKind.SIGNAL and isinstance(data, dict) and "name" in data:
        names.append(f"{percept.source}/{data['name']}")
    return names


def _when(one: Intention) -> str:
    match one.trigger:
        case AtTime(at=at, every=every):
            again = "" if every is None else f", then every {every:g} s"
            return f"at {at:%Y-%m-%d %H:%M:%S %Z}{again}"
        case AtEvent(event=event, recurring=recurring):
            return f"{'each time' if recurring else 'when'} {one_line(event, 80)} happens"
        case InContext(cue=cue):
            return f"when {one_line(cue, 80)} comes up"


def _refused(text: str) -> ActionResult:
    return ActionResult(content=text, is_error=True, failure=Failure.DETERMINISTIC)


_SPECS = (
    ActionSpec(
        name=REMIND_ACTION,
        description="Remember to do something at a time, at an event, or when something comes up.",
        parameters=_ReminderWish.model_json_schema(),
        internal=True,
    ),
    ActionSpec(
        name=CANCEL_ACTION,
        description="Give a reminder up.",
        parameters={
            "type": "object",
            "properties": {"id": {"type": "string", "description": "The reminder's id."}},
            "required": ["id"],
            "additionalProperties": False,
        },
        internal=True,
    ),
)
