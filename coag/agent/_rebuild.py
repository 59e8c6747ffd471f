"""Building the agent of a run again: by its recipe, or as a twin with other parts."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from coag.errors import ResumeError
from coag.schema import Clock
from coag.tracing import Rebuild, RunFolder, read_run

from ._coag_agent import CoagAgent
from ._recipes import build_from


async def rebuild(run: RunFolder, told: Rebuild) -> CoagAgent:
    """The agent of a run as its recipe makes it, without what the run did.

    Raises:
        ResumeError: The run cannot be built again.
        TraceError: There is no run in the folder.
    """
    made = await build_from(read_run(run.path).recipe, run.path, told)
    if not isinstance(made, CoagAgent):
        raise ResumeError(
            f"The recipe of {run.path} makes a {type(made).__name__}, not a CoagAgent."
        )
    return made


def twin(agent: CoagAgent, *, clock: Clock | None = None, **arguments: Any) -> CoagAgent:
    """An agent like one that has not begun its run, with other arguments in the place of some.

    Both share the context, so only one of them may be used.

    Args:
        agent: The agent as it was built.
        clock: Takes the place of the context's clock.
        **arguments: Arguments of `CoagAgent`; those that are not named stay as they were given.
    """
    given = agent.arguments
    if clock is not None:
        agent.context.clock = clock
    own = {field.name: getattr(given, field.name) for field in fields(given)}
    deliberation = own.pop("deliberation")
    own["model_context"] = own["model_context"] or agent.context
    return CoagAgent(**{**own, **deliberation, **arguments})
