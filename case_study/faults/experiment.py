"""The experiment: runs with one fault each, their twins without it, and their diagnosis."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from functools import partial
from typing import Literal

from case_study.baseline import PlainAgent
from case_study.contenders import CoagPlayer
from case_study.grid import is_stranded
from case_study.pages import markdown_table
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
from vacuum_world.world import Reading, WorldState, join, sense

from .answers import BELIEFS, EVALUATIONS, NO_ANSWER, PROPOSALS, SELECTIONS, UNUSABLE, BrokenModel
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

AgentKind = Literal["coag", "baseline"]
ROBOT, SOUND = "robot", "scripted:sound"
IDLE_TURNS = 2
"""Turns in a row without an action after which an agent has finished."""
_PATIENCE, _SHORT_PATIENCE = 60.0, 0.25
"""Seconds that a tool may take; the short one where it never answers."""


# ---- one run ----


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What went wrong in a run, as the experimenter counts; less is better everywhere."""

    no_success: int = 0
    stranded: int = 0
    actions: int = 0
    failed_actions: int = 0
    """Tool calls that failed or whose outcome is not known."""
    world_failures: int = 0
    """Actions that the world's own log says were without success."""
    impasses: int = 0
    without_answer: int = 0
    """Phases that had to do without the model's answer."""
    idle_turns: int = 0
    """Turns that ended without an action: more than without the fault gave an answer too early."""
    broken_turns: int = 0

    def harm(self, twin: Tally) -> tuple[str, ...]:
        """In what this run is worse than its twin without the fault."""
        names = [field.name for field in fields(self)]
        return tuple(name for name in names if getattr(self, name) > getattr(twin, name))


def tally_of(setup: ScenarioSetup, world: WorldState, records: Sequence[TraceRecord]) -> Tally:
    """Counts a run."""
    truth = measure(setup, world)
    receipts = [each for each in records if isinstance(each, Receipt)]
    endings = Counter(each.reason for each in records if isinstance(each, TurnEnd))
    return Tally(
        no_success=not truth.success,
        stranded=truth.stranded,
        actions=len(receipts),
        failed_actions=sum(each.status is not ReceiptStatus.DONE for each in receipts),
        world_failures=sum(not line.result.ok for line in world.log),
        impasses=sum(isinstance(each, SelectionOutcome) and each.impasse for each in records),
        without_answer=sum(isinstance(one, Note) and one.about == "fallback" for one in records),
        idle_turns=endings["respond"],
        broken_turns=endings["error"],
    )


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
    cycles: int
    """Cycles of a CoAG agent, turns of a plain one."""

    def earliest(self) -> tuple[str, str]:
        """The cause of the earliest failure that a diagnosis finds, and the diagnosis in words.

        It gets what `coag diagnose` gets: the trace, what is known of the domain, and what the
        agent's memory holds; nothing of the fault or the twin.
        """
        found = diagnose(self.records, domain=VacuumDomain(), memory=self.stage.records)
        return (str(found[0].cause or UNATTRIBUTED), str(found[0])) if found else (NONE, "")


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
        records = await (_coag if agent == "coag" else _plain)(stage, ground, client, breaker)
    return Trial(
        stage=stage,
        fault=fault,
        records=records,
        struck=tuple(breaker.struck),
        tally=tally_of(stage.setup, await ground.control.world(), records),
        cycles=breaker.now(),
    )


def _model(breaker: Breaker) -> ScriptedModel:
    return ScriptedModel(BrokenModel(TEMPERAMENTS["sound"], breaker).answer, name=SOUND)


async def _coag(
    stage: Stage, ground: Ground, client: BrokenClient, breaker: Breaker
) -> tuple[TraceRecord, ...]:
    store = InMemoryStore(ground.embedder)
    await store.add(stage.records)
    context = VacuumContext(reading=first_reading(stage))
    breaker.now = lambda: context.working_memory.cycle
    agent = CoagAgent(
        ROBOT,
        _model(breaker),
        tools=world_tools(client),
        model_context=context,
        system_message=prompt("robot"),
        max_tool_iterations=1,
        constraints=stage.rules,
        memory=LongTermMemory(BrokenStore(store, breaker, stage), scope=SCOPE),
        tool_timeout=_SHORT_PATIENCE if breaker.variant == HANGS else _PATIENCE,
        depth="full",
        selection="model",  # a fault of Selection strikes the model's choice
        proposal="json",
    )
    player = CoagPlayer(agent, "constraint")

    async def say(text: str) -> Sequence[str]:
        return (await player.say(text)).results

    try:
        await _drive(stage, say)
        return tuple(agent.trace)
    finally:
        await player.close()


async def _plain(
    stage: Stage, ground: Ground, client: BrokenClient, breaker: Breaker
) -> tuple[TraceRecord, ...]:
    del ground
    recorder = Recorder(None, agent=ROBOT, model=SOUND)
    breaker.now = lambda: recorder.turn
    agent = PlainAgent(
        ROBOT,
        _model(breaker),
        tools=world_tools(client),
        system_message=prompt("utility"),
        recorder=recorder,
    )

    async def say(text: str) -> Sequence[str]:
        async with asyncio.timeout(_PATIENCE):
            return await agent.say(text)

    try:
        await _drive(stage, say)
        return recorder.records
    finally:
        await agent.close()
        recorder.close()


async def _drive(stage: Stage, say: Callable[[str], Awaitable[Sequence[str]]]) -> None:
    """The task, then "Continue.", up to a bound, two idle turns, or a stranded robot."""
    text = task_text(stage.setup, first_reading(stage))
    idle = actions = 0
    stranded = False
    while actions < stage.setup.max_actions and idle < IDLE_TURNS and not stranded:
        try:
            results = await say(text)
        except (CoagError, TimeoutError):  # the turn broke off; the trace says why
            results = ()
        actions += len(results)
        idle = 0 if results else idle + 1
        stranded = any(map(is_stranded, results))
        text = CONTINUE


def first_reading(stage: Stage) -> Reading:
    """What the robot senses when it joins."""
    joined = join(stage.setup.world, ROBOT)
    return sense(joined.state, joined.result.id)


# ---- many runs ----

VARIANTS: Mapping[Cause, tuple[str, ...]] = {
    Cause.MISPERCEPTION: (*LIES, NO_READING),
    Cause.MISSED_RETRIEVAL: MISSED,
    Cause.WRONG_FACT: (*CHANGED, *UNTRUE),
    Cause.FAULTY_REASONING: BELIEFS,
    Cause.INVALID_PROPOSAL: tuple(PROPOSALS),
    Cause.FAULTY_EVALUATION: tuple(EVALUATIONS),
    Cause.BAD_SELECTION: tuple(SELECTIONS),
    Cause.FAILED_EXECUTION: TOOL_VARIANTS,
    Cause.CHANGED_ENVIRONMENT: PLANS,
    Cause.UNUSABLE_ANSWER: (*UNUSABLE, NO_ANSWER),
}
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
TRIES = 8
"""Draws of a variant before one that did no harm is given up."""
_SEEDS, _PLACES = 1_000, 40
"""Seeds of stages that belong to one seed of the experiment, and how many of them are used of each
scenario, so that twins are shared."""
NONE, UNATTRIBUTED = "none", "not attributable"
"""The cause where a diagnosis finds no failure, or none whose cause is known."""
Twins = dict[tuple[StageName, int], Trial]
"""Runs without a fault, by stage and its seed."""


def causes_of(agent: AgentKind) -> Sequence[Cause]:
    """The components that a kind of agent has, by the cause that their failures have."""
    return tuple(Cause) if agent == "coag" else PLAIN_CAUSES


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A fault, and what it did."""

    fault: Fault
    stage: StageName
    seed: int
    """The stage's."""
    struck: tuple[int, ...]
    harm: tuple[str, ...]
    """In what the run was worse than its twin; empty for a fault that had no consequence."""
    found: str
    """The cause of the earliest failure that was found; `none`, or `not attributable`."""
    explanation: str
    """The diagnosis in words; empty if there is none."""

    @property
    def right(self) -> bool:
        """Whether the injected cause was found."""
        return self.found == self.fault.cause


async def inject(fault: Fault, twin: Trial, ground: Ground, agent: AgentKind = "coag") -> Injection:
    """Plays the stage of a run with a fault, and compares both."""
    trial = await play(twin.stage, fault, ground, agent)
    found, explanation = trial.earliest()
    return Injection(
        fault=fault,
        stage=twin.stage.name,
        seed=twin.stage.setup.seed,
        struck=trial.struck,
        harm=trial.tally.harm(twin.tally) if trial.struck else (),
        found=found,
        explanation=explanation,
    )


async def injections(
    ground: Ground, seed: int, agent: AgentKind, each: int, twins: Twins
) -> AsyncGenerator[Injection]:
    """Draws faults, until each cause had `each` that did harm, or its draws are used up.

    Those that did none are given too, as they come. `twins` keeps the runs without a fault.

    Raises:
        WorldError: The world failed.
    """
    for number in range(each):
        for cause in causes_of(agent):
            # AutoGen's `AssistantAgent` sets its tools no time: one that hangs would hang for good.
            spared = () if agent == "coag" else (HANGS,)
            variants = [one for one in VARIANTS[cause] if one not in spared]
            variant = variants[number % len(variants)]
            # Scenarios in which such a fault can do harm, and in which nothing else does.
            needs = cause is Cause.MISSED_RETRIEVAL or variant in CHANGED
            stages = _NEEDS_MEMORY if needs else STAGES if agent == "coag" else _WITHOUT_MEMORY
            for attempt in range(TRIES):
                dice = random.Random(f"{seed} {agent} {cause} {number} {attempt}")
                at = dice.choice(stages), seed * _SEEDS + dice.randrange(_PLACES)
                if at not in twins:
                    twins[at] = await play(stage_of(*at), None, ground, agent)
                fault = Fault(
                    cause=cause,
                    variant=variant,
                    cycle=dice.randint(1, max(1, twins[at].cycles - 1)),
                    cycles=dice.choice(_LONGEST.get(cause, (1, 1, 2))),
                    seed=dice.randrange(1 << 30),
                )
                injection = await inject(fault, twins[at], ground, agent)
                yield injection
                if injection.harm:
                    break


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The result of an experiment."""

    agent: AgentKind
    seed: int
    injections: tuple[Injection, ...]
    """Those that did harm."""
    harmless: int = 0
    """Faults without a consequence; they count nowhere else."""
    twins: int = 0
    """Runs without a fault."""
    false_alarms: int = 0
    """Those of them in which a diagnosis finds a failure."""

    @property
    def right(self) -> int:
        """Faults whose cause was found."""
        return sum(one.right for one in self.injections)


async def measure_faults(
    ground: Ground,
    *,
    seed: int,
    each: int,
    agent: AgentKind,
    on_progress: Callable[[int, int], None],
) -> Measured:
    """Injects faults until each component had `each` that did harm, and diagnoses the runs.

    `on_progress` is called with how many are done, and how many there are to be.

    Raises:
        WorldError: The world failed.
    """
    twins: Twins = {}
    harmful: list[Injection] = []
    harmless = 0
    async for injection in injections(ground, seed, agent, each, twins):
        if injection.harm:
            harmful.append(injection)
            on_progress(len(harmful), each * len(causes_of(agent)))
        else:
            harmless += 1
    return Measured(
        agent=agent,
        seed=seed,
        injections=tuple(harmful),
        harmless=harmless,
        twins=len(twins),
        false_alarms=sum(twin.earliest()[0] != NONE for twin in twins.values()),
    )


async def measure_both(
    count: int, baseline: int, *, seed: int, on_progress: Callable[[str, int, int], None]
) -> tuple[Measured, ...]:
    """Measures both kinds of agents in one world; the baseline only if any are wanted of it.

    So many faults of each are to do harm, shared out over the components. `on_progress` is called
    with the agent, how many faults are done, and of how many.

    Raises:
        WorldError: The world failed.
    """
    found: list[Measured] = []
    wanted: tuple[tuple[AgentKind, int], ...] = (("coag", count), ("baseline", baseline))
    async with open_ground() as ground:
        for agent, number in wanted:
            if each := -(-number // len(causes_of(agent))):
                report = partial(on_progress, agent)
                found.append(
                    await measure_faults(
                        ground, seed=seed, each=each, agent=agent, on_progress=report
                    )
                )
    return tuple(found)


# ---- tables ----


def tables(measured: Sequence[Measured]) -> str:
    """Everything that was measured, as Markdown."""
    return "\n\n".join(part for one in measured for part in _tables(one)) + "\n"


def _tables(measured: Measured) -> Iterator[str]:
    found, total = measured.injections, len(measured.injections)
    attributed = sum(one.found not in (NONE, UNATTRIBUTED) for one in found)
    yield "### The CoAG agent" if measured.agent == "coag" else "### The plain baseline"
    yield (
        f"Seed {measured.seed}: {total} faults did harm, the right cause was found for "
        f"{measured.right} ({_share(measured.right, total)}), any cause for {attributed} "
        f"({_share(attributed, total)}). {measured.harmless} further "
        f"faults had no consequence. Of {measured.twins} runs without a fault, a failure was "
        f"found in {measured.false_alarms}."
    )
    yield _matrix(found)
    if missed := _missed(found):
        yield f"Variants not always found: {missed}."


def _matrix(found: Sequence[Injection]) -> str:
    """Rows are what was injected, columns what was found; columns that are empty are left out."""
    matrix: dict[Cause, Counter[str]] = {}
    for one in found:
        matrix.setdefault(one.fault.cause, Counter())[one.found] += 1
    columns = [n for n in (*Cause, UNATTRIBUTED, NONE) if any(row[n] for row in matrix.values())]
    rows = [
        [str(cause), *(str(row[n] or "") for n in columns), _share(row[cause], row.total())]
        for cause in Cause
        if (row := matrix.get(cause))
    ]
    return markdown_table(["injected", *columns, "right"], rows, "l" + "r" * (len(columns) + 1))


def _missed(found: Sequence[Injection]) -> str:
    """Variants that were not found each time, of the components where some were found."""
    total = Counter((one.fault.cause, one.fault.variant) for one in found)
    right = Counter((one.fault.cause, one.fault.variant) for one in found if one.right)
    missed: dict[Cause, list[str]] = {}
    for cause, variant in sorted(total):
        if right[cause, variant] < total[cause, variant]:
            of_all = f"{variant} {right[cause, variant]} of {total[cause, variant]}"
            missed.setdefault(cause, []).append(of_all)
    found_at_all = {cause for cause, _ in right}
    return "; ".join(
        f"{cause}: {', '.join(missed[cause])}"
        for cause in Cause
        if cause in missed and cause in found_at_all
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
