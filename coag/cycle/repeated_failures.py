"""The progress detector: what failed and would fail again is not tried again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from coag.schema import Candidate, Failure, Percept, PerceptKind, Trust, Value, Verdict

TRANSIENT_TRIES = 3
"""Failures of the same call in the same state before a transient one is vetoed."""
TRANSIENT_SECONDS = 30.0
"""How long the first such veto lasts; then the call may be tried once, and each further failure
doubles the time."""
LONGEST_VETO = 900.0
"""Seconds that such a veto lasts at most."""
REMEMBERED = 100
"""Distinct failing calls remembered; the oldest are forgotten first."""


class FailedCall(Value):
    """A call that failed, and under which progress key."""

    key: str
    count: int
    failure: Failure
    text: str
    at: datetime | None = None
    """When it failed last; None in states saved before this was noted."""

    def vetoed_until(self) -> datetime | None:
        """When a transient failure may be tried again; None if it may at any time."""
        if self.at is None or self.count < TRANSIENT_TRIES:
            return None
        doublings = min(self.count - TRANSIENT_TRIES, 16)
        return self.at + timedelta(seconds=min(TRANSIENT_SECONDS * 2**doublings, LONGEST_VETO))


class ProgressDetector:
    """Vetoes a call that failed before with the same arguments and the same progress key.

    A deterministic failure is vetoed at once, until the key changes. A transient one is vetoed
    after three, until the key changes, a user says something, or its time is over: an outage ends
    without the agent's doing.
    """

    name = "progress"

    def __init__(self) -> None:
        self._failed: dict[str, FailedCall] = {}
        self._pass = Verdict(allowed=True, constraint=self.name)

    def note_result(
        self,
        call: tuple[str, Mapping[str, Any]],
        key: str,
        failure: Failure | None,
        text: str,
        at: datetime,
    ) -> None:
        """Takes in how a call ended, when and under which key; `failure` None if it worked."""
        identity = _identity(*call)
        before = self._failed.pop(identity, None)
        if failure is None:
            return
        count = before.count + 1 if before is not None and before.key == key else 1
        self._failed[identity] = FailedCall(
            key=key, count=count, failure=failure, text=text[:200], at=at
        )
        while len(self._failed) > REMEMBERED:
            del self._failed[next(iter(self._failed))]

    def perceive(self, percept: Percept) -> None:
        """Forgets transient failures when a user says something: it may know more than we do."""
        if percept.kind is PerceptKind.MESSAGE and percept.trust is Trust.USER:
            lasting = Failure.DETERMINISTIC
            self._failed = {n: one for n, one in self._failed.items() if one.failure is lasting}

    def verdict(self, candidate: Candidate, key: str, now: datetime) -> Verdict:
        """Whether trying the candidate (with parsed arguments) can bring anything new."""
        if not self._failed:
            return self._pass
        failed = self._failed.get(_identity(candidate.action, candidate.arguments or {}))
        if failed is None or failed.key != key:
            return self._pass
        until = None
        if failed.failure is Failure.TRANSIENT:
            until = failed.vetoed_until()
            if until is None or now >= until:
                return self._pass
        times = "once" if failed.count == 1 else f"{failed.count} times"
        later = f"; it may be tried again in {(until - now).total_seconds():.0f} s" if until else ""
        return Verdict(
            allowed=False,
            constraint=self.name,
            reason=f"it failed {times} and nothing has changed since{later}: {failed.text}",
        )

    def save_state(self) -> dict[str, Any]:
        """The remembered failures as JSON."""
        return {name: call.model_dump(mode="json") for name, call in self._failed.items()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from remembered failures."""
        self._failed = {name: FailedCall.model_validate(call) for name, call in state.items()}


def _identity(action: str, arguments: Mapping[str, Any]) -> str:
    return f"{action} {json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)}"
