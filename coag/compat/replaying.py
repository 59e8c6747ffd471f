"""A client and a workbench that answer from the record of a stock agent's run."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from itertools import islice, takewhile
from math import inf
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, cast

from autogen_core import CancellationToken, Component
from autogen_core.models import CreateResult, LLMMessage, ModelInfo
from autogen_core.tools import (
    StaticStreamWorkbench,
    TextResultContent,
    Tool,
    ToolResult,
    ToolSchema,
)
from pydantic import BaseModel

from coag._util.json_diff import JsonDifference, first_difference
from coag.errors import ConfigurationError, RecordedToolError, ReplayDivergenceError
from coag.models import ModelClient, ModelRequest, publish_usage, token_usage
from coag.schema import (
    ActionsListed,
    ActionSpec,
    Intent,
    ModelCall,
    Note,
    Receipt,
    ReceiptStatus,
    Redactor,
    TraceRecord,
)
from coag.tracing import RunFolder, list_runs, read_trace

from .components import NamedComponent
from .exchanges import (
    canonical,
    compared,
    compared_request,
    ended_as,
    error_of,
    hash_of,
    pieces_of,
    plain_json,
    result_of,
    shown,
    shown_of,
    tool_result_of,
    without_rest,
)
from .recorder import SCHEMAS_NOTE, schemas_of

# ---- The recorded run ----


Run = Path | str | RunFolder | Iterable[TraceRecord]
"""A recorded run: its folder, or its records."""


def _records_of(run: Run) -> Iterator[TraceRecord]:
    folder = _folder_of(run)
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


def _folder_of(run: Run) -> Path | None:
    """The run's folder; None where its records were given."""
    if isinstance(run, RunFolder):
        return run.path
    return Path(run) if isinstance(run, str | Path) else None


def _described(folder: Path | None) -> str:
    if folder is None:
        raise ConfigurationError(
            "A replay of records in RAM cannot be described: give the folder of a run."
        )
    return str(folder)


# ---- The tape: what was asked, each of which answers one equal request ----


ExchangeT = TypeVar("ExchangeT", ModelCall, "ToolExchange")
_SHOWN = 160
"""Characters of a value that are shown."""
_COMPARED = 200
"""Recorded requests at most among which the nearest one is looked for."""


class ExchangeTape(Generic[ExchangeT]):
    """The exchanges of a run, each of which answers one equal request; equal ones in order.

    Args:
        what: What one request is called.
        exchanges: By number, in the order in which they were asked.
        form: What a live request must be equal to. Texts of secrets count as redacted in both.
    """

    def __init__(
        self,
        what: str,
        exchanges: Mapping[int, ExchangeT],
        form: Callable[[ExchangeT], dict[str, Any]],
    ) -> None:
        self._what = what
        self._form = form
        self._redactor = Redactor.from_environment()
        self._recorded = len(exchanges)
        self.left = dict(exchanges)
        """Those that were not asked for yet, in their order."""
        self._waiting: dict[str, deque[int]] = defaultdict(deque)
        for number, exchange in exchanges.items():
            self._waiting[hash_of(self._redacted(form(exchange)))].append(number)
        self._count = 0

    def take(self, *forms: dict[str, Any]) -> ExchangeT:
        """The earliest exchange left that is equal to one form of the live request.

        Raises:
            ReplayDivergenceError: There is none.
        """
        self._count += 1
        now = [self._redacted(form) for form in forms]
        for form in now:
            if waiting := self._waiting.get(hash_of(form)):
                return self.left.pop(waiting.popleft())
        if not self.left:
            raise self.diverged(f"all {self._recorded} recorded {self._what}s have been answered")
        known = {
            number: self._redacted(self._form(exchange))
            for number, exchange in islice(self.left.items(), _COMPARED)
        }
        best = max(known, key=lambda number: _likeness(known[number], now[0]))
        was = known[best]
        live = next((form for form in now if form.keys() == was.keys()), now[0])
        parts = shown(was), shown(live)
        difference = first_difference(*parts) or JsonDifference("", *parts)
        recorded, now_shown = difference.shown(_SHOWN)
        problem = f"the nearest recorded one that is left, {self._what} {best}, differs"
        raise self.diverged(problem, where=difference.path, recorded=recorded, now=now_shown)

    def diverged(self, problem: str, **found: str) -> ReplayDivergenceError:
        """The error for the request just made."""
        return ReplayDivergenceError(what=self._what, number=self._count, problem=problem, **found)

    def _redacted(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What was recorded has no secrets, so what is live must have none."""
        return json.loads(self._redactor.clean(canonical(request)))


def _likeness(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[int, int]:
    """How many messages two requests have in common at their beginning, and what else."""
    if "messages" not in now:
        return int(was["action"] == now["action"]), 0
    pairs = zip(was["messages"], now["messages"], strict=False)
    equal = (
        (one["role"], one["content"]) == (other["role"], other["content"]) for one, other in pairs
    )
    common = len(list(takewhile(bool, equal)))
    return common, sum(was.get(key) == now.get(key) for key in now)


# ---- A model client that answers from a recorded run ----


_CONTEXT_TOKENS = 128_000
"""The context size that is stated: the recorded model's is in no record."""


class ReplayingClientConfig(BaseModel):
    """The declarative form of a replaying client: its arguments."""

    run: str
    model: str | None = None
    model_info: ModelInfo | None = None


class ReplayingClient(NamedComponent, ModelClient, Component[ReplayingClientConfig]):
    """Answers requests as a recorded client did, without any model.

    A request is answered by the record of an equal one: the same messages, tools with their
    schemas, tool choice, form of the answer and further arguments, as a stream or not. Equal
    requests are answered in the order in which they were made, so several agents may share the
    client and run at the same time. What was recorded as an error is raised as `ModelCallError`,
    a cancellation as `CancelledError`. Texts of secrets are `[redacted]`, as in the record.

    Of a run of `CoagAgent`, whose phases record less, messages and the names of tools count.

    Its component names the run's folder and begins at the tape's beginning.

    Args:
        run: The folder of a run that was recorded with `RecordingClient`, or its records.
        model: Where the run asked several models: the one whose requests are replayed, as it is
            called in the records.
        model_info: What the model is said to be able to do; by default what was recorded.

    Raises:
        TraceError: The run cannot be read.
        ConfigurationError: It holds no requests to such a model, or several models are in it.
    """

    component_config_schema = ReplayingClientConfig
    component_provider_override = "coag.compat.ReplayingClient"

    def __init__(
        self, run: Run, *, model: str | None = None, model_info: ModelInfo | None = None
    ) -> None:
        super().__init__()
        calls = [record for record in _records_of(run) if isinstance(record, ModelCall)]
        models = sorted({call.model for call in calls})
        if model is not None:
            calls = [call for call in calls if call.model == model]
        if not calls:
            known = f"models: {', '.join(map(repr, models))}" if models else "requests: none"
            wanted = "request" if model is None else f"request to model {model!r}"
            raise ConfigurationError(f"The recorded run holds no {wanted}. Its {known}.")
        # Records are written when answers come; equal requests are answered as they were asked.
        calls.sort(key=lambda call: call.at)
        self._tape = ExchangeTape("request", dict(enumerate(calls, 1)), compared)
        details = calls[0].asked
        self.arguments: Mapping[str, Any] = {} if details is None else details.arguments
        """The further arguments of the first recorded request, such as a limit of its answer.

        What wraps a client may add some by what it knows of the client; for the same requests in
        a replay it has to add these.
        """
        self._folder = _folder_of(run)
        self._model = model
        self._given_info = model_info
        self._info = model_info or _model_info(calls)

    @property
    def unused(self) -> tuple[ModelCall, ...]:
        """The recorded requests that were not asked for, in their order."""
        return tuple(self._tape.left.values())

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Gives the recorded answer.

        Raises:
            ReplayDivergenceError: No such request is left on the tape.
            ModelCallError: The client raised then; the reason is the recorded one.
            CancelledError: The request was cancelled then, or is now.
        """
        call = self._take(request)
        await _let_others_run(request.token)
        return self._ended(call)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """Gives the recorded pieces, then the recorded answer.

        Raises:
            ReplayDivergenceError: No such request is left on the tape.
            ModelCallError: As `answer`, after the pieces that had come.
            CancelledError: As `answer`, after the pieces that had come.
        """
        call = self._take(request)
        for piece in pieces_of(call):
            await _let_others_run(request.token)
            yield piece
        await _let_others_run(request.token)
        if ended_as(call) != "nothing":
            yield self._ended(call)

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """What is left of a context of 128,000 tokens."""
        return _CONTEXT_TOKENS - self.count_tokens(messages, tools=tools)

    @property
    def model_info(self) -> ModelInfo:
        """What the recorded client said of its model.

        Raises:
            ConfigurationError: The run's records do not say, and `model_info` was not given.
        """
        if self._info is None:
            raise ConfigurationError(
                "The recorded run does not say what its model can do: it was not recorded with "
                "RecordingClient. Give it: `ReplayingClient(run, model_info=...)`."
            )
        return self._info

    def _to_config(self) -> ReplayingClientConfig:
        return ReplayingClientConfig(
            run=_described(self._folder), model=self._model, model_info=self._given_info
        )

    @classmethod
    def _from_config(cls, config: ReplayingClientConfig) -> Self:
        return cls(config.run, model=config.model, model_info=config.model_info)

    def _take(self, request: ModelRequest) -> ModelCall:
        now = compared_request(request)
        return self._tape.take(now, without_rest(now))

    def _ended(self, call: ModelCall) -> CreateResult:
        """How the request ended then: the answer, or what was raised."""
        publish_usage(call.usage, failed=bool(call.error))
        match ended_as(call):
            case "cancelled":
                raise asyncio.CancelledError
            case "raised":
                raise error_of(call)
            case _:
                pass
        result = result_of(call)
        self.used += token_usage(result.usage)
        return result


async def _let_others_run(token: CancellationToken | None) -> None:
    """Waits a turn of the loop, as a request over a network would, and minds a cancellation."""
    await asyncio.sleep(0)
    if token is not None and token.is_cancelled():
        raise asyncio.CancelledError


def _model_info(calls: Iterable[ModelCall]) -> ModelInfo | None:
    infos = [call.asked.model_info for call in calls if call.asked and call.asked.model_info]
    if len({canonical(info) for info in infos}) > 1 and len({call.model for call in calls}) > 1:
        models = ", ".join(sorted({repr(call.model) for call in calls}))
        several = f"The recorded run asked several models: {models}. Give one client for each"
        raise ConfigurationError(f"{several}: `ReplayingClient(run, model=NAME)`.")
    return cast("ModelInfo", json.loads(json.dumps(infos[-1]))) if infos else None


# ---- Tools that answer from a recorded run ----


@dataclass(slots=True)
class ToolExchange:
    """A recorded tool call and how it ended."""

    intent: Intent
    receipt: Receipt | None = None
    """None where the run ended before the call did."""
    result: ToolResult | None = None
    """What it gave; None if that was no result."""
    shown: Collection[Any] = ()
    """What it had streamed before."""

    def end(self, receipt: Receipt) -> None:
        """Adds how it ended."""
        self.receipt = receipt
        if receipt.status is not ReceiptStatus.CANCELLED and not self.raised:
            self.result, self.shown = tool_result_of(self.intent, receipt), shown_of(receipt)

    @property
    def raised(self) -> str | None:
        """The error that it raised."""
        returned = self.receipt.returned if self.receipt else None
        return returned.raised if returned else None


def _read_tools(
    run: Run, names: Collection[str] | None
) -> tuple[dict[int, ToolExchange], list[tuple[int, list[ToolSchema]]]]:
    """The calls of a run by number, and each list of tools with the number of the call after it."""

    def takes(name: str) -> bool:
        return names is None or name in names

    calls: dict[str, ToolExchange] = {}
    listings: list[tuple[int, list[ToolSchema]]] = []
    specs: list[ActionSpec] = []
    for record in _records_of(run):
        match record:
            case Intent() if not record.internal and takes(record.action):
                calls[record.id] = ToolExchange(record)
            case Receipt() if record.intent_id in calls:
                calls[record.intent_id].end(record)
            case ActionsListed():
                specs = [spec for spec in record.specs if takes(spec.name)]
                listings.append((len(calls) + 1, schemas_of(specs, {})))
            case Note() if record.about == SCHEMAS_NOTE and listings:
                # the same list, with what its specs do not say
                listings[-1] = (len(calls) + 1, schemas_of(specs, record.details))
            case _:
                pass
    return dict(enumerate(calls.values(), 1)), [one for one in listings if one[1]]


class ReplayingWorkbenchConfig(BaseModel):
    """The declarative form of a replaying workbench: its arguments."""

    run: str
    tools: list[str] | None = None


class ReplayingWorkbench(NamedComponent, StaticStreamWorkbench):
    """Offers the tools of a recorded run and gives the results that they gave; nothing is run.

    A call is answered by the record of an equal one, by name and arguments; equal ones in the
    order in which they were made. Tools are listed as they were before the first recorded call
    that is left.

    Stock agents hang where a workbench raises. So a call that the run did not make gets an error
    as its result; `divergence` keeps the first one, and `check`, `stop` and the end of
    `async with` raise it.

    Its component names the run's folder and begins at the tape's beginning.

    Args:
        run: The folder of a run that was recorded with `RecordingWorkbench`, or its records.
        tools: Names of the tools to offer, where the run had several workbenches, or where it had
            none and lists none; None for all.

    Raises:
        TraceError: The run cannot be read.
        ConfigurationError: It lists no such tools, or a result is of a class that is not imported.
    """

    component_provider_override = "coag.compat.ReplayingWorkbench"
    component_config_schema = ReplayingWorkbenchConfig  # pyright: ignore[reportAssignmentType] - our own

    # It is a StaticStreamWorkbench because AssistantAgent streams the events of no other.

    def __init__(self, run: Run, *, tools: Collection[str] | None = None) -> None:
        super().__init__([])
        calls, self._listings = _read_tools(run, tools)
        listed = {schema["name"] for _, schemas in self._listings for schema in schemas}
        if not listed and (tools is None or tools):
            wanted = "no tools" if tools is None else f"none of the tools {sorted(tools)!r}"
            what = f"The recorded run lists {wanted}"
            raise ConfigurationError(
                f"{what}: record it with RecordingWorkbench, or leave them out."
            )
        # An agent itself answers calls of tools that do not exist: they reach no workbench.
        calls = {number: call for number, call in calls.items() if call.intent.action in listed}
        self._tape = ExchangeTape(
            "tool call", calls, lambda call: _compared(call.intent.action, call.intent.arguments)
        )
        self._folder = _folder_of(run)
        self._names = None if tools is None else list(tools)
        self.divergence: ReplayDivergenceError | None = None
        """The first call that the run did not make; None if there was none."""

    @property
    def unused(self) -> tuple[Intent, ...]:
        """The recorded calls that were not made, in their order."""
        return tuple(call.intent for call in self._tape.left.values())

    def check(self) -> None:
        """Raises the first divergence, if there was one.

        Raises:
            ReplayDivergenceError: A call was made that the run did not make.
        """
        if self.divergence is not None:
            raise self.divergence

    async def list_tools(self) -> list[ToolSchema]:
        """The tools as they were listed last before the first recorded call that is left."""
        first_left = next(iter(self._tape.left), inf)
        before = [schemas for number, schemas in self._listings if number <= first_left]
        known = before[-1:] or [schemas for _, schemas in self._listings[:1]]
        return known[0] if known else []

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """Gives the recorded result, or an error where there is none.

        Raises:
            RecordedToolError: The workbench raised then.
        """
        *_, result = [item async for item in self.call_tool_stream(name, arguments)]
        return result

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any | ToolResult, None]:
        """As `call_tool`, after what the tool showed.

        Raises:
            RecordedToolError: The workbench raised then.
        """
        try:
            call = self._take(name, arguments or {})
        except ReplayDivergenceError as error:
            self.divergence = self.divergence or error
            content = TextResultContent(content=f"{name} was not run: {error}")
            yield ToolResult(name=name, result=[content], is_error=True)
            return
        for item in call.shown:
            yield item
        if call.result is None:
            raise RecordedToolError(name, call.raised or "an error")
        yield call.result

    async def stop(self) -> None:
        """Ends the replay.

        Raises:
            ReplayDivergenceError: A call was made that the run did not make.
        """
        self.check()

    async def save_state(self) -> Mapping[str, Any]:
        """Nothing: the states of the recorded tools are in no record."""
        return {}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Does nothing; a state of the recorded tools is taken as well."""

    def _to_config(self) -> ReplayingWorkbenchConfig:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        return ReplayingWorkbenchConfig(run=_described(self._folder), tools=self._names)

    @classmethod
    def _from_config(cls, config: ReplayingWorkbenchConfig) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride] - ours
        return cls(config.run, tools=config.tools)

    def _take(self, name: str, arguments: Mapping[str, Any]) -> ToolExchange:
        call = self._tape.take(_compared(name, arguments))
        if call.result is None and call.raised is None:
            unfinished = "not yet at its end when the recorded run broke off"
            how = "cancelled" if call.receipt else unfinished
            raise self._tape.diverged(f"{name!r} was {how}, so that no result of it is recorded")
        return call


def _compared(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": name, "arguments": plain_json(arguments)}
