"""One run of a demonstrator: who plays, how it ended, and what it cost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from autogen_core.models import ChatCompletionClient

from case_study.pages import markdown_table
from coag.errors import ConfigurationError
from coag.evals import PairedComparison, compare
from coag.models import open_model
from coag.schema import Value
from coag.situated import Workspace, serve_http

from .agents import AGENTS, Player, play
from .even_odd import EVEN_GOAL, ODD_GOAL, Parity, even_odd_truth, make_even_odd
from .minds import MINDS, Decide, count_in_turn, operate_plant, scripted_mind
from .truth import GroundTruth
from .water_hammer import WATER_HAMMER_GOAL, make_water_hammer, water_hammer_truth

DEMONSTRATORS = ("water-hammer", "even-odd")
SCRIPTED_SPEED = 20.0
"""How many times faster than the machine's clock a plant runs for scripted minds."""
STEPS = 200
SECONDS = 600.0
"""Within which a run has to end, in the machine's time."""


class DemonstratorResult(Value):
    """What came of one run."""

    demonstrator: str
    agent: str
    model: str
    scripted: bool
    """True for a scripted mind: the result says nothing about language models."""
    seed: int
    success: bool
    lockouts: int
    wrong_increments: int
    reason: str = ""
    """What went wrong; empty if nothing did."""
    model_calls: int
    calls_while_blocked: int
    """Model calls while there was nothing to do but wait."""
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """In the machine's time."""
    answers: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


async def run_demonstrator(
    demonstrator: str,
    agent: str,
    model: str,
    *,
    seed: int = 0,
    speed: float | None = None,
    folder: Path | None = None,
    seconds: float = SECONDS,
) -> DemonstratorResult:
    """Serves the demonstrator, has the agent play, and looks at what really happened.

    Args:
        demonstrator: `water-hammer` or `even-odd`.
        agent: `situated`, `waiting` or `polling`.
        model: `scripted:careful`, `scripted:hasty`, or the spec of a model.
        seed: Decides how long the plant takes.
        speed: How many times faster than the machine's clock it runs; by default 20 for scripted
            minds, of which an answer takes a second of the plant, and 1 for models.
        folder: Where a situated agent keeps its activities; None for RAM.
        seconds: Within which the run has to end.

    Raises:
        ConfigurationError: There is no such demonstrator, agent, mind or model.
    """
    scripted = _is_scripted(model)
    speed = speed or (SCRIPTED_SPEED if scripted else 1.0)
    workspace, truth = _made(demonstrator, seed, speed)
    started = time.monotonic()
    try:
        async with serve_http(workspace, name=demonstrator) as address:
            players = [
                Player(
                    name=name,
                    goal=goal,
                    model=_opened(model, decide, speed),
                    address=address,
                    steps=STEPS,
                    proposal="native" if scripted else "json",
                    folder=None if folder is None else folder / name,
                )
                for name, goal, decide in _players(demonstrator, model)
            ]
            answers = await asyncio.gather(*(_in_time(agent, one, seconds) for one in players))
            happened = truth()
    finally:
        await workspace.close()
    return DemonstratorResult(
        demonstrator=demonstrator,
        agent=agent,
        model=model,
        scripted=scripted,
        seed=seed,
        **happened.model_dump(),
        **_used(players),
        seconds=round(time.monotonic() - started, 3),
        answers=tuple(answers),
    )


def _used(players: Iterable[Player]) -> dict[str, Any]:
    used = [one.usage for one in players]
    return {name: sum(getattr(one, name) for one in used) for name in _USED}


_USED = ("model_calls", "calls_while_blocked", "prompt_tokens", "completion_tokens")


async def _in_time(agent: str, player: Player, seconds: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            return await play(agent, player)
    except TimeoutError:
        return f"It did not end within {seconds:g} s."


def _made(demonstrator: str, seed: int, speed: float) -> tuple[Workspace, partial[GroundTruth]]:
    if demonstrator == "water-hammer":
        workspace = make_water_hammer(seed, speed=speed)
        return workspace, partial(water_hammer_truth, workspace)
    if demonstrator == "even-odd":
        workspace = make_even_odd(speed=speed)
        return workspace, partial(even_odd_truth, workspace)
    raise ConfigurationError(
        f"There is no demonstrator {demonstrator!r}. There are: {', '.join(DEMONSTRATORS)}."
    )


def _players(demonstrator: str, model: str) -> list[tuple[str, str, Decide]]:
    mind = model.removeprefix("scripted:")
    if _is_scripted(model) and mind not in MINDS:
        raise ConfigurationError(
            f"There is no scripted mind {mind!r} for {demonstrator}. There are: {', '.join(MINDS)}."
        )
    hasty = mind == "hasty"
    if demonstrator == "water-hammer":
        return [("operator", WATER_HAMMER_GOAL, partial(operate_plant, hasty=hasty))]
    goals: Mapping[Parity, str] = {"ODD": ODD_GOAL, "EVEN": EVEN_GOAL}
    return [
        (parity.lower(), goal, partial(count_in_turn, parity=parity, hasty=hasty))
        for parity, goal in goals.items()
    ]


def _is_scripted(model: str) -> bool:
    return model.startswith("scripted:")


def _opened(model: str, decide: Decide, speed: float) -> ChatCompletionClient:
    if _is_scripted(model):
        return scripted_mind(decide, seconds=1.0 / speed)
    return open_model(model)


# ---- the three agents side by side: paired over seeds, with intervals ----

MEASURES = (
    "success",
    "lockouts",
    "wrong_increments",
    "model_calls",
    "calls_while_blocked",
    "tokens",
    "seconds",
)
REFERENCE = "polling"


class DemonstratorTable(Value):
    """What the runs of one demonstrator and model show."""

    demonstrator: str
    model: str
    scripted: bool
    results: tuple[DemonstratorResult, ...]

    def against_polling(self, agent: str, measure: str) -> PairedComparison:
        """An agent's runs against the polling one's with the same seeds."""
        return compare(self._values(REFERENCE, measure), self._values(agent, measure))

    def _values(self, agent: str, measure: str) -> dict[int, float]:
        return {
            one.seed: float(getattr(one, measure)) for one in self.results if one.agent == agent
        }

    def markdown(self) -> str:
        """The table: means, and differences to the polling agent with their 95 % intervals."""
        agents = [one for one in AGENTS if self._values(one, "seconds")]
        runs = max(len(self._values(one, "seconds")) for one in agents)
        source = "a scripted mind" if self.scripted else "a language model"
        rows = [
            [measure.replace("_", " "), *(self._cell(agent, measure) for agent in agents)]
            for measure in MEASURES
        ]
        table = markdown_table(["measure", *agents], rows, "l" + "r" * len(agents))
        head = f"`{self.demonstrator}`, `{self.model}` ({source}), {runs} runs of each agent."
        return f"{head}\n\n{table}"

    def _cell(self, agent: str, measure: str) -> str:
        text = f"{fmean(self._values(agent, measure).values()):,.2f}"
        compared = self.against_polling(agent, measure)
        if agent == REFERENCE or compared.interval is None:
            return text
        return f"{text} ({compared.interval.low:+,.2f} to {compared.interval.high:+,.2f})"


async def compare_agents(
    model: str,
    seeds: Iterable[int],
    *,
    demonstrators: Sequence[str] = DEMONSTRATORS,
    speed: float | None = None,
    done: Callable[[DemonstratorResult], None] = lambda result: None,
) -> tuple[DemonstratorTable, ...]:
    """Runs every agent on every demonstrator with every seed, one after the other."""
    tables: list[DemonstratorTable] = []
    numbers = list(seeds)
    for demonstrator in demonstrators:
        results: list[DemonstratorResult] = []
        for seed, agent in product(numbers, AGENTS):
            result = await run_demonstrator(demonstrator, agent, model, seed=seed, speed=speed)
            done(result)
            results.append(result)
        tables.append(
            DemonstratorTable(
                demonstrator=demonstrator,
                model=model,
                scripted=_is_scripted(model),
                results=tuple(results),
            )
        )
    return tuple(tables)
