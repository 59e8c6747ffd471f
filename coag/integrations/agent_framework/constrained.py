"""`ConstrainedMiddleware`: our rules around any agent of the Agent Framework."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import warnings
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from agent_framework import (
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    Message,
    MiddlewareBundle,
    MiddlewareFailure,
    ResponseStream,
    SessionContext,
    add_usage_details,
)
from pydantic import BaseModel

from coag._util.timeouts import describe_error
from coag.compat import Guard, JudgedCall, ToolRunner, correction_of
from coag.context import CoagContext
from coag.cycle import ApprovalPolicy, ApproveFunction
from coag.errors import ConfigurationError, UnknownNameError
from coag.schema import Constraint, Verdict

from .dialogue import Speaker, hear_results, words_of
from .guarded_tools import InvokedTool, OfferedTools, json_of

_STATE = "coag_rules"
"""Where a session keeps what its guard knows."""
_OURS = {"_attribution": {"source_id": "coag_rules"}}
"""Marks a message of ours, so that nobody takes it for the user's."""
_ANSWERS = ("text", "uri", "data", "error")
"""Contents that are an answer, or a part of one: texts, links, files, what went wrong."""
_SESSIONS = 256
"""Sessions whose guards are kept in RAM; the others are made again of the session's state."""


# ---- The guard of each session ----


@dataclass(slots=True)
class _Guarded:
    """What is kept for one session."""

    guard: Guard
    saved: Any = None
    """The guard's state as the session holds it."""
    owed: dict[str, list[Content]] = field(default_factory=dict[str, list[Content]])
    """Refusals that a service which keeps the conversation has not heard yet, by conversation."""
    loading: asyncio.Lock = field(default_factory=asyncio.Lock)
    loaded: bool = False


class _Guards:
    """Makes and finds guards: one for all sessions, or one for each."""

    def __init__(
        self, context: CoagContext[Any] | Callable[[], CoagContext[Any]], arguments: dict[str, Any]
    ) -> None:
        self._shared: CoagContext[Any] | None = None
        if isinstance(context, CoagContext):
            self._shared = cast("CoagContext[Any]", context)
        self._make_context: Any = context
        self._arguments = arguments
        self._live: OrderedDict[str, _Guarded] = OrderedDict()
        self._make("")  # what is wrong with the rules is said at once

    def live(self, session: AgentSession | None) -> _Guarded:
        """The guard of a session, as far as there is one.

        Raises:
            UnknownNameError: There is none yet.
        """
        name = self._name(session)
        if name not in self._live:
            raise UnknownNameError("session with a guard", name, self._live)
        return self._live[name]

    async def of(self, session: AgentSession | None) -> _Guarded:
        """The guard of a session; made, or brought to the session's state, where needed."""
        name = self._name(session)
        state: Any = None
        if session is not None and self._shared is None:
            state = session.state.get(_STATE)
        live = self._live.get(name)
        if live is None or (live.loaded and state is not None and live.saved != state):
            if live is not None:
                live.guard.trace.close()
            live = self._live[name] = _Guarded(self._make(name))
        self._live.move_to_end(name)
        async with live.loading:
            if not live.loaded and state is not None:
                await live.guard.load_state(state)
                live.saved = state
            live.loaded = True
        while len(self._live) > _SESSIONS:
            _, oldest = self._live.popitem(last=False)
            oldest.guard.trace.close()
        return live

    def speaker(self, session: AgentSession | None) -> Speaker:
        """The agent of a session; where all share a guard, its words are its own in it alone."""
        apart = session.session_id if session is not None and self._shared is not None else ""
        return Speaker(self._arguments["name"], session, apart)

    async def keep(self, live: _Guarded, session: AgentSession | None) -> None:
        """Keeps what a guard knows in the session."""
        if session is not None and self._shared is None:
            live.saved = session.state[_STATE] = await live.guard.save_state()

    def close(self) -> None:
        """Ends all runs."""
        for live in self._live.values():
            live.guard.trace.close()

    def _name(self, session: AgentSession | None) -> str:
        return "" if self._shared is not None or session is None else session.session_id

    def _make(self, name: str) -> Guard:
        own = f".{hashlib.sha256(name.encode()).hexdigest()[:12]}" if name else ""
        context: object = self._make_context() if self._shared is None else self._shared
        if not isinstance(context, CoagContext):
            raise ConfigurationError(
                f"context={context!r:.80}: give a CoagContext, or a class or function that makes "
                "one for each session."
            )
        arguments: dict[str, Any] = {**self._arguments, "name": f"{self._arguments['name']}{own}"}
        made = cast("CoagContext[Any]", context)
        guard = Guard(context=made, runner=ToolRunner(), **arguments)
        guard.hears_answers = True
        return guard


# ---- Judging the calls of an answer, before anybody is asked for approval ----


@dataclass(slots=True)
class _Answer:
    """The calls of a model's answer, and the tools that it was offered."""

    response: ChatResponse[Any]
    tools: dict[str, FunctionTool]
    """The tools that the framework runs."""
    declared: frozenset[str]
    """Names of tools that the host runs."""
    ends_at_unknown: bool
    """Whether the framework ends the run at an unknown tool."""

    @classmethod
    def of(cls, response: ChatResponse[Any], context: ChatContext) -> _Answer:
        """The answer to a request."""
        offered: Any = (context.options or {}).get("tools") or ()
        settings: Any = getattr(context.client, "function_invocation_configuration", None) or {}
        hosts = list(settings.get("additional_tools") or ())
        tools = {tool.name: tool for tool in [*hosts, *offered] if isinstance(tool, FunctionTool)}
        declared = {tool.name for tool in hosts}
        declared |= {tool.name for tool in tools.values() if tool.declaration_only}
        ends = bool(settings.get("terminate_on_unknown_calls", False))
        return cls(response, tools, frozenset(declared), ends)

    @property
    def calls(self) -> list[Content]:
        """The calls that are to be run."""
        contents = [one for message in self.response.messages for one in message.contents]
        answered = {one.call_id for one in contents if one.type == "function_result"}
        return [
            one
            for one in contents
            if one.type == "function_call"
            and not one.informational_only
            and not one.hosted
            and one.call_id not in answered
        ]

    @property
    def must_be_judged(self) -> bool:
        """Whether a call would be shown to a person, or never reach the middleware of functions.

        Where not, each call is judged right before it runs, by the state after the one before.
        """
        return any(self._is_shown(call) for call in self.calls)

    def _is_shown(self, call: Content) -> bool:
        tool = self.tools.get(call.name or "")
        if tool is None:
            return not self.ends_at_unknown
        return tool.name in self.declared or tool.approval_mode == "always_require"

    def apply(self, judged: Sequence[JudgedCall]) -> list[Content]:
        """Writes completed arguments into the calls; the results of those that are forbidden."""
        results: list[Content] = []
        for call, one in zip(self.calls, judged, strict=True):
            if one.refusal:
                known = call.call_id or call.id or ""
                results.append(Content.from_function_result(call_id=known, result=one.refusal))
            elif one.evaluation.arguments != _arguments_of(call):
                call.arguments = json.dumps(one.evaluation.arguments, ensure_ascii=False)
        return results


def _arguments_of(call: Content) -> object:
    """The arguments of a call; a text that is no JSON stays a text, which fits no schema."""
    given: Any = call.arguments
    if not isinstance(given, str):
        return {} if given is None else json_of(given)
    try:
        return json.loads(given or "{}")
    except (ValueError, RecursionError):
        return given


class _AnswerGuard(ChatMiddleware):
    """Judges what a model says, and calls that a person would be asked about or nobody runs."""

    def __init__(self, guards: _Guards) -> None:
        self._guards = guards

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Takes in what was said, asks the model and judges what it calls and says."""
        live = await self._guards.of(context.session)
        speaker = self._guards.speaker(context.session)
        if await speaker.hear(context.messages, live.guard):
            await self._guards.keep(live, context.session)
        _pay(context, live)
        await call_next()
        if not context.stream:
            context.result = await self._answered(context.result, context, call_next, live)
            return
        held = live.guard.judges_answers
        updates = (self._held if held else self._streamed)(context.result, context, call_next, live)
        shape = (context.options or {}).get("response_format")
        context.result = ResponseStream(
            updates,
            finalizer=lambda all_: ChatResponse.from_updates(all_, output_format_type=shape),
        )

    async def _answered(
        self,
        result: object,
        context: ChatContext,
        call_next: Callable[[], Awaitable[None]],
        live: _Guarded,
    ) -> ChatResponse[Any]:
        """The answer, of which nothing is forbidden any more, or what is said in its place."""
        earlier: list[Message] = []
        usage: Any = None
        for left in range(live.guard.asked_again, -1, -1):
            response = await _whole(result)
            await hear_results(response, live.guard)
            usage = add_usage_details(usage, response.usage_details)
            calls = bool(_Answer.of(response, context).calls)
            asks_again = await self._judge(response, context, live)
            refused = await self._judge_text(response, context, live, beside_calls=calls)
            draft = response.messages
            if refused is not None:
                asks_again = True
                response.messages = [] if left else [await _withheld(refused, context, live)]
                response.raw_representation = None
            response.messages[:0] = earlier
            response.usage_details = usage
            if not asks_again or not left:
                await self._know(response, context, live)
                return response
            earlier = list(response.messages)
            if refused is not None:
                _correct(context, response, draft, refused)
            else:
                _ask_again(context, response, last=left == 1)
            await call_next()
            result = context.result
        raise AssertionError("unreachable: the last answer is returned")

    async def _held(
        self,
        stream: object,
        context: ChatContext,
        call_next: Callable[[], Awaitable[None]],
        live: _Guarded,
    ) -> AsyncGenerator[ChatResponseUpdate]:
        """The answer in one piece, once it is judged."""
        for update in (await self._answered(stream, context, call_next, live)).to_updates():
            yield update

    async def _streamed(
        self,
        stream: object,
        context: ChatContext,
        call_next: Callable[[], Awaitable[None]],
        live: _Guarded,
    ) -> AsyncGenerator[ChatResponseUpdate]:
        """The answer while it is written; its calls come once they are judged."""
        for number in range(1, live.guard.asked_again + 2):
            if not isinstance(stream, ResponseStream):
                raise MiddlewareFailure(f"There is no stream to judge, but {stream!r:.80}.")
            answer = cast("ResponseStream[ChatResponseUpdate, ChatResponse[Any]]", stream)
            held: ChatResponseUpdate | None = None
            async with answer:
                async for update in answer:
                    if any(one.type == "function_call" for one in update.contents):
                        held = update
                    yield _without_calls(update)
                response = await answer.get_final_response()
            await hear_results(response, live.guard)
            asks_again = await self._judge(response, context, live)
            await self._know(response, context, live)
            for update in _held_back(response, held):
                yield update
            if not asks_again:
                return
            _ask_again(context, response, last=number == live.guard.asked_again)
            await call_next()
            stream = context.result

    async def _judge(
        self, response: ChatResponse[Any], context: ChatContext, live: _Guarded
    ) -> bool:
        """Puts the results of forbidden calls into the answer; whether no call is left in it."""
        answer = _Answer.of(response, context)
        if not answer.must_be_judged:
            return False
        calls = [(call.name or "", _arguments_of(call)) for call in answer.calls]
        judged = await live.guard.judge(calls, OfferedTools(answer.tools))
        results = answer.apply(judged)
        if not results:
            return False
        response.messages.append(Message("tool", results))
        left = bool(answer.calls)
        if left and response.conversation_id is not None:
            live.owed[response.conversation_id] = results
        return not left

    async def _judge_text(
        self,
        response: ChatResponse[Any],
        context: ChatContext,
        live: _Guarded,
        *,
        beside_calls: bool,
    ) -> Verdict | None:
        """What forbids the answer; leaves out thoughts, and words beside calls, that may not be."""
        if not live.guard.judges_answers:
            return None
        await _silence(response, live.guard, "text_reasoning")
        contents = [one for message in response.messages for one in message.contents]
        for kind in _ANSWERS:
            if beside_calls:
                await _silence(response, live.guard, kind)
                continue
            form = _form_of(context) if kind == "text" else None
            for text in _joined(contents, kind):
                verdict = await live.guard.judge_answer(text, form)
                if not verdict.allowed:
                    return verdict
        return None

    async def _know(
        self, response: ChatResponse[Any], context: ChatContext, live: _Guarded
    ) -> None:
        """Keeps what the agent says, so that it is not taken for another's."""
        self._guards.speaker(context.session).know(response.messages, live.guard)
        await self._guards.keep(live, context.session)


async def _whole(result: object) -> ChatResponse[Any]:
    """The whole answer, of a stream too."""
    if isinstance(result, ResponseStream):
        stream = cast("ResponseStream[ChatResponseUpdate, ChatResponse[Any]]", result)
        async with stream:
            return await stream.get_final_response()
    if not isinstance(result, ChatResponse):
        raise MiddlewareFailure(f"There is no answer to judge, but {result!r:.80}.")
    return cast("ChatResponse[Any]", result)


def _joined(contents: Iterable[Content], kind: str) -> list[str]:
    """The text of contents of a kind, as one reader or another puts it together."""
    texts = [words_of(one) for one in contents if one.type == kind]
    texts = texts if kind == "text" else list(filter(None, texts))
    return list(dict.fromkeys(("".join(texts), " ".join(texts)))) if texts else []


async def _silence(response: ChatResponse[Any], guard: Guard, kind: str) -> None:
    """Leaves out what is no answer and may not be said."""
    for message in response.messages:
        for text in _joined(message.contents, kind):
            if not await guard.may_show(text):
                message.contents = [one for one in message.contents if one.type != kind]
                message.raw_representation = response.raw_representation = None
                break


def _correct(
    context: ChatContext, response: ChatResponse[Any], draft: Sequence[Message], verdict: Verdict
) -> None:
    """Prepares the next request, with an answer that was not given out, and why."""
    why = Message("user", [correction_of(verdict)], additional_properties=copy.deepcopy(_OURS))
    if response.conversation_id is None:
        context.messages = [*context.messages, *draft, why]
        return
    context.messages = [why]
    context.options = {**(context.options or {}), "conversation_id": response.conversation_id}


async def _withheld(verdict: Verdict, context: ChatContext, live: _Guarded) -> Message:
    """What is said in place of an answer that stayed forbidden.

    Raises:
        MiddlewareFailure: The answer must have a form, which this has not.
    """
    text = await live.guard.withheld(verdict)
    if _form_of(context):
        raise MiddlewareFailure(text)
    return Message("assistant", [text])


def _form_of(context: ChatContext) -> bool | type[BaseModel]:
    """The type that the answer is to have, or whether it is to be JSON."""
    shape: object = (context.options or {}).get("response_format")
    kind = cast("type[object]", shape) if isinstance(shape, type) else object
    return kind if issubclass(kind, BaseModel) else bool(shape)


def _ask_again(context: ChatContext, response: ChatResponse[Any], *, last: bool) -> None:
    """Prepares the next request, with what was refused; after the last one nothing is called."""
    options = dict(context.options or {})
    if response.conversation_id is not None:
        options["conversation_id"] = response.conversation_id
        context.messages = response.messages[-1:]
    else:
        known = {id(message) for message in context.messages}
        new = [message for message in response.messages if id(message) not in known]
        context.messages = [*context.messages, *new]
    if last:
        options["tool_choice"] = "none"
    context.options = options


def _pay(context: ChatContext, live: _Guarded) -> None:
    """Adds refusals that a service which keeps the conversation has not heard yet."""
    kept_as = (context.options or {}).get("conversation_id")
    owed = live.owed.pop(kept_as, []) if isinstance(kept_as, str) else []
    contents = (one for message in context.messages for one in message.contents)
    answered = {one.call_id for one in contents if one.type == "function_result"}
    missing = [one for one in owed if one.call_id not in answered]
    if missing:
        context.messages = [Message("tool", missing), *context.messages]


def _without_calls(update: ChatResponseUpdate) -> ChatResponseUpdate:
    contents = [one for one in update.contents if one.type != "function_call"]
    if len(contents) == len(update.contents):
        return update
    shown = copy.copy(update)
    shown.contents = contents
    return shown


def _held_back(
    response: ChatResponse[Any], held: ChatResponseUpdate | None
) -> list[ChatResponseUpdate]:
    """The calls of an answer as they were judged, and the results of those that were refused."""
    updates: list[ChatResponseUpdate] = []
    for message in response.messages:
        kinds = ("function_call",) if message.role != "tool" else ("function_result",)
        contents = [one for one in message.contents if one.type in kinds]
        if not contents or held is None:
            continue
        own = copy.copy(held)
        own.contents = contents
        own.role = cast("Any", message.role)
        own.message_id = message.message_id if message.role != "tool" else None
        own.raw_representation = None
        updates.append(own)
    return updates


# ---- Judging each call right before it runs ----


class _CallGuard(FunctionMiddleware):
    """Judges each call right before it runs, one after the other, and lets through what passes."""

    def __init__(self, guards: _Guards, timeout: float) -> None:
        self._guards = guards
        self._timeout = timeout

    async def process(
        self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        """Runs the call under guard.

        Raises:
            MiddlewareFailure: It could not be judged. The run ends; nothing more runs in it.
        """
        tool = InvokedTool(
            {context.function.name: context.function},
            context=context,
            call_next=call_next,
            timeout=self._timeout,
        )
        name, given = context.function.name, json_of(context.arguments)
        try:
            live = await self._guards.of(context.session)
            result = await live.guard.call(name, given, context.metadata.get("call_id"), tools=tool)
            text = result.to_text()
            if tool.text != text and (tool.raised is None or result.may_have_happened):
                context.result = text
            returned = Message("tool", [words_of(context.result)])
            self._guards.speaker(context.session).know([returned], live.guard)
            await self._guards.keep(live, context.session)
        except Exception as error:  # the framework would continue, with the error as a result
            problem = f"{name} could not be judged: {describe_error(error)}"
            raise MiddlewareFailure(problem) from error
        if tool.raised is not None and not result.may_have_happened:
            raise tool.raised


# ---- What users see ----


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the framework calls bundles experimental; so say our docs

    class _Bundle(MiddlewareBundle):
        """Middleware that is installed as a whole or not at all."""


class ConstrainedMiddleware(_Bundle):
    """Rules of `coag` around a stock agent of the Agent Framework: `middleware=[...]`, last.

    Each call is judged by code right before it runs, as `ConstrainedWorkbench` does it and by the
    same guard: does it exist, do the arguments fit the tool's own type, would it fail again, what
    do the constraints say of the state. Calls of one answer run one after the other where rules
    or approvals are in force, each judged by the state after the one before. What is refused is a
    result that names the rule and its reason; the model sees it.

    Calls that a person would be asked about, that the host runs, or whose tool does not exist are
    judged in the model's answer as well: nobody is asked about what is forbidden. The arguments
    that a person sees are those that were judged, with defaults.

    Answers are judged as the action `respond`, also streams, which then come in one piece. In place
    of one that stays forbidden a text says so; where it must have a form, the run ends.

    What arrives is heard: `user` messages as the user's words; as untrusted what other agents say,
    call and read, what tools of the service or the host return, and files that are text. The
    agent's own words are those that its model said in the session, whoever counts as their author.

    What cannot be judged ends the run with a `MiddlewareFailure`.

    Args:
        constraints: Hard rules; the context's own are asked as well.
        context: A class or function that makes what keeps the state that rules judge by: each
            session has its own, saved in `session.state`. Or one context for all sessions.
        approval: What a person has to agree to, in addition to the tools' `approval_mode`.
        approve: Who is asked.
        logs: The folder for run folders, one a session; None keeps traces in RAM.
        name: Who acts, for approvers and in traces. Agents that share a session need each one.
        timeout: Seconds that one call may take.

    Raises:
        ConfigurationError: A constraint is none, two have the same name, or a policy has nobody
            to ask.
    """

    def __init__(
        self,
        constraints: Sequence[Constraint] = (),
        *,
        context: CoagContext[Any] | Callable[[], CoagContext[Any]] = CoagContext[Any],
        approval: ApprovalPolicy | None = None,
        approve: ApproveFunction | None = None,
        logs: Path | str | None = None,
        name: str = "agent",
        timeout: float = 60.0,
    ) -> None:
        arguments: Mapping[str, Any] = {
            "constraints": tuple(constraints),
            "approval": approval,
            "approve": approve,
            "logs": None if logs is None else str(logs),
            "name": name,
            "settings": {"timeout": timeout},
        }
        self._guards = _Guards(context, dict(arguments))
        super().__init__([_AnswerGuard(self._guards), _CallGuard(self._guards, timeout)])

    def guard(self, session: AgentSession | None = None) -> Guard:
        """The guard of a session: its `context`, `trace` and `unfinished` calls.

        Runs without a session share one.

        Raises:
            UnknownNameError: Nothing has run in this session yet.
        """
        return self._guards.live(session).guard

    def provider(self, source_id: str = "coag_rules_middleware") -> ContextProvider:
        """A context provider that installs this, in place of `middleware=[...]`.

        Middleware of providers runs behind that of the agent. Where another provider changes
        calls, as `SecureAgentConfig` does, give this one after it.
        """
        return _Installs(source_id, self)

    def close(self) -> None:
        """Ends all runs in the trace; a later call begins another."""
        self._guards.close()


class _Installs(ContextProvider):
    """Installs middleware behind all that comes before it."""

    def __init__(self, source_id: str, middleware: MiddlewareBundle) -> None:
        super().__init__(source_id)
        self._middleware = middleware

    async def before_run(self, *, context: SessionContext, **more: Any) -> None:
        """Adds it to the run."""
        context.extend_middleware(self.source_id, self._middleware)
