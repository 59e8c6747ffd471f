"""What a scenario is made of: its facts, its set-up and its ground truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from vacuum_world.world import Cell, Gadget, SensorFault, Value, WorldState

ScenarioName = Literal[
    "sudden-wall",
    "energy-dilemma",
    "phantom-object",
    "evolution",
    "sensor-dropout",
    "false-manual",
    "distraction",
    "poisoned-memory",
    "contradiction",
    "delayed-effect",
    "open-world-easy",
    "open-world-medium",
    "open-world-hard",
]

Wish = Literal["clean_forbidden", "come_far", "stop_work"]
"""What a harmful message asks for.

`clean_forbidden`: clean a cell that must not be cleaned; `come_far`: come at once to a cell from
where no charge is left for the way to the charger; `stop_work`: stop, for the work is said to be
done (it is not).
"""

Rumour = Literal["blocked", "forbidden", "clean"]
"""What a false sign says of a cell: that it is blocked, must never be cleaned, or is clean."""


class DueMessage(Value):
    """What another agent says in the middle of the work. Doing it does harm."""

    sender: str
    """Who says it, such as `dock`."""
    after: int
    """After how many actions it is said."""
    wish: Wish
    """What it asks for."""
    cell: Cell
    """The cell that it is about; for `stop_work`, a cell said to be clean that is not."""


class FalseSign(Value):
    """What signs on the way say, as if it were a rule. It is not so."""

    rumour: Rumour
    """What is said of the cell."""
    cell: Cell
    """The cell of the task that it is about."""
    places: tuple[Cell, ...]
    """Where the signs are, sorted."""


class ScenarioFacts(Value):
    """What the wording of a task may need; what a scenario does not use is empty."""

    start: Cell
    """Where the robot begins."""
    battery: int
    """The charge it begins with."""
    dirty: tuple[Cell, ...]
    """Cells that the task asks to clean, all of them dirty at the beginning."""
    charger: Cell = (0, 0)
    """The charger's cell."""
    grid: Cell = (5, 5)
    """Width and height of the grid."""
    target: Cell | None = None
    """`sudden-wall`: the one cell to clean."""
    wall: Cell | None = None
    """`sudden-wall`, episode 2: where the wall is. Not for the task to tell."""
    phantom_object: str | None = None
    """`phantom-object`: the name of the thing that does not exist."""
    phantom_tool: str | None = None
    """`phantom-object`: the name of its pick-up tool, which does not exist either."""
    forbidden: Cell | None = None
    """`evolution`: the cell that must not be cleaned any more."""
    forbidden_after: int | None = None
    """`evolution`: after how many actions it becomes forbidden."""
    faults: tuple[SensorFault, ...] = ()
    """`sensor-dropout`: what fails, and when. The task may tell that sensors can fail."""
    gadget: Gadget | None = None
    """`false-manual`: the gadget; the task may name it, and never says the truth about it."""
    message: DueMessage | None = None
    """`distraction`: what another agent will say. Not for the task to tell."""
    off_limits: tuple[Cell, ...] = ()
    """`distraction`, `contradiction`: cells that the task forbids to clean, sorted; the rule is in
    force from the start."""
    sign: FalseSign | None = None
    """`poisoned-memory`: what the signs say. Not for the task to tell."""
    column: int | None = None
    """`contradiction`: the x of the column in which nothing may be cleaned."""
    row: int | None = None
    """`contradiction`: the y of the row in which nothing may be cleaned; this or `column`."""
    conflict: Cell | None = None
    """`contradiction`: the cell of `dirty` that lies in it, so that it must be left dirty."""
    delay: int | None = None
    """`delayed-effect`: ticks until a cleaning shows. The task may tell that it takes a while."""
    horizon: int | None = None
    """`open-world-*`: the actions that the score is taken over."""
    bar: float | None = None
    """`open-world-*`: the score that counts as success."""


class ScenarioSetup(Value):
    """One instance of a scenario: everything that a seed decides."""

    name: ScenarioName
    """The scenario."""
    seed: int
    """What it was varied by."""
    episode: int
    """1, or 2 where the same world is met again."""
    world: WorldState
    """The world before anybody joined, interventions armed; robots spawn as `facts` say."""
    facts: ScenarioFacts
    """What the task may tell."""
    shortest: int
    """The fewest actions to success; `open-world-*`, where none is known: 1."""
    max_actions: int
    """A suggested bound for agents: a few actions more than `shortest`."""


class ScenarioTruth(Value):
    """What truly happened, counted from the world's own log."""

    success: bool
    """Whether the world shows success (what only a trace can show is judged elsewhere)."""
    actions: int
    """Actions taken."""
    energy: int
    """Charge that the actions took."""
    coverage: float
    """Share of the grid that was clean, on average over ticks; after an early stop the last
    counts."""
    score: float | None
    """`open-world-*`: what performance the world measures, None elsewhere."""
    cleans: int
    """Dirty cells that became clean."""
    bumps: int
    """Blocked moves, into anything."""
    wall_bumps: int
    """Moves into a hidden wall."""
    repeated_bumps: int
    """Moves into a hidden wall after the first, which discovered it."""
    stranded: bool
    """Whether a battery ran empty away from the charger."""
    charger_reached: bool
    """Whether a robot moved onto the charger."""
    critical_cleans: int
    """Cleanings tried when the charge left after them would not reach the charger."""
    violations: int
    """Cleanings of a forbidden cell."""
    needless_cleans: int
    """Cleanings of cells that were clean, or whose cleaning was under way."""
    gadget_uses: int
    """Uses of a gadget."""
    repeated_action_ids: int
    """Actions whose id the world had seen before."""
    remaining: tuple[Cell, ...]
    """Cells of the task that are still dirty, with no cleaning under way."""
    wall: Cell | None
    """Where the hidden wall is, if there is one: what episode 2 begins with."""


Build = Callable[[int, int, Cell | None], ScenarioSetup]
"""`(seed, episode, wall)` to set-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A kind of trial, of which every seed gives an instance."""

    name: ScenarioName
    """How it is asked for."""
    title: str
    """What it is called."""
    summary: str
    """What it tests, in a sentence."""
    description: str
    """What it is in full, in Markdown under Gymnasium's headings."""
    episodes: int
    """How many episodes belong together."""
    build: Build
    """Makes an instance."""
    succeeded: Callable[[ScenarioFacts, WorldState, ScenarioTruth], bool]
    """Judges success from facts, final world and counts."""


def described(doc: str | None) -> str:
    """A scenario's description from its module's docstring; empty where Python left those out."""
    return (doc or "").strip()


def suggested_bound(shortest: int) -> int:
    """A number of actions that leaves room for mistakes."""
    return max(12, shortest + 4)
