"""`ConstrainedClient`: the rules of a `ConstrainedWorkbench` for what its agent says and hears."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace

from autogen_core import ComponentModel
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from coag.errors import ConfigurationError, ModelAnswerError
from coag.models import (
    ModelRequest,
    WrappedClient,
    cancellable,
    message_text,
    request_usage,
    token_usage,
)
from coag.schema import TokenUsage, Trust, Verdict

from .constrained_workbench import ConstrainedWorkbench
from .guard import correction_of

_USER = "user"
"""Whose messages are the user's, as for a `CoagAgent`."""
_CORRECTS = "rules"
"""Who says that an answer was forbidden: nobody whose words are trusted."""
_MEMORY = "memory"
"""Who says what is in system messages within a dialogue."""
_EMPTY = "[no text]"


class ConstrainedClient(WrappedClient):
    """A client whose answers are judged by the rules of a workbench, beside which it is used.

    A stock agent's answer is judged as a `CoagAgent`'s: as the action `respond`, by the state that
    its calls led to. A forbidden answer is not given out: the model is asked again, with the rule
    and its reason, three times at most. Then a text says that the answer was withheld and by which
    rule; in place of one that must have a form (`json_output`) a `ModelAnswerError` does. What a
    model thought, or wrote beside calls, is left out if the rules would not let it be said.

    The workbench hears the dialogue as well, each text once: the words of `user` as the user's, all
    else (other agents, memories, results of tools that are not the workbench's) as untrusted. So
    `only_trusted` and `no_foreign_orders` know what the user said. Whoever adds a message of `user`
    to the dialogue speaks as the user: a handoff's context, an `AgentTool`. Give this client to the
    agent that uses the workbench, as the outermost one, and to nothing that writes such messages
    itself (`SelectorGroupChat`, web surfers).

    Where a rule may judge answers, a stream is one piece that comes once it is judged; streams are
    passed on as they come where each rule is known to judge tools only (`@rule("pay")`,
    `only_trusted`, `no_foreign_orders()`, rules of policy files), not so a plain function.

    Not judged is what no model said: with `reflect_on_tool_use=False` an `AssistantAgent` whose
    last round has calls answers with what the tools returned.

    Example:
        `AssistantAgent("a", ConstrainedClient(client, bench), workbench=bench,
        reflect_on_tool_use=True)`

    Args:
        client: Who answers.
        workbench: The agent's workbench; agents may share one, each with its own client.

    Raises:
        ConfigurationError: The workbench is none with rules.
    """

    def __init__(self, client: ChatCompletionClient, workbench: ConstrainedWorkbench) -> None:
        super().__init__(client)
        if not isinstance(workbench, ConstrainedWorkbench):  # pyright: ignore[reportUnnecessaryIsInstance] - by users
            takes = "ConstrainedClient takes the ConstrainedWorkbench of its agent"
            raise ConfigurationError(f"{takes}, not {workbench!r:.80}.")
        self._guard = workbench.guard
        self._guard.hears_answers = True

    async def answer(self, request: ModelRequest) -> CreateResult:
        """Asks the client, as often as it takes; raises what it raises.

        Raises:
            ModelAnswerError: An answer that must have a form stayed forbidden.
            ConfigurationError: Another event loop is using the workbench.
            TraceError: The workbench's run cannot be written to.
        """
        await self._hear(request.messages)
        if not self._guard.judges_answers:
            return await super().answer(request)
        return await cancellable(self._allowed(request), request.token)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[str | CreateResult, None]:
        """Streams from the client where no rule may judge answers; else one judged piece.

        Raises as `answer`.
        """
        await self._hear(request.messages)
        if not self._guard.judges_answers:
            async with aclosing(super().stream(request)) as parts:
                async for part in parts:
                    yield part
            return
        result = await cancellable(self._allowed(request), request.token)
        if result.content and isinstance(result.content, str):
            yield result.content
        yield result

    def dump_component(self) -> ComponentModel:
        """Refused: a loaded agent would get a workbench that is not this one's.

        Raises:
            ConfigurationError: Always.
        """
        raise ConfigurationError(
            "A ConstrainedClient is no component: a client and a workbench that are loaded do not "
            "know each other. Dump the client within (`wrapped`) and the workbench, and make the "
            "agent of both."
        )

    async def _hear(self, messages: Sequence[LLMMessage]) -> None:
        both = (
            one for one in reversed(messages) if _is_users(one) or isinstance(one, AssistantMessage)
        )
        last = next(both, None)
        unanswered = last is not None and _is_users(last)
        await self._guard.hear(_said_in(messages), unanswered=unanswered)

    async def _allowed(self, request: ModelRequest) -> CreateResult:
        """An answer that no rule forbids, or what is said in its place."""
        asked = replace(request, is_stream=False)
        given: list[CreateResult] = []
        verdict = Verdict.allow()
        for _ in range(self._guard.asked_again + 1):
            result = await self._without_thought(await asked.send(self._client))
            given.append(result)
            if not isinstance(result.content, str):
                return _summed_up(result, given)
            verdict = await self._guard.judge_answer(result.content, request.json_output)
            if verdict.allowed:
                return _summed_up(result, given)
            asked = replace(asked, messages=[*asked.messages, *_correction(result, verdict)])
        text = await self._guard.withheld(verdict)
        if request.json_output:
            expected, attempts = request.expected or "JSON", len(given)
            problem = text.rstrip(".")
            raise ModelAnswerError(expected=expected, problem=problem, raw="", attempts=attempts)
        withheld = CreateResult(finish_reason="stop", content=text, usage=_NOTHING, cached=False)
        return _summed_up(withheld, given)

    async def _without_thought(self, result: CreateResult) -> CreateResult:
        if not result.thought or await self._guard.may_show(result.thought):
            return result
        return result.model_copy(update={"thought": None})


_NOTHING = request_usage(TokenUsage())


def _is_users(message: LLMMessage) -> bool:
    return isinstance(message, UserMessage) and message.source == _USER


def _said_in(messages: Iterable[LLMMessage]) -> Iterator[tuple[str, str, Trust]]:
    """What was said to an agent: by whom, what, and how far it is trusted.

    The agent's own words and calls are not among it, nor its instructions: the system message at
    the front. Memories of AutoGen add others.
    """
    for number, message in enumerate(messages):
        if isinstance(message, SystemMessage) and number > 0:
            yield _MEMORY, message.content, Trust.UNTRUSTED
        elif isinstance(message, UserMessage):
            trust = Trust.USER if _is_users(message) else Trust.UNTRUSTED
            yield message.source, message_text(message), trust
        elif isinstance(message, FunctionExecutionResultMessage):
            for result in message.content:
                yield result.name, result.content, Trust.UNTRUSTED


def _correction(result: CreateResult, verdict: Verdict) -> list[LLMMessage]:
    """The forbidden answer, and why it was not given out, as the model is shown it."""
    said = str(result.content) if str(result.content).strip() else _EMPTY
    return [
        AssistantMessage(content=said, source="assistant", thought=result.thought),
        UserMessage(content=correction_of(verdict), source=_CORRECTS),
    ]


def _summed_up(result: CreateResult, given: Sequence[CreateResult]) -> CreateResult:
    """The result with the usage of all requests that it took."""
    usage = request_usage(sum((token_usage(one.usage) for one in given), TokenUsage()))
    cached = all(one.cached for one in given)
    return result.model_copy(update={"usage": usage, "cached": cached})
