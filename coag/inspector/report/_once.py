"""Texts that prompts repeat, written once."""

from __future__ import annotations

from dataclasses import replace

from coag.inspector.views import CallView, CycleView, MessageView, PhaseView, PromptPart

_SHORT = 160
"""Characters up to which a text is repeated: a reference would be as long."""


class Once:
    """Takes out of prompts what stood in an earlier one of the same run.

    The system messages of a phase are the same in every cycle, so that they would fill a report.
    """

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        """Where each text was met first."""

    def cycle(self, view: CycleView) -> CycleView:
        """The cycle; of a text that stood before only where."""
        number = view.row.number
        phases = tuple(self._phase(phase, number) for phase in view.phases)
        calls = tuple(self._call(call, f"turn {number}") for call in view.calls)
        return replace(view, phases=phases, calls=calls)

    def _phase(self, phase: PhaseView, number: int) -> PhaseView:
        where = f"cycle {number}, {phase.phase.value}"
        return replace(phase, calls=tuple(self._call(call, where) for call in phase.calls))

    def _call(self, call: CallView, where: str) -> CallView:
        messages = tuple(self._message(message, where) for message in call.messages)
        return replace(call, messages=messages)

    def _message(self, message: MessageView, where: str) -> MessageView:
        return replace(message, parts=tuple(self._part(part, where) for part in message.parts))

    def _part(self, part: PromptPart, where: str) -> PromptPart:
        if len(part.text) <= _SHORT:
            return part
        before = self._seen.setdefault(part.text, where)
        return part if before == where else replace(part, stood=before)
