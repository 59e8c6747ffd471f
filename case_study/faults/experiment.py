"""The experiment: runs with one fault each, their twins without it, and their diagnosis."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from case_study.baseline import PlainAgent
from case_study.contenders import CoagPlayer
from case_study.grid import is_stranded
from case_study.local_world import ROBOT, LocalWorld
from case_study.pages import markdown_table
from case_study.robot import VacuumContext, prompt
from case_study.tasks import CONTINUE, task_text
from coag.agent import CoagAgent
from coag.compat import Recorder
from coag.errors import CoagError
from coag.memory import LongTermMemory
from coag.models import ScriptedModel
from coag.proof import Cause, diagnose
from coag.schema import Note, Receipt, ReceiptStatus, SelectionOutcome, TraceRecord, TurnEnd
from coag.store import InMemoryStore, WordLlamaEmbedder
from vacuum_world.scenarios import measure
from vacuum_world.tools import world_tools
from vacuum_world.world import Reading, WorldState, join, sense

from .breaking import VARIANTS, Breaker, BrokenModel, BrokenRobot, BrokenStore, Fault
from .domain import VacuumDomain
from .stages import SCOPE, STAGES, Stage, StageName, stage_of

AgentKind = Literal["coag", "baseline"]
SOUND = "scripted:sound"
IDLE_TURNS = 2
"""Turns in a row without an action after which an agent has finished."""


# ---- one run ----


def ills_of(stage: Stage, world: WorldState, records: Sequence[TraceRecord]) -> Counter[str]:
    """What went wrong in a run, as the experimenter counts; less is better everywhere.

    An idle turn ended without an action: more of them than without the fault gave an answer too
    early.
    """
    truth = measure(stage.setup, world)
    receipts = [each for each in records if isinstance(each, Receipt)]
    endings = Counter(each.reason for each in records if isinstance(each, TurnEnd))
    return Counter(
        {
            "no success": not truth.success,
            "stranded": truth.stranded,
            "actions": len(receipts),
            "failed or unknown calls": sum(r.status is not ReceiptStatus.DONE for r in receipts),
            "failures in the world's log": sum(not line.result.ok for line in world.log),
            "impasses": sum(isinstance(one, SelectionOutcome) and one.impasse for one in records),
            "phases without an answer": sum(
                isinstance(one, Note) and one.about == "fallback" for one in records
            ),
            "idle turns": endings["respond"],
            "broken turns": endings["error"],
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A run that is over."""

    stage: Stage
    records: tuple[TraceRecord, ...]
    """Its trace: all that a diagnosis gets of the run itself."""
    struck: tuple[int, ...]
    """The cycles in which the fault struck."""
    ills: Counter[str]
    """What went wrong, and how often."""
    cycles: int
    """Cycles of a CoAG agent, turns of a plain one."""

    def earliest(self) -> tuple[str, str]:
        """The cause of the earliest failure that a diagnosis finds, and the diagnosis in words.

        It gets what `coag diagnose` gets: the trace, what is known of the domain, and what the
        agent's memory holds; nothing of the fault or the twin.
        """
        found = diagnose(self.records, domain=VacuumDomain(), memory=self.stage.records)
        return (str(found[0].cause or UNATTRIBUTED), str(found[0])) if found else (NONE, "")


async def play(stage: Stage, fault: Fault | None, agent: AgentKind = "coag") -> Trial:
    """Plays a stage with a fault, or without one, to its end, in a world of this process."""
    world, breaker = LocalWorld(stage.setup.world, AsyncExitStack()), Breaker(fault)
    robot = BrokenRobot(world, (await world.join()).robot_id, breaker)
    records = await (_coag if agent == "coag" else _plain)(stage, robot, breaker)
    return Trial(
        stage=stage,
        records=records,
        struck=tuple(breaker.struck),
        ills=ills_of(stage, world.now, records),
        cycles=breaker.now(),
    )


_embedder = cache(WordLlamaEmbedder)


async def _coag(stage: Stage, robot: BrokenRobot, breaker: Breaker) -> tuple[TraceRecord, ...]:
    store = InMemoryStore(_embedder())
    await store.add(stage.records)
    context = VacuumContext(reading=first_reading(stage))
    breaker.now = lambda: context.working_memory.cycle
    agent = CoagAgent(
        ROBOT,
        ScriptedModel(BrokenModel(breaker).answer, name=SOUND),
        tools=world_tools(robot),
        model_context=context,
        system_message=prompt("robot"),
        max_tool_iterations=1,
        constraints=stage.rules,
        memory=LongTermMemory(BrokenStore(store, breaker, stage), scope=SCOPE),
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


async def _plain(stage: Stage, robot: BrokenRobot, breaker: Breaker) -> tuple[TraceRecord, ...]:
    recorder = Recorder(None, agent=ROBOT, model=SOUND)
    breaker.now = lambda: recorder.turn
    agent = PlainAgent(
        ROBOT,
        ScriptedModel(BrokenModel(breaker).answer, name=SOUND),
        tools=world_tools(robot),
        system_message=prompt("utility"),
        recorder=recorder,
    )
    try:
        await _drive(stage, agent.say)
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
        except CoagError:  # the turn broke off; the trace says why
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A fault, and what it did."""

    fault: Fault
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


async def inject(fault: Fault, twin: Trial, agent: AgentKind = "coag") -> Injection:
    """Plays the stage of a run with a fault, and compares both."""
    trial = await play(twin.stage, fault, agent)
    found, explanation = trial.earliest()
    harm = tuple(trial.ills - twin.ills) if trial.struck else ()
    return Injection(
        fault=fault, struck=trial.struck, harm=harm, found=found, explanation=explanation
    )


@dataclass(slots=True, kw_only=True)
class Measured:
    """The result of an experiment."""

    agent: AgentKind
    seed: int
    injections: list[Injection] = field(default_factory=list[Injection])
    """Those that did harm."""
    harmless: int = 0
    """Faults without a consequence; they count nowhere else."""
    twins: dict[tuple[StageName, int], Trial] = field(
        default_factory=dict[tuple[StageName, int], Trial]
    )
    """Runs without a fault, by stage and its seed."""


async def measure_faults(
    agent: AgentKind, each: int, *, seed: int, on_progress: Callable[[str, int, int], None]
) -> Measured:
    """Injects faults until each component had `each` that did harm, or its draws are used up.

    `on_progress` is called with the agent, how many are done, and how many there are to be.
    """
    measured = Measured(agent=agent, seed=seed)
    causes = tuple(Cause) if agent == "coag" else PLAIN_CAUSES
    for number in range(each):
        for cause in causes:
            for attempt in range(TRIES):
                injection = await _drawn(measured, cause, number, attempt)
                if injection.harm:
                    measured.injections.append(injection)
                    on_progress(agent, len(measured.injections), each * len(causes))
                    break
                measured.harmless += 1
    return measured


async def _drawn(measured: Measured, cause: Cause, number: int, attempt: int) -> Injection:
    """Draws a fault and where it strikes, and injects it."""
    agent, seed, variants = measured.agent, measured.seed, VARIANTS[cause]
    variant = variants[number % len(variants)]
    # Scenarios in which such a fault can do harm, and in which nothing else does.
    needs = cause is Cause.MISSED_RETRIEVAL or variant == "cell shifted"
    stages = _NEEDS_MEMORY if needs else STAGES if agent == "coag" else _WITHOUT_MEMORY
    dice = random.Random(f"{seed} {agent} {cause} {number} {attempt}")
    at = dice.choice(stages), seed * _SEEDS + dice.randrange(_PLACES)
    if at not in measured.twins:
        measured.twins[at] = await play(stage_of(*at), None, agent)
    twin = measured.twins[at]
    fault = Fault(
        cause=cause,
        variant=variant,
        cycle=dice.randint(1, max(1, twin.cycles - 1)),
        cycles=dice.choice(_LONGEST.get(cause, (1, 1, 2))),
        seed=dice.randrange(1 << 30),
    )
    return await inject(fault, twin, agent)


async def measure_both(
    count: int, baseline: int, *, seed: int, on_progress: Callable[[str, int, int], None]
) -> list[Measured]:
    """Measures both kinds of agents; the baseline only if any are wanted of it.

    So many faults of each are to do harm, shared out over the components.
    """
    each, plain = -(-count // len(Cause)), -(-baseline // len(PLAIN_CAUSES))
    found = [await measure_faults("coag", each, seed=seed, on_progress=on_progress)]
    if plain:
        found.append(await measure_faults("baseline", plain, seed=seed, on_progress=on_progress))
    return found


# ---- tables ----


def tables(measured: Sequence[Measured]) -> str:
    """Everything that was measured, as Markdown."""
    return "\n\n".join(part for one in measured for part in _tables(one)) + "\n"


def _tables(measured: Measured) -> Iterator[str]:
    found, total = measured.injections, len(measured.injections)
    right = sum(one.right for one in found)
    attributed = sum(one.found not in (NONE, UNATTRIBUTED) for one in found)
    alarms = sum(twin.earliest()[0] != NONE for twin in measured.twins.values())
    yield "### The CoAG agent" if measured.agent == "coag" else "### The plain baseline"
    yield (
        f"Seed {measured.seed}: {total} faults did harm, the right cause was found for "
        f"{right} ({_share(right, total)}), any cause for {attributed} "
        f"({_share(attributed, total)}). {measured.harmless} further "
        f"faults had no consequence. Of {len(measured.twins)} runs without a fault, a failure was "
        f"found in {alarms}."
    )
    matrix: dict[str, Counter[str]] = {}
    for one in found:
        matrix.setdefault(one.fault.cause, Counter())[one.found] += 1
    columns = [n for n in (*Cause, UNATTRIBUTED, NONE) if any(row[n] for row in matrix.values())]
    rows = [
        [str(cause), *(str(row[n] or "") for n in columns), _share(row[cause], row.total())]
        for cause in Cause
        if (row := matrix.get(cause))
    ]
    yield markdown_table(["injected", *columns, "right"], rows, "l" + "r" * (len(columns) + 1))
    if missed := "; ".join(_missed(found)):
        yield f"Variants not always found: {missed}."


def _missed(found: Sequence[Injection]) -> Iterator[str]:
    """Variants that were not found each time, of the components where some were found."""
    total = Counter(one.fault.variant for one in found)
    right = Counter(one.fault.variant for one in found if one.right)
    for cause, variants in VARIANTS.items():
        missed = [f"{v} {right[v]} of {total[v]}" for v in variants if right[v] < total[v]]
        if missed and any(right[variant] for variant in variants):
            yield f"{cause}: {', '.join(missed)}"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
