"""`MafCoagAgent`: our agent as an agent of the Agent Framework."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

from agent_framework import (
    AgentMiddlewareLayer,
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    BaseAgent,
    ContextProvider,
    HistoryProvider,
    Message,
    ResponseStream,
    SessionContext,
    _middleware,  # pyright: ignore[reportPrivateUsage] - no public way
    normalize_messages,
)
from agent_framework.exceptions import AgentInvalidRequestException
from agent_framework.observability import AgentTelemetryLayer
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient

from coag.agent import DESCRIPTION, SYSTEM_MESSAGE, CoagAgent
from coag.context import CoagContext
from coag.cycle import ApprovalPolicy, written_rule
from coag.errors import ConfigurationError
from coag.memory import LongTermMemory
from coag.schema import Constraint

from .approval_desk import YEAR, ApprovalDesk, check_answers
from .chat_model import ChatClient, ChatClientModel
from .guarded_tools import GivenTools, ToolSpace, usable_tools
from .live_sessions import LiveSession, LiveSessions, Opened
from .messages import Incoming, Show, Updates, as_autogen, keys_of, response_of

Response = Awaitable[AgentResponse[Any]] | ResponseStream[AgentResponseUpdate, AgentResponse[Any]]
_OURS = {
    "model_client": "client",
    "tools": "tools",
    "workbench": "tools",
    "model_context": "context",
    "system_message": "instructions",
    "events": "show",
    "model_client_stream": "run(stream=True)",
    "handoffs": "an orchestration of the framework",
}
"""Arguments of `CoagAgent` that have another name here."""


class _CoagRun(BaseAgent):
    """The agent without middleware and telemetry, which are layers around its `run`."""

    def __init__(self, *, sessions: LiveSessions, show: Show, form: Any, **base: Any) -> None:
        super().__init__(**base)
        self._sessions = sessions
        self._show: Show = show
        self._form = form

    def run(
        self,
        messages: Any = None,
        *,
        stream: bool = False,
        session: AgentSession | None = None,
        tools: GivenTools = None,
        options: Mapping[str, Any] | None = None,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> Response:
        """One turn, or what is left of one that waited for approval.

        Args:
            messages: What is said, or the answers to requests for approval.
            stream: Whether updates are given as they come.
            session: Whose turn it is. Without one nothing is kept, and nobody can be asked.
            tools: Tools that only this run has.
            options: Not taken: what the model is asked with is the agent's.
            function_invocation_kwargs: What tools get in their context.
            client_kwargs: What the chat client gets.
            others: Not taken, unless they are None.

        Raises:
            ConfigurationError: Something that cannot be had for one run.
        """
        given = {"options": options, **others}
        if refused := [name for name, value in given.items() if value]:
            raise ConfigurationError(
                f"run() of a MafCoagAgent does not take {', '.join(refused)}. Give it to the "
                "constructor."
            )
        kwargs = dict(client_kwargs or {})
        refuse_function_middleware(kwargs.get("middleware"))
        extra = (usable_tools(tools), dict(function_invocation_kwargs or {}), kwargs)
        kept, asked = AgentSession() if session is None else session, normalize_messages(messages)
        run = self._updates(asked, kept, session is not None, stream, *extra)
        updates = self._sessions.read(kept, run)
        response = ResponseStream(updates, finalizer=lambda all_: response_of(all_, self._form))
        return response if stream else response.get_final_response()

    async def _updates(
        self,
        given: Sequence[Message],
        kept: AgentSession,
        is_kept: bool,
        stream: bool,
        tools: Sequence[Any],
        kwargs: Mapping[str, Any],
        client_kwargs: dict[str, Any],
    ) -> AsyncGenerator[AgentResponseUpdate]:
        async with self._sessions.held(kept):
            try:
                opened = await self._sessions.open(kept, given)
                live, updates = opened.live, Updates(self.name or "", self.id, self._show)
                if opened.recorded is not None:
                    await self._sessions.keep(live, kept, keys_of(given))
                    await live.agent.close()
                    yield updates.said(opened.recorded)
                    return
                live.tools.of_the_run, live.tools.kwargs, live.tools.session = tools, kwargs, kept
                live.desk.reachable = is_kept
                for model in live.models:
                    model.streams, model.client_kwargs = stream, client_kwargs
                async with aclosing(self._turn(opened, given, kept, updates)) as turn:
                    async for update in turn:
                        yield update
            finally:
                if not is_kept:
                    await self._sessions.drop(kept)

    async def _turn(
        self, opened: Opened, given: Sequence[Message], session: AgentSession, updates: Updates
    ) -> AsyncGenerator[AgentResponseUpdate]:
        """Begins a turn, or continues it, and shows it."""
        live, sessions, new = opened.live, self._sessions, opened.incoming
        check_answers(new.answers, live.saved.pending)
        if live.saved.pending and (new.messages or not new.answers):
            waits = ", ".join(one.action for one in live.saved.pending.values())
            raise AgentInvalidRequestException(
                f"Session {session.session_id!r} waits for approval of {waits}. Answer that first "
                "and alone, with request.to_function_approval_response(True or False). Nothing "
                "was run."
            )
        context = await self._before(session, new, live) if new.messages else None
        messages = {} if context is None else context.context_messages
        turn = [as_autogen(one, source) for source, shown in messages.items() for one in shown]
        turn += [as_autogen(one) for one in new.messages]
        sessions.begin(live, session, new)
        live.desk.take(new.answers, live.saved.pending)
        live.saved.pending = {}
        all_updates: list[AgentResponseUpdate] = []
        if live.step is None:
            live.stream = live.agent.on_messages_stream(turn, CancellationToken())
            live.loop = asyncio.get_running_loop()
        heard: Sequence[str] = ()
        try:
            async for item in _steps(live):
                for update in updates.of(item):
                    all_updates.append(update)
                    yield update
            heard = keys_of(given, all_updates)
        finally:
            if live.step is None:  # it has ended, or was interrupted
                await live.end_turn()
                live.desk.forget()
                if not live.desk.left:
                    await sessions.keep(live, session, heard)
        if live.step is not None:
            await sessions.keep_pending(live, session, heard)
            requests = [one.content(name) for name, one in live.saved.pending.items()]
            yield updates.update(requests)
        elif context is not None:
            context._response = response_of(all_updates, self._form)  # pyright: ignore[reportPrivateUsage] - as the framework's own agents do
            await self._run_after_providers(session=session, context=context)

    async def _before(
        self, session: AgentSession, incoming: Incoming, live: LiveSession
    ) -> SessionContext | None:
        """Asks the context providers what to show; a history is in the agent's state already."""
        if not self.context_providers:
            return None
        context = SessionContext(
            session_id=session.session_id,
            service_session_id=session.service_session_id,
            input_messages=list(incoming.messages),
        )
        for provider in self.context_providers:
            if not isinstance(provider, HistoryProvider):
                state = session.state.setdefault(provider.source_id, {})
                await provider.before_run(
                    agent=cast("Any", self), session=session, context=context, state=state
                )
        middleware = context.get_middleware()
        refuse_function_middleware(middleware)
        live.tools.of_the_run = [*live.tools.of_the_run, *usable_tools(context.tools)]
        for model in live.models:
            if middleware:
                given = [*model.client_kwargs.get("middleware", ()), *middleware]
                model.client_kwargs = {**model.client_kwargs, "middleware": given}
        if context.instructions:
            text = "\n".join(context.instructions)
            context.extend_messages("instructions", [Message("system", [text])])
        return context


class MafCoagAgent(AgentMiddlewareLayer, AgentTelemetryLayer, _CoagRun):  # pyright: ignore[reportIncompatibleMethodOverride] - as the framework's own agents
    """A `CoagAgent` for each session, as one agent of the Agent Framework.

    It retrieves, reasons, proposes, evaluates and selects before it acts: in `run`, in streams, in
    orchestrations, and as a tool of other agents. Each session has an agent of its own, which is
    let go when it is idle and made again of the session: `session.state["coag"]` holds its state.
    With `logs`, each session has a run folder, too: a turn that was killed is continued from it,
    what was done is not done again, and a request for approval waits there for days.

    Rules judge each call; then a person is asked, by the framework's request for approval, where
    the tool says `approval_mode="always_require"` or the policy says so; then rules judge again.

    Example:
        `MafCoagAgent(client, "You buy.", name="buyer", tools=[buy], constraints=[within_ten])`

    Args:
        client: Any chat client of the framework. It is asked with tools that are only declared, so
            that it can run none.
        instructions: What the developer says to the model.
        name: A Python identifier.
        id: Its id in the framework; a new one if left out.
        description: What it can do, for orchestrations and as a tool.
        tools: Functions, `FunctionTool`s and MCP tools of the framework.
        context: A class of `CoagContext`, or a function that makes one: each session has its own.
        constraints: Hard rules in code.
        memory: A `LongTermMemory`, shared by all sessions, or a function that gives the one of a
            session. It is not closed.
        modules: A function that makes the cognitive modules of a session.
        logs: Folder for run folders; None keeps traces in RAM, and nothing survives a crash.
        approval: Which actions are asked about besides.
        context_providers: What they show arrives as messages that are not trusted.
        middleware: Agent and chat middleware. Functions are run here, not by the framework.
        show: `phases`: every phase as reasoning. `tools`: the calls that were run, and their
            results. `answer`: only that.
        model_info: What the model can do, where it is not all: `{"vision": False}`.
        sessions: Sessions whose agents are kept in RAM at most.
        idle_seconds: After so long an unused one is let go, at the next run.
        options: Any further argument of `CoagAgent`, e.g. `depth`, `output_content_type`, `seed`.

    Raises:
        ConfigurationError: Arguments that cannot work together; the message says which.
    """

    AGENT_PROVIDER_NAME = "coag"

    def __init__(  # noqa: PLR0913 - a client, a name; all others have defaults
        self,
        client: ChatClient,
        instructions: str | None = SYSTEM_MESSAGE,
        *,
        name: str,
        id: str | None = None,
        description: str = DESCRIPTION,
        tools: GivenTools = None,
        context: Callable[[], CoagContext[Any]] = CoagContext,
        constraints: Sequence[Constraint] = (),
        memory: LongTermMemory | Callable[[AgentSession], LongTermMemory] | None = None,
        modules: Callable[[], Sequence[Any]] | None = None,
        logs: Path | str | None = None,
        approval: ApprovalPolicy | None = None,
        context_providers: Sequence[ContextProvider] = (),
        middleware: Sequence[Any] = (),
        show: Show = "tools",
        model_info: Mapping[str, Any] | None = None,
        sessions: int = 256,
        idle_seconds: float = 3_600.0,
        **options: Any,
    ) -> None:
        makers = {"context": context, "modules": tuple if modules is None else modules}
        _check({**options, "memory": memory}, show, middleware, makers)
        self._parts: dict[str, Any] = {
            "client": client,
            "tools": usable_tools(tools),
            "context": context,
            "memory": memory,
            "modules": modules,
            "approval": approval,
            "info": model_info,
        }
        self._arguments: dict[str, Any] = {
            **options,
            "name": name,
            "description": description,
            "system_message": instructions,
            "constraints": constraints,
            "logs": logs,
            "model_client_stream": True,
            "events": "phases" if show == "phases" else "stock",
        }
        folder = None if logs is None else Path(logs)
        live = LiveSessions(name, self._make, logs=folder, most=sessions, idle=idle_seconds)
        super().__init__(
            id=id,
            name=name,
            description=description,
            context_providers=context_providers,
            middleware=middleware or None,
            sessions=live,
            show=show,
            form=options.get("output_content_type"),
        )
        self._make(AgentSession())  # what is wrong with the arguments is said at once

    async def close(self) -> None:
        """Releases the agents of all sessions; what waits for approval stays in its run folder.

        Runs after it make them again. Memory, MCP tools and the client are their makers' to close.
        """
        await self._sessions.close()

    async def __aenter__(self) -> Self:
        """The agent itself."""
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Closes it."""
        await self.close()

    def agent(self, session: AgentSession) -> CoagAgent:
        """The agent of a session that has run here: its state, its run folder, its rules.

        Raises:
            UnknownNameError: It is not in RAM.
        """
        return self._sessions.live(session).agent

    def _make(self, session: AgentSession) -> LiveSession:
        parts, arguments = self._parts, dict(self._arguments)
        models = [ChatClientModel(parts["client"], parts["info"])]
        phases: dict[str, ChatCompletionClient] = {}
        given: Mapping[str, Any] = arguments.pop("models", None) or {}
        for phase, client in given.items():
            if isinstance(client, ChatCompletionClient):
                phases[phase] = client
            else:
                models.append(ChatClientModel(client, parts["info"]))
                phases[phase] = models[-1]
        memory: Any = parts["memory"]
        space, policy = ToolSpace(parts["tools"]), cast("ApprovalPolicy | None", parts["approval"])
        waits = policy is not None and "wait_seconds" in policy.model_fields_set
        desk = ApprovalDesk(policy.wait_seconds if waits and policy is not None else None)
        if "approve" not in arguments and self._asks(space):
            arguments |= {"approve": desk, "approval": _policy(policy, space)}
        elif policy is not None:
            arguments["approval"] = policy
        agent = CoagAgent(
            model_client=models[0],
            workbench=[space],
            model_context=parts["context"](),
            memory=memory
            if memory is None or isinstance(memory, LongTermMemory)
            else memory(session),
            modules=() if parts["modules"] is None else parts["modules"](),
            models=phases or None,
            **arguments,
        )
        desk.leave = partial(agent.leave_run, in_turn=True)
        return LiveSession(agent, models, space, desk)

    def _asks(self, space: ToolSpace) -> bool:
        """Whether a person may have to be asked."""
        rules = [written_rule(one) for one in self._arguments["constraints"]]
        by_rule = any(one is not None and one.approval is not None for one in rules)
        return self._parts["approval"] is not None or space.may_ask or by_rule


def _check(
    given: Mapping[str, Any], show: str, middleware: Any, makers: Mapping[str, object]
) -> None:
    """Refuses arguments that cannot be.

    Raises:
        ConfigurationError: Names the argument, and what to give instead.
    """
    for name, here in _OURS.items():
        if name in given:
            raise ConfigurationError(f"MafCoagAgent has no argument {name!r}: use {here}.")
    if show not in ("phases", "tools", "answer"):
        raise ConfigurationError(f"show={show!r}: give 'phases', 'tools' or 'answer'.")
    for name, make in makers.items():
        if not callable(make):
            raise ConfigurationError(
                f"{name}={make!r:.80}: give a class, or a function that makes it for each session."
            )
    if isinstance(memory := given["memory"], str | Path):
        raise ConfigurationError(
            f"memory={memory!r}: sessions share one memory, so open it once: "
            "LongTermMemory(open_store(FOLDER), scope=NAME)."
        )
    refuse_function_middleware(middleware)


def _policy(given: ApprovalPolicy | None, space: ToolSpace) -> ApprovalPolicy:
    """The policy, with what tools say themselves; in memory a request waits as long as it takes."""
    base = given or ApprovalPolicy(name="approval_mode", when=[space.asks], require=frozenset())
    when = base.when if given is None else (*base.when, space.asks)
    return base.model_copy(update={"when": when, "wait_seconds": YEAR})


def refuse_function_middleware(middleware: Any) -> None:
    """Refuses middleware that would never be called.

    Raises:
        ConfigurationError: There is function middleware.
    """
    found = _middleware.categorize_middleware(middleware)["function"] if middleware else []
    if found:
        raise ConfigurationError(
            f"middleware: {found[0]!r:.80} is for functions, and the framework runs none here: a "
            "MafCoagAgent runs its tools itself. Give rules (constraints=) instead."
        )


async def _steps(live: LiveSession) -> AsyncGenerator[Any]:
    """What a turn shows, until its end or until it waits for approval (`live.step`)."""
    stream = live.stream
    if stream is None:
        raise AssertionError("A turn has a stream.")
    asked = asyncio.create_task(live.desk.asked.wait())
    try:
        while True:
            step = live.step or asyncio.create_task(cast("Any", anext(stream)))
            live.step = step
            if asked.done():
                asked = asyncio.create_task(live.desk.asked.wait())
            await asyncio.wait({step, asked}, return_when=asyncio.FIRST_COMPLETED)
            if not step.done():
                return
            live.step = None
            try:
                item = step.result()
            except StopAsyncIteration:
                return
            yield item
    except (asyncio.CancelledError, GeneratorExit):
        await live.end_turn()
        raise
    finally:
        asked.cancel()
