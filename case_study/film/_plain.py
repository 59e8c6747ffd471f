"""The story of a plain run: what its model wants and what its tools return."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from case_study.robot import VacuumState
from coag.schema import Intent, ModelCall, Receipt, TraceRecord, parsed_arguments
from vacuum_world.world import Cell, last_state_line

from ._boards import told_board
from ._deliberation import outcome_words
from ._scenes import Chapter, Mark, Option, Scene, call_text, said, way_of

MODEL, ACTION = "model", "action"
"""What a plain run has in place of phases."""
_SCENES_KEPT = 12
_PATH_KEPT = 400


class PlainStory:
    """Takes the records of a plain run in order, and gives a chapter when its turn is over."""

    def __init__(self) -> None:
        self._state = VacuumState()
        self._path: deque[Cell] = deque(maxlen=_PATH_KEPT)
        self._scenes: list[Scene] = []
        self._options: tuple[Option, ...] = ()
        self._intent: Intent | None = None

    def take(self, record: TraceRecord) -> Iterator[Chapter]:
        """Takes in the next record; gives the turn before it, if one is over now."""
        if record.record == "percept":
            return
        if self._scenes and record.cycle != self._scenes[0].cycle:
            yield from self.end()
        match record:
            case ModelCall():
                self._call(record)
            case Intent():
                self._intent = record
            case Receipt():
                self._receipt(record)
            case _:
                pass

    def end(self) -> Iterator[Chapter]:
        """The turn that was going on, if there was one."""
        if self._scenes:
            yield Chapter(cycle=self._scenes[0].cycle, scenes=tuple(self._scenes))
        self._scenes, self._options = [], ()

    def _call(self, call: ModelCall) -> None:
        if self._state.position is None:
            for message in call.messages:
                self._sense(message.get("content"))
        self._options = tuple(map(_wanted, call.tool_calls[:4]))
        thought = call.given.thought if call.given else None
        text = said(call.raw) or said(thought or "") or said(call.error or "")
        self._show(call.cycle, MODEL, text or "It says nothing.")

    def _receipt(self, receipt: Receipt) -> None:
        self._sense(receipt.content)
        intent, self._intent = self._intent, None
        done = call_text(intent.action, intent.arguments) if intent else "An action"
        about = f"{done}: {outcome_words(receipt.status.value, receipt.content)}"
        self._show(receipt.cycle, ACTION, about)

    def _sense(self, text: object) -> None:
        reading = last_state_line(text) if isinstance(text, str) else None
        if reading is None:
            return
        self._state = self._state.sensed(reading)
        if not self._path or self._path[-1] != reading.position:
            self._path.append(reading.position)

    def _show(self, cycle: int, phase: str, about: str) -> None:
        if len(self._scenes) >= _SCENES_KEPT:
            return
        self._scenes.append(
            Scene(
                cycle=cycle,
                phase=phase,
                about=about,
                options=self._options,
                truth=None,
                belief=told_board(self._state),
                path=tuple(self._path),
            )
        )


def _wanted(call: dict[str, object]) -> Option:
    action, written = str(call.get("name", "")), str(call.get("arguments", ""))
    arguments = parsed_arguments(written)
    return Option(
        text=call_text(action, arguments), mark=Mark.CHOSEN, way=way_of(action, arguments)
    )
