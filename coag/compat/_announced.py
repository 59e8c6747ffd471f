"""Tool calls from their intent on, until somebody runs them or tells of their end."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from coag.schema import UNPARSED, Intent


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A tool call that is being run."""

    intent: Intent
    """What was written of it before."""
    begun: float
    """The clock's monotonic reading, in seconds."""

    @property
    def intent_id(self) -> str:
        """Names it in the trace."""
        return self.intent.id


def in_form(arguments: object) -> dict[str, Any]:
    """A call's arguments as they are recorded; models write others than objects, too."""
    if isinstance(arguments, Mapping):
        return dict(cast("Mapping[str, Any]", arguments))
    return {} if arguments is None else {UNPARSED: json.dumps(arguments, default=str)}


class AnnouncedCalls:
    """Calls that an agent has announced, and whose ends are not told yet.

    An agent's announcement and a recording workbench would both write the same call down: who
    runs it takes it over from here, and then its end is theirs to tell.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, list[Attempt]] = defaultdict(list)

    def announce(self, call_id: str, attempt: Attempt) -> None:
        """A call is about to be run, by whoever does."""
        self._waiting[call_id].append(attempt)

    def claim(
        self, call_id: str | None, action: str, arguments: Mapping[str, Any]
    ) -> Attempt | None:
        """Takes over a call in order to run it; None if nobody announced such a one."""
        for attempt in self._waiting.get(call_id or "", ()):
            known = attempt.intent.arguments
            alike = known == dict(arguments) or (UNPARSED in known and UNPARSED in arguments)
            if attempt.intent.action == action and alike:
                self.settle(call_id or "", attempt)
                return attempt
        return None

    def settle(self, call_id: str, attempt: Attempt) -> bool:
        """Strikes a call off; False if somebody has taken it over or told of its end already."""
        waiting = self._waiting.get(call_id, [])
        if attempt not in waiting:
            return False
        waiting.remove(attempt)
        if not waiting:
            del self._waiting[call_id]
        return True
