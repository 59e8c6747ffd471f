"""Texts that prompts repeat, written once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from coag.inspector.views import CallView, CycleView, MessageView, PartKind, PhaseView, PromptPart
from coag.schema import Percept

_ABSENT = object()
_SHORT = 160
"""Characters up to which a text is repeated: a reference would be as long."""


class Once:
    """Takes out of prompts what stood in an earlier one of the same run.

    The system messages of a phase are the same in every cycle, so that they would fill a report.
    """

    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        """Where each text was met first."""
        self._brought: dict[str, str] = {}
        """Where each percept was told of first."""
        self._fields: dict[str, Any] = {}
        """The objects of the cycle before."""

    def cycle(self, view: CycleView) -> CycleView:
        """The cycle; of a text that stood before only where."""
        number = view.row.number
        phases = tuple(self._phase(phase, number) for phase in view.phases)
        calls = tuple(self._call(call, f"turn {number}") for call in view.calls)
        told = self._seen.setdefault(view.goal, f"cycle {number}")
        return replace(
            view,
            phases=phases,
            calls=calls,
            state=self._changed(view.state, "state", number),
            environment=self._changed(view.environment, "environment", number),
            goal=view.goal if told == f"cycle {number}" else f"(the same as in {told})",
            percepts=tuple(self._percept(one, "above") for one in view.percepts),
            brought=tuple(self._percept(one, f"cycle {number}") for one in view.brought),
        )

    def _changed(self, value: Any, which: str, number: int) -> Any:
        """Of an object the fields that are not as they were in the cycle before it."""
        before, self._fields[which] = self._fields.get(which), value
        if not (isinstance(value, dict) and isinstance(before, dict)):
            return cast("Any", value)
        now, was = cast("dict[str, Any]", value), cast("dict[str, Any]", before)
        kept = {name: field for name, field in now.items() if was.get(name, _ABSENT) != field}
        return {**kept, "…": f"the other fields are as in the cycle before {number}"}

    def _percept(self, percept: Percept, where: str) -> Percept:
        """What it brought is told in the cycle that brought it; what it changed, in tables."""
        short: dict[str, Any] = {"state_patch": {}, "data": None}
        if len(percept.content) <= _SHORT:
            return percept.model_copy(update=short)
        before = self._brought.setdefault(percept.id, where)
        if before != where:
            short["content"] = f"(the same text as in {before}, among what came of it)"
        return percept.model_copy(update=short)

    def _phase(self, phase: PhaseView, number: int) -> PhaseView:
        where = f"cycle {number}, {phase.phase.value}"
        return replace(phase, calls=tuple(self._call(call, where) for call in phase.calls))

    def _call(self, call: CallView, where: str) -> CallView:
        messages = tuple(self._message(message, where) for message in call.messages)
        return replace(call, messages=messages)

    def _message(self, message: MessageView, where: str) -> MessageView:
        parts: list[PromptPart] = []
        for part in message.parts:
            found = self._part(part, where)
            if parts and found.stood and parts[-1].stood == found.stood:
                parts[-1] = _both(parts[-1], found)
            else:
                parts.append(found)
        return replace(message, parts=tuple(parts))

    def _part(self, part: PromptPart, where: str) -> PromptPart:
        if len(part.text) <= _SHORT:
            return part
        before = self._seen.setdefault(part.text, where)
        return part if before == where else replace(part, stood=before)


def _both(first: PromptPart, second: PromptPart) -> PromptPart:
    """Neighbouring pieces of which the same is to be said, as one."""
    alike = first.kind is second.kind and (first.source, first.trust) == (
        second.source,
        second.trust,
    )
    return replace(
        first,
        kind=first.kind if alike else PartKind.PLAIN,
        title=", ".join(title for title in (first.title, second.title) if title),
        text=first.text + second.text,
        source=first.source if alike else "",
        trust=first.trust if alike else None,
        tokens=first.tokens + second.tokens,
        same=first.same + second.same,
    )
