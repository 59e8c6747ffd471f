"""The three agents side by side: paired over seeds, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

from coag.evals import PairedComparison, compare
from coag.schema import Value

from .agents import AGENTS
from .running import DEMONSTRATORS, DemonstratorResult, run_demonstrator

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

    def mean(self, agent: str, measure: str) -> float | None:
        """The mean of a measure over an agent's runs; None without runs."""
        values = self._values(agent, measure)
        return fmean(values.values()) if values else None

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
        lines = [
            f"`{self.demonstrator}`, `{self.model}` ({source}), {runs} runs of each agent.",
            "",
            f"| measure | {' | '.join(agents)} |",
            f"|---|{'---:|' * len(agents)}",
        ]
        for measure in MEASURES:
            cells = " | ".join(self._cell(agent, measure) for agent in agents)
            lines.append(f"| {measure.replace('_', ' ')} | {cells} |")
        return "\n".join(lines)

    def _cell(self, agent: str, measure: str) -> str:
        mean = self.mean(agent, measure)
        text = "-" if mean is None else f"{mean:,.2f}"
        if agent == REFERENCE or not self._values(REFERENCE, measure):
            return text
        interval = self.against_polling(agent, measure).interval
        return (
            text if interval is None else f"{text} ({interval.low:+,.2f} to {interval.high:+,.2f})"
        )


async def compare_agents(
    model: str,
    seeds: Iterable[int],
    *,
    demonstrators: Sequence[str] = DEMONSTRATORS,
    agents: Sequence[str] = AGENTS,
    speed: float | None = None,
    folder: Path | None = None,
    done: Callable[[DemonstratorResult], None] = lambda result: None,
) -> tuple[DemonstratorTable, ...]:
    """Runs every agent on every demonstrator with every seed, one after the other."""
    tables: list[DemonstratorTable] = []
    numbers = list(seeds)
    for demonstrator in demonstrators:
        results: list[DemonstratorResult] = []
        for seed in numbers:
            for agent in agents:
                place = None if folder is None else folder / f"{demonstrator}-{agent}-{seed}"
                result = await run_demonstrator(
                    demonstrator, agent, model, seed=seed, speed=speed, folder=place
                )
                done(result)
                results.append(result)
        tables.append(
            DemonstratorTable(
                demonstrator=demonstrator,
                model=model,
                scripted=results[0].scripted if results else False,
                results=tuple(results),
            )
        )
    return tuple(tables)
