"""The progress detector: what failed and would fail again is not tried again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from coag.schema import Candidate, Failure, Value, Verdict

TRANSIENT_TRIES = 3
"""Failures of the same call in the same state before a transient one is vetoed."""
REMEMBERED = 100
"""Distinct failing calls remembered; the oldest are forgotten first."""


class FailedCall(Value):
    """A call that failed, and under which progress key."""

    key: str
    count: int
    failure: Failure
    text: str


class ProgressDetector:
    """Vetoes a call that failed before with the same arguments and the same progress key.

    At once where the failure was deterministic, after three where it was transient, and only
    until the key changes.
    """

    name = "progress"

    def __init__(self) -> None:
        self._failed: dict[str, FailedCall] = {}
        self._pass = Verdict(allowed=True, constraint=self.name)

    def note_result(
        self, call: tuple[str, Mapping[str, Any]], key: str, failure: Failure | None, text: str
    ) -> None:
        """Takes in how a call ended under which key; `failure` None means that it worked."""
        identity = _identity(*call)
        before = self._failed.pop(identity, None)
        if failure is None:
            return
        count = before.count + 1 if before is not None and before.key == key else 1
        self._failed[identity] = FailedCall(key=key, count=count, failure=failure, text=text[:200])
        while len(self._failed) > REMEMBERED:
            del self._failed[next(iter(self._failed))]

    def verdict(self, candidate: Candidate, key: str) -> Verdict:
        """Whether trying the candidate (with parsed arguments) can bring anything new."""
        failed = self._failed.get(_identity(candidate.action, candidate.arguments or {}))
        if failed is None or failed.key != key:
            return self._pass
        limit = 1 if failed.failure is Failure.DETERMINISTIC else TRANSIENT_TRIES
        if failed.count < limit:
            return self._pass
        return Verdict(
            allowed=False,
            constraint=self.name,
            reason=f"it failed {failed.count} time(s) and nothing has changed since: {failed.text}",
        )

    def save_state(self) -> dict[str, Any]:
        """The remembered failures as JSON."""
        return {name: call.model_dump(mode="json") for name, call in self._failed.items()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from remembered failures."""
        self._failed = {name: FailedCall.model_validate(call) for name, call in state.items()}


def _identity(action: str, arguments: Mapping[str, Any]) -> str:
    return f"{action} {json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=str)}"
