"""MiniGrid as a domain of an assessment: plays a job with any contender, and measures its trace."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from case_study.baseline import open_recall
from case_study.contenders import (
    CONTENDERS,
    Contender,
    Drive,
    Parts,
    Player,
    build_player,
    contender_named,
    drive,
)
from coag.errors import ConfigurationError
from coag.evals import Job, JobResult, RunSettings, causes_of, decisions_of, measures_of
from coag.models import ModelSpec

from ._again import recipe_of
from ._body import Body, everything
from ._levels import LEVELS, level_named
from ._measures import Outcome, tally_in
from ._minds import SCRIPTED, open_mind
from ._parts import parts_of
from ._search import plan

_OUTCOME = "outcome.json"


class MiniGridDomain:
    """MiniGrid, as `case-study assess --domain examples.minigrid:DOMAIN` plays it."""

    @property
    def scenarios(self) -> Sequence[str]:
        """All levels."""
        return tuple(LEVELS)

    @property
    def contenders(self) -> Sequence[str]:
        """All contenders."""
        return tuple(CONTENDERS)

    def asks_model(self, contender: str) -> bool:
        """Whether a contender asks a model."""
        return contender_named(contender).asks_model

    async def play(self, job: Job, settings: RunSettings, folder: Path) -> JobResult:
        """Plays a level until the environment ends it, a bound, or the contender's last word.

        Raises:
            CoagError: The model, the records or the log failed.
        """
        contender, level = contender_named(job.contender), level_named(job.scenario)
        bound = _number(settings, "max_actions") or level.max_actions
        async with AsyncExitStack() as opened:
            body = Body(level.model_copy(update={"max_actions": bound}), job.seed)
            opened.callback(body.close)
            shortest = len(plan(body.reading.with_chart(everything(body)), level.aim))
            parts = _parts(contender, body, job, settings, folder, opened)
            player = await _player(contender, parts, job, settings, folder, opened)
            course = Drive(
                bound=bound,
                token_budget=_number(settings, "token_budget"),
                after_turn=lambda turn, actions: bool(body.reading.over),
            )
            await drive(player, parts.task, course)
        if player.folder is None:
            raise ConfigurationError("Nothing was played: the bound leaves no turn.")
        outcome = Outcome(
            run=player.folder.path.name,
            reward=body.reward,
            over=body.reading.over,
            shortest=shortest,
            bound=bound,
        )
        (folder / _OUTCOME).write_text(outcome.model_dump_json(), encoding="utf-8")
        return self.measure_again(job, folder)

    def measure_again(self, job: Job, folder: Path) -> JobResult:
        """The same of an episode that was kept, from its trace and the environment's outcome.

        Raises:
            TraceError: The run cannot be read.
        """
        outcome = Outcome.model_validate_json((folder / _OUTCOME).read_text(encoding="utf-8"))
        tallies = [tally_in(folder, outcome)]
        asks = self.asks_model(job.contender)
        return JobResult(
            success=outcome.success,
            measures={**measures_of(tallies), **outcome.own_measures},
            causes=causes_of(tallies),
            decided_by=decisions_of(tallies) if asks else {},
        )


def _number(settings: RunSettings, name: str) -> int | None:
    value = settings.conditions.get(name)
    return value if isinstance(value, int) else None


def _parts(
    contender: Contender,
    body: Body,
    job: Job,
    settings: RunSettings,
    folder: Path,
    opened: AsyncExitStack,
) -> Parts:
    """MiniGrid's parts, with the memories that are asked for."""
    kept = folder / "memory" if settings.conditions.get("place") == "served" else None
    recall = open_recall(kept) if contender.remembers else None
    if recall is not None:
        opened.push_async_callback(recall.close)
    return parts_of(body, memory=kept, recall=recall, recipe=recipe_of(job, body.level.max_actions))


async def _player(
    contender: Contender,
    parts: Parts,
    job: Job,
    settings: RunSettings,
    folder: Path,
    opened: AsyncExitStack,
) -> Player:
    """The contender as it plays, with its model, both closed with what is opened."""
    model = None
    if contender.asks_model:
        schemes = {SCRIPTED: partial(open_mind, seed=job.seed)}
        model = ModelSpec.parse(settings.spec(job), schemes=schemes).open()
        opened.push_async_callback(model.close)
    player = build_player(contender, parts, model, folder, job.seed, model_name=job.model)
    opened.push_async_callback(player.close)
    return player


DOMAIN = MiniGridDomain()
"""MiniGrid, to be named as a domain."""
