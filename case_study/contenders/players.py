"""The contenders as players, which are all driven in the same way."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autogen_agentchat.messages import TextMessage, ToolCallExecutionEvent
from autogen_core import CancellationToken
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench

from case_study.baseline import Guard, PlainAgent, WorldWorkbench
from case_study.tasks import CONTINUE
from coag.agent import CoagAgent
from coag.compat import Recorder
from coag.errors import ConfigurationError
from coag.memory import RuleChange, rules_of
from coag.memory.dynamics import DYNAMICS_FILE, MemoryDynamics
from coag.models import model_name_of
from coag.schema import Constraint
from coag.tracing import RunFolder

from .contender import Act, Change, Contender, Delivery, Message, Observation, Parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What came of a turn."""

    results: tuple[str, ...] = ()
    """What its external actions gave, in order; those of futile attempts too."""
    refused: int = 0
    """Calls that a guard around the tools refused: nothing was done."""


class Player(ABC):
    """An agent that plays an episode; `tokens` returns how many its model has used in this run."""

    def __init__(self, tokens: Callable[[], int] = lambda: 0) -> None:
        self.tokens = tokens

    @property
    @abstractmethod
    def turns(self) -> int:
        """How many turns have begun."""

    @abstractmethod
    async def say(
        self, text: str, messages: Sequence[Message] = (), *, allowance: int | None = None
    ) -> Turn:
        """Lets it take a turn, or continue one; others' messages come before the text.

        `allowance` is how many external actions it may still take; None for no bound.
        """

    @abstractmethod
    async def change(self, change: Change) -> None:
        """Gives it a change of requirements; a repeated one has no effect."""

    @property
    @abstractmethod
    def folder(self) -> RunFolder | None:
        """Its run's folder; None before the first turn."""

    @abstractmethod
    async def close(self) -> None:
        """Ends its run."""


# ---- driving ----

IDLE_TURNS = 2
"""Turns in a row without an action, nor the attempt at one, after which a player has finished."""
REFUSED_TURNS = 6
"""Refused turns in a row after which it is at its end: as many impasses as end a CoAG agent's."""


async def _silence(actions: int) -> Sequence[Message]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """How an episode is driven."""

    bound: int
    """External actions that it may have."""
    done: int = 0
    """Those that were taken before an interrupted run is continued."""
    token_budget: int | None = None
    """Tokens after which it ends; None for the bound alone."""
    before_turn: Callable[[int], Awaitable[Sequence[Message]]] = _silence
    """Called before each turn with the number of actions so far; gives what others say now."""
    after_turn: Callable[[Turn, int], bool] = lambda turn, actions: False
    """Called after each turn with the number of actions so far; True ends the episode."""


async def drive(player: Player, task: str, how: Drive) -> int:
    """Drives a player until a bound, its last word, or what `after_turn` says.

    Returns:
        How many external actions were taken, those before included.
    """
    actions, idle, refused = how.done, 0, 0
    while actions < how.bound and idle < IDLE_TURNS and refused < REFUSED_TURNS:
        if how.token_budget is not None and player.tokens() >= how.token_budget:
            break
        messages = await how.before_turn(actions)
        text = CONTINUE if player.turns else task
        turn = await player.say(text, messages, allowance=how.bound - actions)
        actions += len(turn.results)
        refused = refused + 1 if turn.refused and not turn.results else 0
        idle = 0 if turn.results or turn.refused else idle + 1
        if how.after_turn(turn, actions):
            break
    return actions


# ---- CoAG ----


def coag_agent(
    contender: Contender,
    parts: Parts,
    model: ChatCompletionClient,
    *,
    logs: Path | None = None,
    seed: int = 0,
    rules: Sequence[Constraint] | None = None,
) -> CoagAgent:
    """The CoAG agent that a contender is; `rules` are in force in place of those of the parts."""
    constraints = parts.constraints if rules is None else rules
    settings: dict[str, Any] = {}
    if parts.enforces_schemas:
        settings["enumerate_actions"] = contender.enumerated
    if contender.without:
        settings["ablations"] = frozenset(contender.without)
    agent = CoagAgent(
        parts.name,
        model,
        tools=list(parts.tools),
        system_message=parts.system_prompt,
        model_context=parts.context(),
        constraints=list(constraints) if contender.constrained else [],
        modules=[parts.awareness()] if contender.aware else [],
        max_tool_iterations=1,
        memory=parts.memory,
        procedures=parts.procedures,
        logs=logs,
        recipe=parts.recipe,
        environment=parts.environment,
        seed=seed,
        tool_timeout=parts.tool_timeout,
        depth=contender.depth,
        proposal="grounded" if contender.grounded else "json",
        recall_k=parts.recalled,
        answers="brief",
        **settings,
    )
    if contender.dynamics:
        place = parts.memory / DYNAMICS_FILE if isinstance(parts.memory, Path) else None
        agent.long_term_memory.dynamics = MemoryDynamics("assistant", path=place, owner=parts.name)
    return agent


class CoagPlayer(Player):
    """A CoAG agent that plays; `on_event` is called after each of its events, e.g. to show it."""

    PROCEDURES = ("proposal", "evaluation", "selection", "deliberation")
    """Procedures by which it chooses; a change by procedure is a standing rule of each."""

    def __init__(
        self,
        agent: CoagAgent,
        delivery: Delivery,
        tokens: Callable[[], int] = lambda: 0,
        on_event: Callable[[CoagAgent], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(tokens)
        self.agent = agent
        self._delivery = delivery
        self._on_event = on_event

    @property
    def turns(self) -> int:
        """How many turns have begun."""
        return self.agent.turn

    async def say(
        self, text: str, messages: Sequence[Message] = (), *, allowance: int | None = None
    ) -> Turn:
        """One turn with one action; a turn that a crash interrupted gets no new message."""
        del allowance
        incoming = [TextMessage(content=each.text, source=each.source) for each in messages]
        incoming.append(TextMessage(content=text, source="user"))
        results: list[str] = []
        new = [] if self.agent.in_turn else incoming
        async for item in self.agent.on_messages_stream(new, CancellationToken()):
            if isinstance(item, ToolCallExecutionEvent):
                results += [result.content for result in item.content]
            if self._on_event is not None:
                await self._on_event(self.agent)
        return Turn(results=tuple(results))

    async def change(self, change: Change) -> None:
        """Adds a constraint, or a standing rule to the procedures that choose."""
        if self._delivery == "constraint":
            if change.name not in self.agent.constraints.names():
                self.agent.constraints.add(change.constraint)
            return
        procedures = self.agent.procedures
        for name in self.PROCEDURES:
            if change.sentence not in rules_of(procedures.get(name).text):
                procedures.change_rule(
                    name,
                    RuleChange(operation="add", rule=change.sentence),
                    author="developer",
                    reason="The requirements have changed.",
                )

    @property
    def folder(self) -> RunFolder | None:
        """Its run's folder."""
        return self.agent.run_folder

    async def close(self) -> None:
        """Ends the run."""
        await self.agent.close()


# ---- who is not CoAG, and leaves a recorder's trace ----


class _RecordedPlayer(Player):
    """What players with a recorder share."""

    def __init__(self, recorder: Recorder, tokens: Callable[[], int] = lambda: 0) -> None:
        super().__init__(tokens)
        self._recorder = recorder
        self._changes: list[str] = []

    @property
    def turns(self) -> int:
        return self._recorder.turn

    async def change(self, change: Change) -> None:
        if change.sentence not in self._changes:
            self._changes.append(change.sentence)
            await self._deliver(change.sentence)

    async def _deliver(self, sentence: str) -> None:
        self._recorder.note("prompt", sentence)

    @property
    def folder(self) -> RunFolder | None:
        return self._recorder.folder

    async def close(self) -> None:
        self._recorder.close()


def plain_agent(
    contender: Contender,
    parts: Parts,
    client: ChatCompletionClient,
    recorder: Recorder,
    workbench: Workbench | None = None,
) -> PlainAgent:
    """The plain agent that a contender is; a workbench takes the place of its tools."""
    later = {change.sentence: change.constraint for change in parts.changes}
    guard = Guard(parts.context, parts.constraints, later)
    return PlainAgent(
        parts.name,
        client,
        tools=parts.tools if workbench is None else workbench,
        system_message=parts.utility_prompt,
        recorder=recorder,
        iterations=contender.tool_iterations,
        guard=guard if contender.constrained else None,
        memory=parts.recall if contender.remembers else None,
    )


class _PlainPlayer(_RecordedPlayer):
    def __init__(self, agent: PlainAgent, tokens: Callable[[], int]) -> None:
        super().__init__(agent.recorder, tokens)
        self._agent = agent

    async def say(
        self, text: str, messages: Sequence[Message] = (), *, allowance: int | None = None
    ) -> Turn:
        """Puts what others say above what the user says, in one message."""
        for each in messages:
            self._recorder.message(each.source, each.text)
        said = "\n\n".join([*(each.text for each in messages), text])
        results = await self._agent.say(said, allowance=allowance)
        return Turn(results=tuple(results), refused=self._agent.refused)

    async def _deliver(self, sentence: str) -> None:
        """A new agent, with another system prompt, takes the dialogue over."""
        await self._agent.change_prompt(sentence)

    async def close(self) -> None:
        await super().close()
        await self._agent.close()


FINISHED = "Nothing is left to do."


class _PolicyPlayer(_RecordedPlayer):
    """A policy that plays, one action a turn: chance, a program, or one who sees everything."""

    def __init__(self, contender: Contender, parts: Parts, recorder: Recorder, seed: int) -> None:
        super().__init__(recorder)
        if contender.kind == "oracle" and parts.oracle_action is None:
            raise ConfigurationError("This domain has no oracle: give `Parts.oracle_action`.")
        self._kind = contender.kind
        self._parts = parts
        self._dice = random.Random(f"{seed} {parts.task}")
        self._tools = WorldWorkbench(parts.tools, recorder)
        self._task = ""
        self._messages: list[Message] = []
        self._results: list[str] = []

    async def say(
        self, text: str, messages: Sequence[Message] = (), *, allowance: int | None = None
    ) -> Turn:
        del allowance
        for each in messages:
            self._recorder.message(each.source, each.text)
            self._messages.append(each)
        self._task = self._task or text
        self._recorder.begin_turn()
        act = await self._next()
        if act is None:
            self._recorder.end_turn("respond", FINISHED)
            return Turn()
        result = await self._tools.call_tool(act.action, act.arguments)
        if self._tools.problem is not None:
            raise self._tools.problem
        self._results.append(result.to_text())
        self._recorder.end_turn("actions", "")
        return Turn(results=(self._results[-1],))

    async def _next(self) -> Act | None:
        """What is done next; None when all is done."""
        if self._kind == "random":
            return self._parts.random_action(self._dice)
        if self._kind == "oracle" and self._parts.oracle_action is not None:
            return await self._parts.oracle_action()
        return self._parts.rule_action(
            Observation(
                task=self._task,
                changes=tuple(self._changes),
                messages=tuple(self._messages),
                results=tuple(self._results),
            )
        )


# ---- any of them ----

NO_MODEL = "none"
"""What the run of a contender that asks no model names as its model."""


def build_player(
    contender: Contender,
    parts: Parts,
    model: ChatCompletionClient | None,
    logs: Path,
    seed: int,
    *,
    model_name: str | None = None,
) -> Player:
    """The player that a contender is in a domain.

    Args:
        contender: Which one.
        parts: What the domain brings.
        model: The model; None where the contender asks none. The caller closes it.
        logs: The folder in which the run's folder is made.
        seed: The episode's seed: of chance, and of a CoAG agent's random source.
        model_name: The model as its runs name it; as its client does if not given.

    Raises:
        ConfigurationError: The contender asks a model, and there is none; or the domain has no
            oracle.
    """

    def recorder(model_name: str) -> Recorder:
        return Recorder(
            logs,
            agent=parts.name,
            model=model_name,
            seed=seed,
            configuration={**parts.configuration, "contender": contender.name},
            recipe=parts.recipe if contender.asks_model else None,
        )

    if not contender.asks_model:
        return _PolicyPlayer(contender, parts, recorder(NO_MODEL), seed)
    if model is None:
        raise ConfigurationError(f"Contender {contender.name!r} asks a model: give one.")
    if contender.kind == "coag":
        agent = coag_agent(contender, parts, model, logs=logs, seed=seed)
        delivery = "constraint" if contender.constrained else "procedure"
        return CoagPlayer(agent, delivery, lambda: used_tokens(model))
    plain = plain_agent(contender, parts, model, recorder(model_name or model_name_of(model)))
    return _PlainPlayer(plain, lambda: used_tokens(model))


def used_tokens(model: ChatCompletionClient) -> int:
    """Tokens that a model has read and written since it was opened."""
    usage = model.total_usage()
    return usage.prompt_tokens + usage.completion_tokens
