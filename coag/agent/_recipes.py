"""Making what a run's recipe names."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coag.errors import ConfigurationError, ResumeError
from coag.schema import check_own_code, from_import_name
from coag.tracing import REDACTED, Rebuild, Recipe, RunFolder, RunInfo, read_run

_NO_RECIPE = {
    "coag": "Give recipe=Recipe(factory='module:function', arguments={...}) to CoagAgent.",
    "plain": (
        "Give recipe=Recipe(factory='module:function', arguments={...}) to Recorder, or drive "
        "your program yourself with ReplayingClient(run) and ReplayingWorkbench(run)."
    ),
}
"""What to do about a run that has no recipe, by its kind."""


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
    recipe = _given(recipe, run)
    lost = [name for name, value in recipe.arguments.items() if REDACTED in json.dumps(value)]
    if lost:
        raise ResumeError(
            f"The recipe of {run} held a secret in its argument {lost[0]!r}, which the run did not "
            "keep. Let the factory take it from the environment, or build the agent in code."
        )
    factory = _factory(recipe, run)
    told = {"rebuild": rebuild} if _takes(factory, "rebuild") else {}
    try:
        made = factory(**recipe.arguments, **told)
    except TypeError as error:
        raise ResumeError(
            f"The recipe of {run} does not fit {recipe.factory!r} any more: {error}"
        ) from error
    return await made if inspect.isawaitable(made) else made


def load_factory(run: RunFolder) -> None:
    """Imports the module of a run's recipe as `python script.py` would: from the current folder.

    What cannot be found there is looked for where Python looks for modules. For commands: a
    program has its own modules on its path.

    Raises:
        ResumeError: There is no recipe, or its factory cannot be found.
        TraceError: There is no run in the folder.
    """
    recipe = _given(read_run(run.path).recipe, run.path)
    with _current_folder_first():
        _factory(recipe, run.path, here=True)


def _given(recipe: Recipe | None, run: Path) -> Recipe:
    if recipe is None:
        raise ResumeError(
            f"{run} has no recipe in its run.json, so its agent cannot be built again. "
            f"{_NO_RECIPE[read_run(run).kind]}"
        )
    return recipe


@contextmanager
def _current_folder_first() -> Generator[None]:
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _factory(recipe: Recipe, run: Path, *, here: bool = False) -> Callable[..., Any]:
    try:
        factory = from_import_name(recipe.factory)
        check_own_code(factory, recipe.factory)
    except ConfigurationError as error:
        raise ResumeError(
            f"The recipe of {run} names {recipe.factory!r}, which cannot be imported: "
            f"{_why_not(error, recipe.factory.partition(':')[0], here=here)}"
        ) from error
    return factory


def _why_not(error: ConfigurationError, module: str, *, here: bool) -> str:
    """Why a factory cannot be imported, and what to do where its module is not found.

    Args:
        error: What importing it came to.
        module: The factory's module.
        here: Whether it was looked for in the current folder.
    """
    if module == "__main__":
        return (
            "'__main__' is whatever script runs now. Name the factory by its script's file name "
            "without .py, e.g. 'shop:build' for shop.py."
        )
    missing = error.__cause__
    if not isinstance(missing, ModuleNotFoundError) or missing.name is None:
        return str(error)
    if missing.name != module.partition(".")[0]:
        return f"it needs the module {missing.name!r}, which is not installed here."
    where = f"neither in the current folder ({Path.cwd()}) nor " if here else "not "
    go = "Go to the folder that holds it, or name that folder" if here else "Name its folder"
    return (
        f"its module {module!r} was found {where}where Python looks for modules. {go} "
        "in the variable PYTHONPATH."
    )


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
