"""What MiniGrid brings, so that every contender can be built in it."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

from autogen_core.memory import Memory

from case_study.contenders import Act, Observation, Parts
from coag.tracing import Recipe

from ._body import Body, everything
from ._context import CONSTRAINTS, MiniGridContext
from ._minds import read_request
from ._physics import ACTIONS
from ._search import plan
from ._tools import LOOK, minigrid_tools


@cache
def prompt(name: str) -> str:
    """The text of a prompt: `coag`, `plain` or `task`."""
    path = Path(__file__).parent / "prompts" / f"{name}.md"
    return path.read_text(encoding="utf-8").strip()


def task_text(body: Body) -> str:
    """The first message: what MiniGrid asks for, and what is seen at the start."""
    values = {
        "mission": body.mission,
        "actions": str(body.level.max_actions),
        "seen": body.reading.words(),
    }
    text = prompt("task")
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def parts_of(
    body: Body,
    *,
    memory: Path | None = None,
    recall: Memory | None = None,
    recipe: Recipe | None = None,
) -> Parts:
    """The parts for one episode.

    Args:
        body: The agent's body in its environment.
        memory: The folder in which long-term memory is stored; None keeps it in RAM.
        recall: AutoGen's memory, for the plain agent that has one; its opener closes it.
        recipe: How to build the agent again; None where that is not wanted.
    """
    start = body.reading

    async def by_search() -> Act | None:
        return _first(plan(body.reading.with_chart(everything(body)), body.level.aim))

    return Parts(
        name="walker",
        task=task_text(body),
        tools=minigrid_tools(body),
        system_prompt=prompt("coag"),
        utility_prompt=prompt("plain"),
        context=lambda: MiniGridContext(reading=start),
        constraints=CONSTRAINTS,
        memory=memory,
        recall=recall,
        recipe=recipe,
        random_action=by_chance,
        rule_action=by_rule,
        oracle_action=by_search,
        configuration={"level": body.level.name},
    )


def by_chance(dice: random.Random) -> Act:
    """Any of the six actions."""
    return Act(action=dice.choice(ACTIONS))


def by_rule(seen: Observation) -> Act | None:
    """The shortest way by what was seen so far, or to where more can be seen."""
    reading, aim = read_request("\n".join([seen.task, *seen.results]))
    if reading is None:
        return Act(action=LOOK)
    return None if reading.over else _first(plan(reading, aim))


def _first(way: tuple[str, ...]) -> Act | None:
    return Act(action=way[0]) if way else None
