"""What a case is asked for, and how its models draw."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import Literal

from autogen_core.models import ChatCompletionClient
from pydantic import Field

from case_study.contenders import CONTENDERS, NO_MODEL, Contender, Delivery, contender_named
from case_study.robot import constraint_named
from case_study.temperaments import SCRIPTED, open_temperament
from coag.errors import ConfigurationError, UnknownNameError
from coag.models import ModelSpec
from coag.schema import Depth, Value
from vacuum_world.scenarios import scenario_named

Place = Literal["served", "local"]
Between = Literal["kept", "emptied"]
"""What becomes of long-term memory when an episode of a sequence ends."""
AGENTS = ("coag", "baseline")
"""The agents of the paper's comparison; `baseline` is the contender `plain`."""


class CaseRequest(Value):
    """One agent, one scenario, one seed, and how."""

    scenario: str
    """One of the world's scenarios."""
    agent: str
    """`coag` or `baseline`, or one of `case_study.contenders.CONTENDERS`."""
    model: str
    """A model spec, such as `scripted:sound`; not opened for a contender that asks no model."""
    seed: int = 0
    """What places, distances, dirt and wording are varied by."""
    episodes: int | None = Field(default=None, ge=1)
    """How many episodes; None for as many as belong to the scenario."""
    max_actions: int | None = Field(default=None, ge=1)
    """Bound of external actions per episode; None for the scenario's own."""
    token_budget: int | None = Field(default=None, ge=1)
    """Tokens after which the case ends, read and written; the episodes share them equally."""
    without_constraints: tuple[str, ...] = ()
    """Rules of the CoAG agent that are left out, for control runs."""
    without_memory: bool = False
    """CoAG only: nothing is recalled, and nothing outlasts an episode."""
    between: Between | None = None
    """For sequences of episodes: long-term memory is on disk, a folder for each episode, and the
    next one begins with it as it was (`kept`) or with nothing (`emptied`). Chance differs from
    episode to episode then, alike for both. None: a scenario's episodes share one memory."""
    delivery: Delivery = "constraint"
    """CoAG only, `evolution`: how the change of requirements reaches the agent."""
    rendering: Literal["isolated", "growing"] = "isolated"
    """How the prompts of a cycle with one call a phase relate; see `CoagContext`."""
    depth: Depth = "full"
    """`coag` only: one model call a phase, one a cycle, or as many as each cycle needs; a
    contender has its own depth."""
    world: str | None = None
    """Where a world is served; None to serve one here."""
    place: Place = "served"
    """`served`: an HTTP world, and Chroma on disk. `local`: both in this process; quick, with the
    same outcomes, and an interrupted case cannot be continued."""

    @property
    def episode_count(self) -> int:
        """How many episodes it has."""
        return self.episodes or scenario_named(self.scenario).episodes

    @property
    def resumes(self) -> bool:
        """Whether it can be continued after the process has ended."""
        return self.place == "served" or self.between is not None

    def chance(self, episode: int) -> int:
        """What scripted models, the agent's dice and servers' sampling draw by in an episode.

        In a sequence each episode has its own, whatever becomes of memory.
        """
        if self.between is None:
            return self.seed
        digest = blake2b(f"{self.seed} episode {episode}".encode(), digest_size=4).digest()
        return int.from_bytes(digest) >> 1

    @property
    def contender(self) -> Contender:
        """The contender that plays.

        Raises:
            UnknownNameError: There is none of that name.
        """
        if self.agent == "baseline":
            return CONTENDERS["plain"]
        if self.agent == "coag":
            return CONTENDERS["coag-full"].model_copy(update={"depth": self.depth})
        return contender_named(self.agent)

    @property
    def delivered_by(self) -> Delivery:
        """How a change of requirements comes: as a constraint only to a contender that has them."""
        return self.delivery if self.contender.constrained else "procedure"

    @property
    def model_shown(self) -> str:
        """The model as results and runs name it."""
        return model_spec(self.model).public if self.contender.asks_model else NO_MODEL


def model_spec(text: str, seed: int = 0) -> ModelSpec:
    """The model that a spec names; `scripted:NAME` are the temperaments, which draw by the seed.

    Raises:
        UnknownNameError: No form of spec fits; the message lists all.
        ConfigurationError: The spec is incomplete.
    """
    return ModelSpec.parse(text, schemes={SCRIPTED: partial(open_temperament, seed=seed)})


def checked(request: CaseRequest) -> CaseRequest:
    """The request, after making sure that everything it names exists.

    Raises:
        UnknownScenarioError: There is no such scenario.
        UnknownNameError: There is no such agent, model or constraint.
        ConfigurationError: The model cannot be opened.
    """
    scenario_named(request.scenario)
    if request.agent not in (*AGENTS, *CONTENDERS):
        raise UnknownNameError("agent", request.agent, (*AGENTS, *CONTENDERS))
    for name in request.without_constraints:
        constraint_named(name)
    if request.world is not None and request.place == "local":
        raise ConfigurationError(
            f"world={request.world!r} is served, and place='local' serves none: give one of them."
        )
    remembers = request.contender.has_memory and not request.without_memory
    if request.between is not None and not remembers:
        raise ConfigurationError(
            f"between={request.between!r} is about long-term memory, and {request.agent!r} is "
            "asked for without one: leave it out, or choose an agent that remembers."
        )
    if request.contender.asks_model:
        model_spec(request.model).open()
    return request


def sampled_by(model: ChatCompletionClient, chance: int) -> ChatCompletionClient:
    """The same client with a seed of sampling, where its kind of client has one.

    Clients of OpenAI's API have one, and with them those of most local servers. Any other is given
    back as it is, e.g. a scripted one: what its server draws by is then not in our hands.
    """
    schema = getattr(model, "component_config_schema", None)
    if "seed" not in getattr(schema, "model_fields", {}):
        return model
    described = model.dump_component()
    config = {**described.config, "seed": chance}
    return ChatCompletionClient.load_component(described.model_copy(update={"config": config}))
