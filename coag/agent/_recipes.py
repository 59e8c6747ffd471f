"""Making what a run's recipe names."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coag.errors import ConfigurationError, ResumeError
from coag.schema import check_own_code, from_import_name
from coag.tracing import REDACTED, Rebuild, Recipe, RunInfo


async def build_from(recipe: Recipe | None, run: Path, rebuild: Rebuild) -> Any:
    """What the run's recipe makes.

    Args:
        recipe: The recipe.
        run: The run's folder, for errors.
        rebuild: What for. A factory that takes a keyword `rebuild` is told.

    Raises:
        ResumeError: There is no recipe, it held a secret that the run did not keep, or its
            factory cannot be found.
    """
    if recipe is None:
        raise ResumeError(
            f"{run} has no recipe in its run.json, so its agent cannot be built again. "
            "Give recipe=Recipe(factory='module:function', arguments={...}) to CoagAgent."
        )
    lost = [name for name, value in recipe.arguments.items() if REDACTED in json.dumps(value)]
    if lost:
        raise ResumeError(
            f"The recipe of {run} held a secret in its argument {lost[0]!r}, which the run did not "
            "keep. Let the factory take it from the environment, or build the agent in code."
        )
    try:
        factory = from_import_name(recipe.factory)
        check_own_code(factory, recipe.factory)
    except ConfigurationError as error:
        raise ResumeError(
            f"The recipe of {run} names {recipe.factory!r}, which cannot be imported: {error}"
        ) from error
    told = {"rebuild": rebuild} if _takes(factory, "rebuild") else {}
    try:
        made = factory(**recipe.arguments, **told)
    except TypeError as error:
        raise ResumeError(
            f"The recipe of {run} does not fit {recipe.factory!r} any more: {error}"
        ) from error
    return await made if inspect.isawaitable(made) else made


def refuse_fork(info: RunInfo, run: Path) -> None:
    """Refuses to resume a fork: its recipe would open its parent's memory.

    Raises:
        ResumeError: The run is a fork.
    """
    if info.parent is not None:
        raise ResumeError(
            f"{run} is a fork of {info.parent.run}; its memory was its own, so it cannot be "
            f"resumed. Fork it where it stood instead: coag fork {run.name} --at CYCLE.PHASE."
        )


def _takes(factory: Callable[..., Any], name: str) -> bool:
    """Whether a factory has a keyword of this name."""
    try:
        known = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some callables tell no signature
        return False
    return name in known
