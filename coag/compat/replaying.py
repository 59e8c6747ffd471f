"""A client and a workbench that answer from the record of a stock agent's run."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

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
from coag.models import ModelClient, ModelRequest, publish_usage
from coag.schema import (
    ActionsListed,
    Intent,
    ModelCall,
    Note,
    Receipt,
    ReceiptStatus,
    TokenUsage,
    TraceRecord,
)
from coag.tracing import Redactor, RunFolder, list_runs, read_trace

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
    redacted_alike,
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
    """The records of a run, without a last line that a crash cut off."""
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
    """The exchanges of a run, each of which answers one equal request; equal ones in order."""

    what: ClassVar[str]
    """What one request is called."""

    def __init__(self, exchanges: Mapping[int, ExchangeT]) -> None:
        self._redactor = Redactor.from_environment()
        self._recorded = len(exchanges)
        self.left = dict(exchanges)
        """Those that were not asked for yet."""
        self._waiting: dict[str, deque[int]] = defaultdict(deque)
        for number, exchange in exchanges.items():
            self._waiting[hash_of(self.compared(exchange))].append(number)
        self.count = 0
        """How many requests the replay has made."""

    @property
    def unused(self) -> tuple[ExchangeT, ...]:
        """The recorded exchanges that were not asked for, in their order."""
        return tuple(self.left.values())

    def compared(self, exchange: ExchangeT) -> dict[str, Any]:
        """What a live request must be equal to."""
        raise NotImplementedError

    def likeness(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> Any:
        """A measure, for the choice of the nearest exchange."""
        raise NotImplementedError

    def compared_parts(self, was: dict[str, Any], now: dict[str, Any]) -> tuple[Any, Any]:
        """The two as a difference between them is shown."""
        return was, now

    def take_equal(self, *forms: dict[str, Any]) -> ExchangeT:
        """The earliest exchange left that is equal to one form of the request."""
        self.count += 1
        for form in forms:
            if waiting := self._waiting.get(hash_of(form)):
                return self.left.pop(waiting.popleft())
        raise self._divergence(forms[0])

    def diverged(self, problem: str, **found: str) -> ReplayDivergenceError:
        """The error for the request just made."""
        return ReplayDivergenceError(what=self.what, number=self.count, problem=problem, **found)

    def _divergence(self, now: dict[str, Any]) -> ReplayDivergenceError:
        if not self.left:
            return self.diverged(f"all {self._recorded} recorded {self.what}s have been answered")
        near = islice(self.left, _COMPARED)
        best = max(near, key=lambda at: self.likeness(self.compared(self.left[at]), now))
        was, is_now = self.compared_parts(self.compared(self.left[best]), now)
        found = first_difference(was, is_now) or JsonDifference("", was, is_now)
        recorded, live = found.shown(_SHOWN)
        problem = f"the nearest recorded one that is left, {self.what} {best}, differs"
        return self.diverged(problem, where=found.path, recorded=recorded, now=live)


class ModelTape(ExchangeTape[ModelCall]):
    """The requests of a run to a model."""

    what = "request"

    def __init__(self, run: Run, model: str | None = None) -> None:
        calls = [record for record in _records_of(run) if isinstance(record, ModelCall)]
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
        asked = calls[0].asked
        self.arguments: Mapping[str, Any] = {} if asked is None else asked.arguments
        super().__init__(dict(enumerate(calls, 1)))

    def take(self, request: ModelRequest) -> ModelCall:
        """The record of this very request."""
        now = redacted_alike(compared_request(request), self._redactor)
        return self.take_equal(now, without_rest(now))

    def compared(self, exchange: ModelCall) -> dict[str, Any]:
        """The request without secrets."""
        return redacted_alike(compared(exchange), self._redactor)

    def likeness(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[int, int]:
        """How many messages two requests have in common at their beginning, and what else."""
        common = 0
        for one, other in zip(was["messages"], now["messages"], strict=False):
            if (one["role"], one["content"]) != (other["role"], other["content"]):
                break
            common += 1
        return common, sum(was.get(key) == now.get(key) for key in now)

    def compared_parts(self, was: dict[str, Any], now: dict[str, Any]) -> tuple[Any, Any]:
        """Only what the record holds is compared."""
        return shown(was), shown(now if "asked" in was else without_rest(now))


def _model_info(calls: Iterable[ModelCall]) -> ModelInfo | None:
    """What the model of these requests can do; None if no record says."""
    infos = [call.asked.model_info for call in calls if call.asked and call.asked.model_info]
    if len({canonical(info) for info in infos}) > 1 and len({call.model for call in calls}) > 1:
        models = ", ".join(sorted({repr(call.model) for call in calls}))
        raise ConfigurationError(
            f"The recorded run asked several models: {models}. Give one client for each: "
            "`ReplayingClient(run, model=NAME)`."
        )
    return cast("ModelInfo", json.loads(json.dumps(infos[-1]))) if infos else None


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
        if receipt.status is ReceiptStatus.CANCELLED or self.raised:
            return
        self.result, self.shown = tool_result_of(self.intent, receipt), shown_of(receipt)

    @property
    def raised(self) -> str | None:
        """The error that it raised."""
        returned = self.receipt.returned if self.receipt else None
        return returned.raised if returned else None


class ToolTape(ExchangeTape[ToolExchange]):
    """The tool calls of a run."""

    what = "tool call"

    def __init__(self, run: Run, names: Collection[str] | None = None) -> None:
        self._names = names
        self._listings: list[tuple[int, list[ToolSchema]]] = []
        """The tools as they were listed, each with the number of the call that was made next."""
        calls = self._read(run)
        listed = {schema["name"] for _, schemas in self._listings for schema in schemas}
        if not listed and (names is None or names):
            wanted = "no tools" if names is None else f"none of the tools {sorted(names)!r}"
            raise ConfigurationError(
                f"The recorded run lists {wanted}. Record it with RecordingWorkbench, or leave "
                "the tools out."
            )
        # An agent answers calls of tools that there are not by itself: they come to no workbench.
        super().__init__({n: call for n, call in calls.items() if call.intent.action in listed})

    def schemas(self) -> list[ToolSchema]:
        """The tools as they were listed last before the first recorded call that is left."""
        first_left = next(iter(self.left), None)
        listings = [each for each in self._listings if each[1]]
        before = [each for each in listings if first_left is None or each[0] <= first_left]
        return [schema for _, schemas in (before or listings[:1])[-1:] for schema in schemas]

    def take(self, name: str, arguments: Mapping[str, Any]) -> ToolExchange:
        """The record of this very call."""
        call = self.take_equal(self._compared(name, arguments))
        if call.result is None and call.raised is None:
            broke_off = "not yet at its end when the recorded run broke off"
            how = "cancelled" if call.receipt else broke_off
            raise self.diverged(f"{name!r} was {how}, so that no result of it is recorded")
        return call

    def compared(self, exchange: ToolExchange) -> dict[str, Any]:
        """The call's name and arguments, without secrets."""
        return self._compared(exchange.intent.action, exchange.intent.arguments)

    def likeness(self, was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        """Whether it is the same tool."""
        return was["action"] == now["action"]

    def _compared(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        call = {"action": name, "arguments": plain_json(arguments)}
        return redacted_alike(call, self._redactor)

    def _read(self, run: Run) -> dict[int, ToolExchange]:
        calls: dict[str, ToolExchange] = {}
        listed: ActionsListed | None = None
        for record in _records_of(run):
            match record:
                case Intent() if not record.internal and self._takes(record.action):
                    calls[record.id] = ToolExchange(record)
                case Receipt() if record.intent_id in calls:
                    calls[record.intent_id].end(record)
                case ActionsListed():
                    listed = record
                    self._list(len(calls) + 1, listed, {})
                case Note() if record.about == SCHEMAS_NOTE and listed is not None:
                    self._listings.pop()  # the same list, with what its specs do not say
                    self._list(len(calls) + 1, listed, record.details)
                case _:
                    pass
        return dict(enumerate(calls.values(), 1))

    def _list(self, before: int, listed: ActionsListed, beside: Mapping[str, Any]) -> None:
        specs = [spec for spec in listed.specs if self._takes(spec.name)]
        self._listings.append((before, schemas_of(specs, beside)))

    def _takes(self, name: str) -> bool:
        return self._names is None or name in self._names


# ---- A model client that answers from a recorded run ----


_CONTEXT_TOKENS = 128_000
"""The context size that is stated: the recorded model's is in no record."""


class ReplayingClientConfig(BaseModel):
    """The declarative form of a replaying client."""

    run: str
    """The run's folder."""
    model: str | None = None
    """The model whose requests are replayed; None for all."""
    model_info: ModelInfo | None = None
    """What it is said to be able to do; None for what was recorded."""


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
        self._tape = ModelTape(run, model)
        self._folder = _folder_of(run)
        self._model = model
        self._given_info = model_info
        self._info = model_info or self._tape.model_info

    @property
    def unused(self) -> tuple[ModelCall, ...]:
        """The recorded requests that were not asked for, in their order."""
        return self._tape.unused

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The further arguments of the first recorded request, such as a limit of its answer.

        What wraps a client may add some by what it knows of the client; for the same requests in
        a replay it has to add these.
        """
        return self._tape.arguments

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Gives the recorded answer.

        Raises:
            ReplayDivergenceError: No such request is left on the tape.
            ModelCallError: The client raised then; the reason is the recorded one.
            CancelledError: The request was cancelled then, or is now.
        """
        call = self._tape.take(request)
        await _let_others_run(request.token)
        return self._ended(call)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """Gives the recorded pieces, then the recorded answer.

        Raises:
            ReplayDivergenceError: No such request is left on the tape.
            ModelCallError: As `answer`, after the pieces that had come.
            CancelledError: As `answer`, after the pieces that had come.
        """
        call = self._tape.take(request)
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
                "The recorded run does not say what its model can do, as it was not recorded "
                "with RecordingClient. Give it: `ReplayingClient(run, model_info=...)`."
            )
        return self._info

    def _to_config(self) -> ReplayingClientConfig:
        return ReplayingClientConfig(
            run=_described(self._folder), model=self._model, model_info=self._given_info
        )

    @classmethod
    def _from_config(cls, config: ReplayingClientConfig) -> Self:
        return cls(config.run, model=config.model, model_info=config.model_info)

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
        self.used += TokenUsage(
            prompt_tokens=result.usage.prompt_tokens,
            completion_tokens=result.usage.completion_tokens,
        )
        return result


async def _let_others_run(token: CancellationToken | None) -> None:
    """Waits a turn of the loop, as a request over a network would, and minds a cancellation."""
    await asyncio.sleep(0)
    if token is not None and token.is_cancelled():
        raise asyncio.CancelledError


# ---- Tools that answer from a recorded run ----


class ReplayingWorkbenchConfig(BaseModel):
    """The declarative form of a replaying workbench."""

    run: str
    """The run's folder."""
    tools: list[str] | None = None
    """Names of the tools that it offers; None for all."""


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
        self._tape = ToolTape(run, tools)
        self._folder = _folder_of(run)
        self._names = None if tools is None else list(tools)
        self.divergence: ReplayDivergenceError | None = None
        """The first call that the run did not make; None if there was none."""

    @property
    def unused(self) -> tuple[Intent, ...]:
        """The recorded calls that were not made, in their order."""
        return tuple(call.intent for call in self._tape.unused)

    def check(self) -> None:
        """Raises what went wrong so far, if anything did.

        Raises:
            ReplayDivergenceError: A call was made that the run did not make.
        """
        if self.divergence is not None:
            raise self.divergence

    async def list_tools(self) -> list[ToolSchema]:
        """The tools as they were listed."""
        return self._tape.schemas()

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
        call = self._take(name, arguments)
        return _diverged(name, call) if isinstance(call, ReplayDivergenceError) else _end(call)

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
        call = self._take(name, arguments)
        if isinstance(call, ReplayDivergenceError):
            yield _diverged(name, call)
            return
        for item in call.shown:
            yield item
        yield _end(call)

    async def start(self) -> None:
        """Nothing is started."""

    async def stop(self) -> None:
        """Ends the replay.

        Raises:
            ReplayDivergenceError: A call was made that the run did not make.
        """
        self.check()

    async def reset(self) -> None:
        """Does nothing: the tape goes on, as the recorded run did."""

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

    def _take(
        self, name: str, arguments: Mapping[str, Any] | None
    ) -> ToolExchange | ReplayDivergenceError:
        try:
            return self._tape.take(name, arguments or {})
        except ReplayDivergenceError as error:
            self.divergence = self.divergence or error
            return error


def _end(call: ToolExchange) -> ToolResult:
    if call.result is None:
        raise RecordedToolError(call.intent.action, call.raised or "an error")
    return call.result


def _diverged(name: str, error: ReplayDivergenceError) -> ToolResult:
    content = TextResultContent(content=f"{name} was not run: {error}")
    return ToolResult(name=name, result=[content], is_error=True)
