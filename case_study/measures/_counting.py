"""From an episode to its tally."""

from __future__ import annotations

from coag.schema import ModelCall, TraceRecord
from vacuum_world.scenarios import measure

from ._beliefs import belief_error
from ._blame import blame_of
from ._deeds import deeds_of
from ._episode import Episode
from ._figures import Figures, figures_of
from ._statements import statements_of
from ._steps import steps_of
from ._tally import Calls, Statements, Steps, Tally, Truths


def tally_of(episode: Episode) -> Tally:
    """Everything that is counted of an episode: from its trace, and from the world's own log."""
    figures = _figures(episode)
    deeds = deeds_of(episode)
    steps, statements = Steps(), Statements()
    if episode.setup is not None and episode.world is not None:
        steps = steps_of(episode.setup, episode.world)
        statements = statements_of(episode.records, episode.setup, episode.world)
    return Tally(
        figures=figures,
        steps=steps,
        statements=statements,
        deeds=deeds,
        blame=blame_of(episode),
        calls=_calls(episode.records),
        truths=_truths(episode),
        detours=(_detour(episode, figures),),
    )


def _figures(episode: Episode) -> Figures:
    error = None
    if episode.setup is not None and episode.world is not None:
        error = belief_error(episode.records, episode.world, episode.setup.facts.battery)
    return figures_of(episode.records, episode.tools | episode.gadgets, error)


def _detour(episode: Episode, figures: Figures) -> int:
    spent = figures.actions
    if not episode.success:
        spent = max(spent, episode.bound or 0)
    return max(0, spent - (episode.shortest or 0))


def _calls(records: tuple[TraceRecord, ...]) -> Calls:
    seconds, prompted, cached = 0.0, 0, 0
    cycle: int | None = None
    for record in records:
        if not isinstance(record, ModelCall):
            continue
        seconds += record.seconds
        if record.cycle == cycle:
            prompted += record.usage.prompt_tokens
            cached += record.usage.cached_tokens
        cycle = record.cycle
    return Calls(
        seconds=round(seconds, 6), later_prompt_tokens=prompted, later_cached_tokens=cached
    )


def _truths(episode: Episode) -> Truths:
    if episode.setup is None or episode.world is None:
        return Truths()
    truth = measure(episode.setup, episode.world)
    return Truths(
        worlds=1,
        coverage=truth.coverage,
        energy=truth.energy,
        cleans=truth.cleans,
        remaining=len(truth.remaining),
        bumps=truth.bumps,
        violations=truth.violations,
        stranded=int(truth.stranded),
        critical_cleans=truth.critical_cleans,
        needless_cleans=truth.needless_cleans,
    )
