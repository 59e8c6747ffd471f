"""A recorded run as the tape that answers in the place of models and tools."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from autogen_core.models import ModelInfo

from coag.errors import ConfigurationError, ReplayDivergenceError
from coag.schema import ModelCall, TraceRecord
from coag.tracing import Redactor, RunFolder, list_runs, read_trace

from ._asked import ModelRequest, compared, redacted_alike, shown, without_rest
from ._differences import nearest_differs, none_left
from ._plain_json import canonical, hash_of

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
        now = redacted_alike(request.compared(), self._redactor)
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
