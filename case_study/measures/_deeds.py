"""What became of external actions, counted from a trace alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from coag.schema import Failure, Intent, Receipt, ReceiptStatus, TraceRecord

from ._episode import Episode
from ._tally import Deeds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deed:
    """One external action and what came of it."""

    action: str
    call: str
    at: datetime
    worked: bool
    lasting: bool
    """Whether it failed in a way that is not said to pass by itself."""
    content: str


@dataclass(slots=True)
class _Setback:
    """From a failed action to the next that works."""

    at: datetime
    actions: int = 0


@dataclass(slots=True)
class _Counting:
    """The counts on the way."""

    episode: Episode
    acted: int = 0
    failed: int = 0
    false: int = 0
    mistakes: int = 0
    worked: int = 0
    place: object = None
    failures: set[tuple[str, object]] = field(default_factory=set[tuple[str, object]])
    trials: Counter[str] = field(default_factory=Counter[str])
    open: _Setback | None = None
    closed: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    unadapted: int = 0

    def take(self, deed: _Deed) -> None:
        """Counts one action."""
        if deed.action in self.episode.looks:
            self.place = self.episode.where(deed.content) or self.place
            return
        self.acted += 1
        self.failed += deed.lasting
        self._affordance(deed)
        here = self.worked if self.place is None else self.place
        self.mistakes += (deed.call, here) in self.failures
        self.worked += deed.worked
        self.place = self.episode.where(deed.content) or self.place
        if deed.lasting:  # who fails stays where they were, and now it is known where
            self.failures.add((deed.call, self.worked if self.place is None else self.place))
        self._adaptation(deed)

    def _affordance(self, deed: _Deed) -> None:
        if deed.action in self.episode.gadgets:
            self.trials[deed.action] += 1
            self.false += self.trials[deed.action] > 1
        else:
            self.false += deed.action not in self.episode.tools

    def _adaptation(self, deed: _Deed) -> None:
        if self.open is not None:
            self.open.actions += 1
            if deed.worked:
                self._close(deed.at)
        elif not deed.worked:
            self.open = _Setback(deed.at)

    def _close(self, at: datetime) -> None:
        if self.open is not None:
            self.closed.append((self.open.actions, (at - self.open.at).total_seconds()))
            self.open = None

    def end(self, at: datetime) -> Deeds:
        """The counts; a setback that is open and was followed by something never ended."""
        if self.open is not None and self.open.actions:
            self.unadapted += 1
            self._close(at)
        return Deeds(
            acted=self.acted,
            failed=self.failed,
            false_affordances=self.false,
            repeated_mistakes=self.mistakes,
            setbacks=len(self.closed),
            unadapted=self.unadapted,
            adaptation_actions=sum(actions for actions, _ in self.closed),
            adaptation_seconds=round(sum(seconds for _, seconds in self.closed), 6),
        )


def deeds_of(episode: Episode) -> Deeds:
    """What became of an episode's external actions."""
    counting, latest = _Counting(episode), None
    for deed in _deeds(episode.records):
        counting.take(deed)
        latest = deed.at
    return Deeds() if latest is None else counting.end(latest)


def _deeds(records: tuple[TraceRecord, ...]) -> Iterator[_Deed]:
    intents: dict[str, Intent] = {}
    for record in records:
        if isinstance(record, Intent) and not record.internal:
            intents[record.id] = record
        elif isinstance(record, Receipt) and record.intent_id in intents:
            yield _deed(intents.pop(record.intent_id), record)


def _deed(intent: Intent, receipt: Receipt) -> _Deed:
    worked = receipt.status is ReceiptStatus.DONE
    arguments = json.dumps(intent.arguments, sort_keys=True)
    return _Deed(
        action=intent.action,
        call=f"{intent.action} {arguments}",
        at=receipt.at,
        worked=worked,
        lasting=receipt.status is ReceiptStatus.FAILED and receipt.failure is not Failure.TRANSIENT,
        content=receipt.content,
    )
