"""The tool calls of a recorded run as the tape that answers in the tools' place."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from autogen_core.tools import ToolResult, ToolSchema

from coag.errors import ConfigurationError, ReplayDivergenceError
from coag.schema import ActionsListed, Intent, Note, Receipt, ReceiptStatus
from coag.tracing import Redactor

from ._differences import nearest_differs, none_left
from ._listed_tools import SCHEMAS_NOTE, schemas_of
from ._plain_json import canonical, hash_of, plain_json
from ._returned import result_of, shown_of
from ._tape import Run, records_of


@dataclass(slots=True, kw_only=True)
class RecordedCall:
    """A tool call on the tape."""

    number: int
    """Its place among the recorded ones, from 1."""
    intent: Intent
    receipt: Receipt | None = None
    """None where the run ended before the call did."""
    result: ToolResult | None = None
    """What it came to; None if that was no result."""
    shown: Collection[Any] = ()
    """What it had shown before."""
    used: bool = False
    """True once it has been made again."""

    def end(self, receipt: Receipt) -> None:
        """Takes down how it ended.

        Raises:
            ConfigurationError: Its result is of a class that cannot be found.
        """
        self.receipt = receipt
        if receipt.status is ReceiptStatus.CANCELLED or self.raised:
            return
        self.result, self.shown = result_of(self.intent, receipt), shown_of(receipt)

    @property
    def raised(self) -> str | None:
        """The error that it raised."""
        returned = self.receipt.returned if self.receipt else None
        return returned.raised if returned else None


@dataclass(frozen=True, slots=True)
class _Listing:
    """The tools as they were listed at a place of the tape."""

    before: int
    """Number of the recorded call that was made next."""
    schemas: list[ToolSchema]


class ToolTape:
    """The tool calls of a run, each of which answers one equal call.

    Args:
        run: The run.
        names: Only tools of these names, and no tools at all where it is empty; None for all.

    Raises:
        TraceError: The run cannot be read.
        ConfigurationError: It tells of no such tools, or a result is of a class that cannot be
            found.
    """

    def __init__(self, run: Run, names: Collection[str] | None = None) -> None:
        self._names = names
        self._redactor = Redactor.from_environment()
        self._calls: list[RecordedCall] = []
        self._listings: list[_Listing] = []
        self._read(run)
        offers_some = names is None or bool(names)
        if offers_some and not any(listing.schemas for listing in self._listings):
            wanted = "no tools" if names is None else f"none of the tools {sorted(names)!r}"
            raise ConfigurationError(
                f"The recorded run lists {wanted}. Record it with RecordingWorkbench, or leave "
                "the tools out."
            )
        # An agent answers calls of tools that there are not by itself: they come to no workbench.
        listed = {schema["name"] for each in self._listings for schema in each.schemas}
        self._calls = [call for call in self._calls if call.intent.action in listed]
        self._waiting: dict[str, deque[RecordedCall]] = defaultdict(deque)
        for call in self._calls:
            self._waiting[hash_of(self._recorded(call))].append(call)
        self._count = 0

    @property
    def unused(self) -> tuple[Intent, ...]:
        """The recorded calls that were not made, in their order."""
        return tuple(call.intent for call in self._calls if not call.used)

    def schemas(self) -> list[ToolSchema]:
        """The tools as they were listed last before the first recorded call that is left."""
        left = next((call.number for call in self._calls if not call.used), None)
        told = [listing for listing in self._listings if listing.schemas]
        until = [listing for listing in told if left is None or listing.before <= left]
        listed = (until or told[:1])[-1:]
        return [schema for listing in listed for schema in listing.schemas]

    def take(self, name: str, arguments: Mapping[str, Any]) -> RecordedCall:
        """The record of this very call, the earliest one that is left.

        Raises:
            ReplayDivergenceError: There is none, or its end is not recorded.
        """
        self._count += 1
        now = self._compared(name, arguments)
        waiting = self._waiting.get(hash_of(now))
        if not waiting:
            raise self._divergence(now)
        call = waiting.popleft()
        call.used = True
        if call.result is None and call.raised is None:
            how = (
                "cancelled"
                if call.receipt
                else "not yet at its end when the recorded run broke off"
            )
            problem = f"{name!r} was {how}, so that no result of it is recorded"
            raise ReplayDivergenceError(what="tool call", number=self._count, problem=problem)
        return call

    def _read(self, run: Run) -> None:
        by_id: dict[str, RecordedCall] = {}
        listed: ActionsListed | None = None
        for record in records_of(run):
            match record:
                case Intent() if not record.internal and self._takes(record.action):
                    call = RecordedCall(number=len(self._calls) + 1, intent=record)
                    by_id[record.id] = call
                    self._calls.append(call)
                case Receipt() if record.intent_id in by_id:
                    by_id[record.intent_id].end(record)
                case ActionsListed():
                    listed = record
                    self._list(listed, {})
                case Note() if record.about == SCHEMAS_NOTE and listed is not None:
                    self._listings.pop()  # the same list, with what its specs do not tell
                    self._list(listed, record.details)
                case _:
                    pass

    def _list(self, listed: ActionsListed, beside: Mapping[str, Any]) -> None:
        specs = [spec for spec in listed.specs if self._takes(spec.name)]
        self._listings.append(_Listing(len(self._calls) + 1, schemas_of(specs, beside)))

    def _takes(self, name: str) -> bool:
        return self._names is None or name in self._names

    def _recorded(self, call: RecordedCall) -> dict[str, Any]:
        return self._compared(call.intent.action, call.intent.arguments)

    def _compared(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        call = {"action": name, "arguments": plain_json(arguments)}
        return json.loads(self._redactor.clean(canonical(call)))

    def _divergence(self, now: dict[str, Any]) -> ReplayDivergenceError:
        left = [call for call in self._calls if not call.used]
        if not left:
            return none_left("tool call", self._count, len(self._calls))
        best = next((call for call in left if call.intent.action == now["action"]), left[0])
        return nearest_differs("tool call", self._count, best.number, self._recorded(best), now)
