"""Making what a run's recipe names."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from coag._util.secrets import REDACTED
from coag.errors import CoagError, ConfigurationError, ResumeError
from coag.schema import HOSTED_FACTORY, check_trusted, from_run, is_own
from coag.tracing import Rebuild, Recipe, RunFolder, RunInfo, read_run

AgentT = TypeVar("AgentT")

_NO_RECIPE = {
    "coag": "Give recipe=Recipe(factory='module:function', arguments={...}) to CoagAgent, or the "
    "agent to `replay(run, agent=...)`.",
    "plain": (
        "Give recipe=Recipe(factory='module:function', arguments={...}) to Recorder, or drive "
        "your program yourself with ReplayingClient(run) and ReplayingWorkbench(run)."
    ),
}
"""What to do about a run that has no recipe, by its kind."""


async def build_from(
    recipe: Recipe | None, run: Path, rebuild: Rebuild, trust: Iterable[str] = ()
) -> Any:
    """What the run's recipe makes."""
    recipe = _required(recipe, run)
    lost = [name for name, value in recipe.arguments.items() if REDACTED in json.dumps(value)]
    if lost:
        secret = f"The recipe of {run} held a secret in its argument {lost[0]!r}"
        raise ResumeError(f"{secret}. Let the factory take it from the environment.")
    factory = _factory(recipe, run, trust, resuming=rebuild.purpose == "resume")
    purpose = {"rebuild": rebuild} if _takes_rebuild(factory) else {}
    try:
        agent = factory(**recipe.arguments, **purpose)
        return await agent if inspect.isawaitable(agent) else agent
    except TypeError as error:
        raise ResumeError(
            f"The recipe of {run} does not fit {recipe.factory!r} any more: {error}"
        ) from error
    except CoagError:
        raise
    except Exception as error:  # somebody's factory, which may raise anything
        problem = f"{recipe.factory!r} raised {type(error).__name__}: {error}"
        raise ResumeError(f"The agent of {run} cannot be built again: {problem}") from error


def load_factory(run: RunFolder, trust: Iterable[str] = ()) -> None:
    """Imports the module of a run's recipe as `python script.py` would: from the current folder.

    What cannot be found there is looked for where Python looks for modules. For commands: a
    program has its own modules on its path. The project's own packages are not looked for in the
    current folder, where a stranger's file could bear their name.

    Args:
        run: The run.
        trust: Modules from which it may name its factory; see `coag.schema.from_run`.

    Raises:
        ResumeError: There is no recipe, or its factory is not trusted or cannot be found.
        TraceError: There is no run in the folder.
    """
    recipe = _required(read_run(run.path).recipe, run.path)
    if is_own(recipe.factory.partition(":")[0]):
        _factory(recipe, run.path, trust)
        return
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        _factory(recipe, run.path, trust, here=True)
    finally:
        sys.path.remove(here)


def takes_rebuild(recipe: Recipe, run: Path, trust: Iterable[str] = ()) -> bool:
    """Whether a recipe's factory has a keyword `rebuild`.

    Raises:
        ResumeError: The factory is not trusted or cannot be found.
    """
    return _takes_rebuild(_factory(recipe, run, trust))


def refuse_activity(info: RunInfo, run: Path) -> None:
    """Refuses to build the agent of an activity: not all that its tools sent is in the trace.

    Raises:
        ResumeError: The run is that of a situated agent's activity.
    """
    if info.recipe is None and "situated" in info.configuration.get("modules", ()):
        raise ResumeError(
            f"{run} is the run of an activity of a SituatedAgent, whose trace lacks manuals and "
            "catalogues: it can be verified and explained (`coag verify`, `coag why`), but not "
            "replayed or forked. To continue it, start its SituatedAgent with its folder."
        )


def _required(recipe: Recipe | None, run: Path) -> Recipe:
    if recipe is None:
        refuse_activity(read_run(run), run)
        lacking = f"{run} has no recipe in its run.json, so its agent cannot be built again"
        raise ResumeError(f"{lacking}. {_NO_RECIPE[read_run(run).kind]}")
    return recipe


def _factory(
    recipe: Recipe,
    run: Path,
    trust: Iterable[str],
    *,
    here: bool = False,
    resuming: bool = False,
) -> Callable[..., Any]:
    module = recipe.factory.partition(":")[0]
    try:
        if module != "__main__":
            check_trusted(recipe.factory, trust, programs_own=resuming)
        if recipe.factory == HOSTED_FACTORY:  # it calls what its argument names
            from_run(str(recipe.arguments.get("agent")), trust, programs_own=resuming)
    except ConfigurationError as error:
        raise ResumeError(f"The recipe of {run} is refused: {error}") from error
    try:
        return from_run(recipe.factory, trust, programs_own=resuming)
    except ConfigurationError as error:
        problem = f"which cannot be imported: {_why_not(error, module, here=here)}"
        raise ResumeError(f"The recipe of {run} names {recipe.factory!r}, {problem}") from error


def _why_not(error: ConfigurationError, module: str, *, here: bool) -> str:
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


async def build_for_resume(run: RunFolder, kind: type[AgentT], trust: Iterable[str]) -> AgentT:
    """The agent of a run that is to be resumed."""
    info = read_run(run.path)
    if info.parent is not None:  # its recipe would open its parent's memory
        raise ResumeError(
            f"{run.path} is a fork of {info.parent.run} with a memory of its own, so it cannot be "
            f"resumed. Fork it where it stopped: coag fork {run.path.name} --at CYCLE.PHASE."
        )
    made = await build_from(info.recipe, run.path, Rebuild(purpose="resume"), trust)
    return of_kind(made, kind, run)


def of_kind(made: object, kind: type[AgentT], run: RunFolder) -> AgentT:
    """What a recipe made, which must be of this type."""
    if isinstance(made, kind):
        return made
    raise ResumeError(
        f"The recipe of {run.path} makes a {type(made).__name__}, not a {kind.__name__}."
    )


def _takes_rebuild(factory: Callable[..., Any]) -> bool:
    try:
        return "rebuild" in inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some callables have no signature
        return False
