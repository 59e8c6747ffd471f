"""The record of a stock agent's run, as a tape to answer from."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from autogen_core.models import ModelInfo
from autogen_core.tools import ToolResult, ToolSchema

from coag._util.json_diff import JsonDifference, first_difference
from coag.errors import ConfigurationError, ReplayDivergenceError
from coag.schema import ActionsListed, Intent, ModelCall, Note, Receipt, ReceiptStatus, TraceRecord
from coag.tracing import Redactor, RunFolder, list_runs, read_trace

from .clients import ModelRequest
from .exchanges import (
    canonical,
    compared,
    compared_request,
    hash_of,
    plain_json,
    redacted_alike,
    shown,
    shown_of,
    tool_result_of,
    without_rest,
)
from .recorder import SCHEMAS_NOTE, schemas_of

# ---- Errors of a replay that asks for something else ----


_SHOWN = 160
"""Characters of a value that are shown."""


def nearest_differs(
    what: str, number: int, nearest: int, recorded: Mapping[str, Any], now: Mapping[str, Any]
) -> ReplayDivergenceError:
    """The error where something is asked for that was not recorded.

    Args:
        what: `request` or `tool call`.
        number: Its number in this replay.
        nearest: Number of the recorded one that is most like it.
        recorded: That one.
        now: What is asked for.
    """
    found = first_difference(recorded, now) or JsonDifference("", recorded, now)
    was, is_now = found.shown(_SHOWN)
    return ReplayDivergenceError(
        what=what,
        number=number,
        problem=f"the nearest recorded one that is left, {what} {nearest}, differs",
        where=found.path,
        recorded=was,
        now=is_now,
    )


def none_left(what: str, number: int, total: int) -> ReplayDivergenceError:
    """The error where more is asked for than was recorded."""
    problem = f"all {total} recorded {what}s have been answered"
    return ReplayDivergenceError(what=what, number=number, problem=problem)


# ---- A recorded run as the tape that answers in the place of models and tools ----


Run = Path | str | RunFolder | Iterable[TraceRecord]
"""A recorded run: its folder, or its records."""
_LOOKED_AT = 200
"""Recorded requests at most among which the nearest one is looked for."""


def records_of(run: Run) -> Iterator[TraceRecord]:
    """The records of a run, one at a time; a last line that a crash cut off is left out.

    Raises:
        TraceError: There is no run, or its trace cannot be read.
        ConfigurationError: The folder holds runs and is none itself.
    """
    folder = folder_of(run)
    if folder is None:
        yield from cast("Iterable[TraceRecord]", run)
        return
    if folder.is_dir() and not RunFolder(folder).exists:
        held = next(list_runs(folder), None)
        if held is not None:
            raise ConfigurationError(
                f"{str(folder)!r} is a folder of runs: give one of them, e.g. {str(held.path)!r}."
            )
    for entry in read_trace(RunFolder(folder).trace_path, lambda torn: None):
        yield entry.body


def folder_of(run: Run) -> Path | None:
    """The run's folder; None where its records were given."""
    if isinstance(run, RunFolder):
        return run.path
    return Path(run) if isinstance(run, str | Path) else None


@dataclass(slots=True, kw_only=True)
class Recorded:
    """A request on the tape."""

    number: int
    """Its place among the recorded ones, in the order in which they were made, from 1."""
    call: ModelCall
    used: bool = field(default=False)
    """True once it has been asked for again."""


class ModelTape:
    """The requests of a run to a model, each of which answers one equal request.

    Args:
        run: The run.
        model: Only the requests to the model that is called so in the records; None for all.

    Raises:
        TraceError: The run cannot be read.
        ConfigurationError: It holds no requests to such a model, or to several sorts of models.
    """

    def __init__(self, run: Run, model: str | None = None) -> None:
        calls = [record for record in records_of(run) if isinstance(record, ModelCall)]
        models = sorted({call.model for call in calls})
        if model is not None:
            calls = [call for call in calls if call.model == model]
        if not calls:
            known = f"models: {', '.join(map(repr, models))}" if models else "requests: none"
            wanted = "request" if model is None else f"request to model {model!r}"
            raise ConfigurationError(f"The recorded run holds no {wanted}. Its {known}.")
        self.model_info = _model_info(calls)
        # Records are written when answers come; equal requests are answered as they were asked.
        calls.sort(key=lambda call: call.at)
        self._redactor = Redactor.from_environment()
        self._requests = [Recorded(number=n, call=call) for n, call in enumerate(calls, 1)]
        self._waiting: dict[str, deque[Recorded]] = defaultdict(deque)
        for recorded in self._requests:
            self._waiting[hash_of(self._compared(recorded))].append(recorded)
        self._count = 0

    @property
    def unused(self) -> tuple[ModelCall, ...]:
        """The recorded requests that were not asked for, in their order."""
        return tuple(recorded.call for recorded in self._requests if not recorded.used)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The further arguments of the first recorded request."""
        asked = self._requests[0].call.asked
        return {} if asked is None else asked.arguments

    def take(self, request: ModelRequest) -> ModelCall:
        """The record of this very request, the earliest one that is left.

        Raises:
            ReplayDivergenceError: There is none.
        """
        self._count += 1
        now = redacted_alike(compared_request(request), self._redactor)
        for compared_by in (now, without_rest(now)):
            waiting = self._waiting.get(hash_of(compared_by))
            if waiting:
                recorded = waiting.popleft()
                recorded.used = True
                return recorded.call
        raise self._divergence(now)

    def _compared(self, recorded: Recorded) -> dict[str, Any]:
        return redacted_alike(compared(recorded.call), self._redactor)

    def _divergence(self, now: dict[str, Any]) -> ReplayDivergenceError:
        left = [recorded for recorded in self._requests if not recorded.used][:_LOOKED_AT]
        if not left:
            return none_left("request", self._count, len(self._requests))
        best = max(left, key=lambda recorded: _likeness(self._compared(recorded), now))
        was = self._compared(best)
        if "asked" not in was:
            now = without_rest(now)
        return nearest_differs("request", self._count, best.number, shown(was), shown(now))


def _likeness(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[int, int]:
    """How many messages two requests have in common at their beginning, and what else."""
    common = 0
    for one, other in zip(was["messages"], now["messages"], strict=False):
        if (one["role"], one["content"]) != (other["role"], other["content"]):
            break
        common += 1
    return common, sum(was.get(key) == now.get(key) for key in now)


def _model_info(calls: Iterable[ModelCall]) -> ModelInfo | None:
    """What the model of these requests can do; None if no record tells."""
    told = [call.asked.model_info for call in calls if call.asked and call.asked.model_info]
    if len({canonical(info) for info in told}) > 1 and len({call.model for call in calls}) > 1:
        models = ", ".join(sorted({repr(call.model) for call in calls}))
        raise ConfigurationError(
            f"The recorded run asked several models: {models}. Give one client for each: "
            "`ReplayingClient(run, model=NAME)`."
        )
    return cast("ModelInfo", json.loads(json.dumps(told[-1]))) if told else None


# ---- The tool calls of a recorded run as the tape that answers in the tools' place ----


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
        self.result, self.shown = tool_result_of(self.intent, receipt), shown_of(receipt)

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
