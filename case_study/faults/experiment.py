"""The experiment: runs with one fault each, their twins without it, and their diagnosis."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Literal

from autogen_agentchat.messages import TextMessage, ToolCallExecutionEvent
from autogen_core import CancellationToken

from case_study.baseline import PlainAgent
from case_study.robot import VacuumContext, prompt
from case_study.tasks import CONTINUE, task_text
from case_study.temperaments import TEMPERAMENTS
from coag.agent import CoagAgent
from coag.compat import Recorder
from coag.errors import CoagError
from coag.memory import LongTermMemory
from coag.models import ScriptedModel
from coag.proof import Cause, diagnose
from coag.schema import Note, Receipt, ReceiptStatus, SelectionOutcome, TraceRecord, TurnEnd
from coag.store import Embedder, InMemoryStore, WordLlamaEmbedder
from vacuum_world.client import WorldControl, join_world
from vacuum_world.scenarios import ScenarioSetup, measure
from vacuum_world.server import WorldServer
from vacuum_world.tools import world_tools
from vacuum_world.world import Reading, WorldState, join, last_state_line, sense

from .answers import BELIEFS, EVALUATIONS, NO_ANSWER, PROPOSALS, SELECTIONS, UNUSABLE, broken_script
from .components import (
    CHANGED,
    HANGS,
    LIES,
    MISSED,
    NO_READING,
    PLANS,
    SCOPE,
    STAGES,
    TOOL_VARIANTS,
    UNTRUE,
    Breaker,
    BrokenClient,
    BrokenStore,
    Fault,
    Stage,
    StageName,
    stage_of,
)
from .domain import VacuumDomain


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What went wrong in a run; less is better everywhere."""

    no_success: int = 0
    """1 if the world does not show success."""
    stranded: int = 0
    """1 if the robot is stranded."""
    actions: int = 0
    """Actions taken: more than without the fault are wasted ones."""
    failed_actions: int = 0
    """Tool calls that failed or whose outcome is not known."""
    world_failures: int = 0
    """Actions that the world's own log says were without success."""
    impasses: int = 0
    """Cycles in which nothing could be done."""
    without_answer: int = 0
    """Phases that had to do without the model's answer."""
    idle_turns: int = 0
    """Turns that ended without an action: more than without the fault gave an answer too early."""
    broken_turns: int = 0
    """Turns that broke off."""

    def harm(self, twin: Tally) -> tuple[str, ...]:
        """In what this run is worse than its twin without the fault."""
        names = [field.name for field in fields(self)]
        return tuple(name for name in names if getattr(self, name) > getattr(twin, name))


def tally_of(setup: ScenarioSetup, world: WorldState, records: Sequence[TraceRecord]) -> Tally:
    """Counts a run."""
    truth = measure(setup, world)
    return Tally(
        no_success=not truth.success,
        stranded=truth.stranded,
        actions=sum(isinstance(record, Receipt) for record in records),
        failed_actions=sum(
            isinstance(record, Receipt) and record.status is not ReceiptStatus.DONE
            for record in records
        ),
        world_failures=sum(not line.result.ok for line in world.log),
        impasses=sum(isinstance(record, SelectionOutcome) and record.impasse for record in records),
        without_answer=sum(
            isinstance(record, Note) and record.about == "fallback" for record in records
        ),
        idle_turns=sum(
            isinstance(record, TurnEnd) and record.reason == "respond" for record in records
        ),
        broken_turns=sum(
            isinstance(record, TurnEnd) and record.reason == "error" for record in records
        ),
    )


AgentKind = Literal["coag", "baseline"]
ROBOT = "robot"
IDLE_TURNS = 2
"""Turns in a row without an action after which an agent has finished."""
_PATIENCE, _SHORT_PATIENCE = 60.0, 0.25
"""Seconds that a tool may take; the short one where it never answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run that is over."""

    stage: Stage
    fault: Fault | None
    records: tuple[TraceRecord, ...]
    """Its trace: all that a diagnosis gets of the run itself."""
    struck: tuple[int, ...]
    """The cycles in which the fault struck."""
    tally: Tally
    """What it came to, as the experimenter counts."""
    cycles: int
    """Cycles of a CoAG agent, turns of a plain one."""


@dataclass(frozen=True, slots=True)
class Ground:
    """A served world in which trials take place, one after the other."""

    server: WorldServer
    control: WorldControl
    embedder: Embedder


@asynccontextmanager
async def open_ground() -> AsyncGenerator[Ground]:
    """Serves a world; every trial puts its own beginning into it.

    Raises:
        WorldError: It cannot be served.
    """
    server = await asyncio.to_thread(WorldServer(stage_of("evolution", 0).setup.world).start)
    try:
        async with WorldControl(server.url, server.control_token) as control:
            yield Ground(server, control, WordLlamaEmbedder())
    finally:
        await asyncio.to_thread(server.stop)


async def play(
    stage: Stage, fault: Fault | None, ground: Ground, agent: AgentKind = "coag"
) -> Trial:
    """Plays a stage with a fault, or without one, to its end.

    Raises:
        WorldError: The world failed, which is no fault of the experiment's.
    """
    await ground.control.restore(stage.setup.world)
    member = await join_world(ground.server.url, ROBOT, control_token=ground.server.control_token)
    breaker = Breaker(fault)
    async with BrokenClient(ground.server.url, member, breaker, ground.control) as client:
        if agent == "coag":
            records = await _coag(stage, ground, client, breaker)
        else:
            records = await _plain(stage, client, breaker)
    world = await ground.control.world()
    return Trial(
        stage=stage,
        fault=fault,
        records=records,
        struck=tuple(breaker.struck),
        tally=tally_of(stage.setup, world, records),
        cycles=breaker.now(),
    )


async def _coag(
    stage: Stage, ground: Ground, client: BrokenClient, breaker: Breaker
) -> tuple[TraceRecord, ...]:
    reading = first_reading(stage)
    store = InMemoryStore(ground.embedder)
    await store.add(stage.records)
    context = VacuumContext(reading=reading)
    breaker.now = lambda: context.working_memory.cycle
    hangs = breaker.variant == HANGS
    agent = CoagAgent(
        ROBOT,
        ScriptedModel(broken_script(TEMPERAMENTS["sound"], breaker), name="scripted:sound"),
        tools=world_tools(client),
        model_context=context,
        system_message=prompt("robot"),
        max_tool_iterations=1,
        constraints=stage.rules,
        memory=LongTermMemory(BrokenStore(store, breaker, stage), scope=SCOPE),
        tool_timeout=_SHORT_PATIENCE if hangs else _PATIENCE,
        depth="full",
        proposal="json",
    )

    async def say(text: str) -> list[str]:
        results: list[str] = []
        message = TextMessage(content=text, source="user")
        async for item in agent.on_messages_stream([message], CancellationToken()):
            if isinstance(item, ToolCallExecutionEvent):
                results += [result.content for result in item.content]
        return results

    try:
        await _drive(stage, say)
        return tuple(agent.trace)
    finally:
        await agent.close()


async def _plain(stage: Stage, client: BrokenClient, breaker: Breaker) -> tuple[TraceRecord, ...]:
    recorder = Recorder(None, agent=ROBOT, model="scripted:sound")
    breaker.now = lambda: recorder.turn
    agent = PlainAgent(
        ROBOT,
        ScriptedModel(broken_script(TEMPERAMENTS["sound"], breaker), name="scripted:sound"),
        tools=world_tools(client),
        system_message=prompt("utility"),
        recorder=recorder,
    )

    async def say(text: str) -> list[str]:
        async with asyncio.timeout(_SHORT_PATIENCE if breaker.variant == HANGS else _PATIENCE):
            return await agent.say(text)

    try:
        await _drive(stage, say)
        return recorder.records
    finally:
        await agent.close()
        recorder.close()


async def _drive(stage: Stage, say: Callable[[str], Awaitable[list[str]]]) -> None:
    """The task, then "Continue.", up to a bound, two idle turns, or a stranded robot."""
    text = task_text(stage.setup, first_reading(stage))
    idle = actions = 0
    stranded = False
    while actions < stage.setup.max_actions and idle < IDLE_TURNS and not stranded:
        try:
            results = await say(text)
        except (CoagError, TimeoutError):  # the turn broke off; the trace says why
            results = []
        actions += len(results)
        idle = 0 if results else idle + 1
        stranded = any(_is_stranded(result) for result in results)
        text = CONTINUE


def first_reading(stage: Stage) -> Reading:
    """What the robot senses when it joins."""
    joined = join(stage.setup.world, ROBOT)
    return sense(joined.state, joined.result.id)


def _is_stranded(result: str) -> bool:
    reading = last_state_line(result)
    return reading is not None and reading.stranded


VARIANTS: Mapping[Cause, tuple[str, ...]] = MappingProxyType(
    {
        Cause.MISPERCEPTION: (*LIES, NO_READING),
        Cause.MISSED_RETRIEVAL: MISSED,
        Cause.WRONG_FACT: (*CHANGED, *UNTRUE),
        Cause.FAULTY_REASONING: tuple(BELIEFS),
        Cause.INVALID_PROPOSAL: tuple(PROPOSALS),
        Cause.FAULTY_EVALUATION: tuple(EVALUATIONS),
        Cause.BAD_SELECTION: tuple(SELECTIONS),
        Cause.FAILED_EXECUTION: TOOL_VARIANTS,
        Cause.CHANGED_ENVIRONMENT: tuple(PLANS),
        Cause.UNUSABLE_ANSWER: (*UNUSABLE, NO_ANSWER),
    }
)
"""In which ways each component breaks."""

PLAIN_CAUSES = (
    Cause.MISPERCEPTION,
    Cause.FAULTY_REASONING,
    Cause.INVALID_PROPOSAL,
    Cause.FAILED_EXECUTION,
    Cause.CHANGED_ENVIRONMENT,
    Cause.UNUSABLE_ANSWER,
)
"""The components that a plain agent has too."""

_NOT_PLAIN = {HANGS}
"""AutoGen's `AssistantAgent` sets its tools no time: one that hangs ends the run for good."""
_NEEDS_MEMORY: tuple[StageName, ...] = ("sudden-wall", "evolution")
_WITHOUT_MEMORY: tuple[StageName, ...] = ("energy-dilemma", "phantom-object")
"""Where a sound agent without a memory does not fail either."""
_FOR_GOOD = 99
_LONGEST = {
    Cause.MISPERCEPTION: (1, 1, 2, 3),
    Cause.MISSED_RETRIEVAL: (1, 2, _FOR_GOOD),
    Cause.WRONG_FACT: (2, 4, _FOR_GOOD),
}
"""Cycles that a component stays broken, to choose from; 1 or 2 for the others."""


def variants_of(cause: Cause, agent: AgentKind) -> tuple[str, ...]:
    """In which ways a component of this kind of agent breaks."""
    spared = set[str]() if agent == "coag" else _NOT_PLAIN
    return tuple(variant for variant in VARIANTS[cause] if variant not in spared)


def stage_for(cause: Cause, variant: str, dice: random.Random, agent: AgentKind) -> StageName:
    """A scenario in which such a fault can do harm, and in which nothing else does."""
    if agent != "coag":
        return dice.choice(_WITHOUT_MEMORY)
    needs = cause is Cause.MISSED_RETRIEVAL or variant in CHANGED
    return dice.choice(_NEEDS_MEMORY if needs else STAGES)


def fault_of(cause: Cause, variant: str, cycles: int, dice: random.Random) -> Fault:
    """A fault at a random cycle of a run that would take so many without it."""
    return Fault(
        cause=cause,
        variant=variant,
        cycle=dice.randint(1, max(1, cycles - 1)),
        cycles=dice.choice(_LONGEST.get(cause, (1, 1, 2))),
        seed=dice.randrange(1 << 30),
    )


TRIES = 8
"""Draws of a variant before one that did no harm is given up."""
_SEEDS = 1_000
"""Seeds of stages that belong to one seed of the experiment."""
_PLACES = 40
"""How many of them are used of each scenario, so that twins are shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A run with a fault, and what the fault did."""

    trial: Trial
    harm: tuple[str, ...]
    """In what it was worse than its twin; empty for a fault that had no consequence."""

    @property
    def fault(self) -> Fault:
        """The fault."""
        if self.trial.fault is None:
            raise ValueError("This trial had no fault, so it is no injection.")
        return self.trial.fault


@dataclass(slots=True)
class Experiment:
    """Draws faults, plays them, and compares each run with its twin.

    Args:
        ground: Where the runs take place.
        seed: What everything is drawn from.
        agent: Which kind of agent is broken.
    """

    ground: Ground
    seed: int
    agent: AgentKind = "coag"
    twins: dict[tuple[StageName, int], Trial] = field(
        default_factory=dict[tuple[StageName, int], Trial]
    )
    """The runs without a fault that were played so far."""

    @property
    def causes(self) -> Sequence[Cause]:
        """The components that this kind of agent has."""
        return causes_of(self.agent)

    async def inject(self, each: int) -> AsyncGenerator[Injection]:
        """Runs with faults, until each cause had `each` that did harm (or its draws are used up).

        Those that did none are given too, as they come.

        Raises:
            WorldError: The world failed.
        """
        for number in range(each):
            for cause in self.causes:
                variants = variants_of(cause, self.agent)
                variant = variants[number % len(variants)]
                for attempt in range(TRIES):
                    dice = random.Random(f"{self.seed} {self.agent} {cause} {number} {attempt}")
                    injection = await self._one(cause, variant, dice)
                    yield injection
                    if injection.harm:
                        break

    async def _one(self, cause: Cause, variant: str, dice: random.Random) -> Injection:
        name = stage_for(cause, variant, dice, self.agent)
        twin = await self._twin(name, self.seed * _SEEDS + dice.randrange(_PLACES))
        fault = fault_of(cause, variant, twin.cycles, dice)
        trial = await play(twin.stage, fault, self.ground, self.agent)
        harm = trial.tally.harm(twin.tally) if trial.struck else ()
        return Injection(trial=trial, harm=harm)

    async def _twin(self, name: StageName, seed: int) -> Trial:
        found = self.twins.get((name, seed))
        if found is None:
            stage: Stage = stage_of(name, seed)
            found = await play(stage, None, self.ground, self.agent)
            self.twins[name, seed] = found
        return found


def causes_of(agent: AgentKind) -> Sequence[Cause]:
    """The components that a kind of agent has, by the cause that their failures have."""
    return tuple(Cause) if agent == "coag" else PLAIN_CAUSES


Progress = Callable[[int, int], None]
"""Is told how many faults are done, and how many there are to be."""
NONE = "none"
"""What stands for a run in which a diagnosis finds no failure."""
UNTOLD = "not attributable"
"""What stands for a failure whose cause a diagnosis cannot tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """One fault that did harm, and what the diagnosis of its run says."""

    fault: Fault
    stage: StageName
    seed: int
    """The stage's seed."""
    struck: int
    """The cycle in which the fault struck first."""
    harm: tuple[str, ...]
    """In what the run was worse than its twin."""
    found: str
    """The cause of the earliest failure that was found; `none`, or `not attributable`."""
    told: str
    """The diagnosis in words; empty if there is none."""

    @property
    def right(self) -> bool:
        """Whether the injected cause was found."""
        return self.found == self.fault.cause


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The result of an experiment."""

    agent: AgentKind
    seed: int
    attributions: tuple[Attribution, ...]
    """One for each fault that did harm."""
    harmless: dict[Cause, int] = field(default_factory=dict[Cause, int])
    """Faults without a consequence, by component; they count nowhere else."""
    twins: int = 0
    """Runs without a fault."""
    false_alarms: int = 0
    """Those of them in which a diagnosis finds a failure."""

    @property
    def right(self) -> int:
        """Faults whose cause was found."""
        return sum(one.right for one in self.attributions)

    @property
    def attributed(self) -> int:
        """Faults to which any cause was found, right or wrong."""
        return sum(one.found not in (NONE, UNTOLD) for one in self.attributions)

    def matrix(self) -> dict[Cause, Counter[str]]:
        """What was found, by what was injected."""
        found: dict[Cause, Counter[str]] = {}
        for one in self.attributions:
            found.setdefault(one.fault.cause, Counter())[one.found] += 1
        return found


async def measure_faults(
    ground: Ground, *, seed: int, each: int, agent: AgentKind, on_progress: Progress
) -> Measured:
    """Injects faults until each component had `each` that did harm, and diagnoses the runs.

    The diagnosis gets what `coag diagnose` gets: the trace, what is known of the domain, and
    what the agent's memory holds; nothing of the fault or the twin.

    Raises:
        WorldError: The world failed.
    """
    experiment = Experiment(ground, seed, agent)
    attributions: list[Attribution] = []
    harmless: Counter[Cause] = Counter()
    total = each * len(experiment.causes)
    async for injection in experiment.inject(each):
        if injection.harm:
            attributions.append(attributed(injection))
            on_progress(len(attributions), total)
        else:
            harmless[injection.fault.cause] += 1
    twins = tuple(experiment.twins.values())
    return Measured(
        agent=agent,
        seed=seed,
        attributions=tuple(attributions),
        harmless=dict(harmless),
        twins=len(twins),
        false_alarms=sum(bool(_earliest(twin)[0] != NONE) for twin in twins),
    )


async def measure_both(
    count: int, baseline: int, *, seed: int, on_progress: Callable[[str, int, int], None]
) -> tuple[Measured, ...]:
    """Measures both kinds of agents in one world; the baseline only if any are wanted of it.

    Args:
        count: Faults of the CoAG agent that are to do harm, shared out over its components.
        baseline: The same for the plain baseline.
        seed: What everything is drawn from.
        on_progress: Is told which agent it is, how many faults are done, and of how many.

    Raises:
        WorldError: The world failed.
    """
    found: list[Measured] = []
    wanted: tuple[tuple[AgentKind, int], ...] = (("coag", count), ("baseline", baseline))
    async with open_ground() as ground:
        for agent, number in wanted:
            each = -(-number // len(causes_of(agent)))
            if each:
                told = partial(on_progress, agent)
                measured = await measure_faults(
                    ground, seed=seed, each=each, agent=agent, on_progress=told
                )
                found.append(measured)
    return tuple(found)


def attributed(injection: Injection) -> Attribution:
    """Diagnoses the run of a fault."""
    trial = injection.trial
    found, told = _earliest(trial)
    return Attribution(
        fault=injection.fault,
        stage=trial.stage.name,
        seed=trial.stage.setup.seed,
        struck=trial.struck[0],
        harm=injection.harm,
        found=found,
        told=told,
    )


def _earliest(trial: Trial) -> tuple[str, str]:
    """The cause of the earliest failure that a diagnosis finds, and the diagnosis in words."""
    found = diagnose(trial.records, domain=VacuumDomain(), memory=trial.stage.records)
    if not found:
        return NONE, ""
    first = found[0]
    return str(first.cause or UNTOLD), str(first)


_ORDER = (*Cause, UNTOLD, NONE)
BEGIN, END = "<!-- faults: begin -->", "<!-- faults: end -->"
"""What the tables stand between in a page that the command writes."""


def tables(measured: Sequence[Measured]) -> str:
    """Everything that was measured, as Markdown."""
    return "\n".join(chain.from_iterable(_tables(one) for one in measured))


def replaced(page: str, text: str) -> str:
    """The page with a text between its two marks.

    Raises:
        ValueError: It has no such marks.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no lines {BEGIN!r} and {END!r} to write between")
    return f"{before}{BEGIN}\n\n{text}\n{END}{after}"


def _tables(measured: Measured) -> Iterator[str]:
    total, right = len(measured.attributions), measured.right
    named = "The CoAG agent" if measured.agent == "coag" else "The plain baseline"
    yield f"### {named}"
    yield ""
    yield (
        f"Seed {measured.seed}: {total} faults did harm, the right cause was found for {right} "
        f"({_share(right, total)}), any cause for {measured.attributed} "
        f"({_share(measured.attributed, total)}). {sum(measured.harmless.values())} further "
        f"faults had no consequence. Of {measured.twins} runs without a fault, a failure was "
        f"found in {measured.false_alarms}."
    )
    yield ""
    yield from _matrix(measured)
    yield ""
    yield from _variants(measured)
    lost = [one for one in measured.attributions if not one.right]
    if lost:
        yield ""
        yield from _losses(lost)
    yield ""


def _matrix(measured: Measured) -> Iterator[str]:
    """Rows are what was injected, columns what was found; columns that are empty are left out."""
    matrix = measured.matrix()
    columns = [name for name in _ORDER if any(row[name] for row in matrix.values())]
    yield f"| injected | {' | '.join(columns)} | right |"
    yield f"|---|{'---:|' * (len(columns) + 1)}"
    for cause in Cause:
        row = matrix.get(cause)
        if row is not None:
            cells = [str(row[name] or "") for name in columns]
            yield f"| {cause} | {' | '.join(cells)} | {_share(row[cause], row.total())} |"


def _variants(measured: Measured) -> Iterator[str]:
    """How many of each variant were found."""
    total: Counter[tuple[Cause, str]] = Counter()
    right: Counter[tuple[Cause, str]] = Counter()
    for one in measured.attributions:
        key = (one.fault.cause, one.fault.variant)
        total[key] += 1
        right[key] += one.right
    yield "| component | in which way it broke: found of injected |"
    yield "|---|---|"
    for cause in Cause:
        kinds = [key for key in total if key[0] is cause]
        if kinds:
            told = ", ".join(f"{key[1]} {right[key]}/{total[key]}" for key in kinds)
            yield f"| {cause} | {told} |"


def _losses(lost: Sequence[Attribution]) -> Iterator[str]:
    yield "| lost: injected | variant | stage and seed | cycle | found |"
    yield "|---|---|---|---:|---|"
    for one in lost:
        yield (
            f"| {one.fault.cause} | {one.fault.variant} | {one.stage} {one.seed} | {one.struck} "
            f"| {one.found} |"
        )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
