"""Building the agent of a run again, for a replay: what the recipe in `run.json` names."""

from __future__ import annotations

from collections.abc import Callable

from autogen_core.models import ChatCompletionClient
from autogen_core.tools import Workbench

from case_study.baseline import PlainAgent, open_recall
from case_study.contenders import coag_agent, contender_named, plain_agent
from coag.agent import CoagAgent
from coag.compat import Recorder
from coag.errors import ConfigurationError
from coag.evals import Job
from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest
from coag.tracing import Rebuild, Recipe

from ._body import Body
from ._levels import level_named
from ._parts import parts_of

_FACTORY = "examples.minigrid:build_again"
PlainBuilder = Callable[[ChatCompletionClient, Workbench, Recorder], PlainAgent]


def recipe_of(job: Job, bound: int) -> Recipe:
    """How to build the agent of a job again."""
    return Recipe(factory=_FACTORY, arguments={"job": job.model_dump(mode="json"), "bound": bound})


def build_again(
    *, job: dict[str, object], bound: int, rebuild: Rebuild | None = None
) -> CoagAgent | PlainBuilder:
    """The agent as it was built, acting in an episode of its own that nothing is done in.

    Args:
        job: What was played, as JSON.
        bound: How many actions were allowed, which the task says.
        rebuild: What for.

    Raises:
        ConfigurationError: It is not for a replay.
    """
    played = Job.model_validate(job)
    if rebuild is None or rebuild.purpose != "replay":
        raise ConfigurationError(
            "The environment of a MiniGrid episode is not kept, so its run can be replayed and not "
            f"gone on with. Play {played.key} again."
        )
    contender, level = contender_named(played.contender), level_named(played.scenario)
    recall = open_recall() if contender.remembers else None
    body = Body(level.model_copy(update={"max_actions": bound}), played.seed)
    parts = parts_of(body, recall=recall, recipe=recipe_of(played, bound))
    if contender.kind == "coag":
        model = ScriptedModel(_no_answer, name=played.model)
        return coag_agent(contender, parts, model, seed=played.seed)
    return lambda client, tools, recorder: plain_agent(contender, parts, client, recorder, tools)


def _no_answer(request: ScriptedRequest) -> ScriptedReply:
    raise ConfigurationError("In a replay the trace answers, and no model is asked.")
