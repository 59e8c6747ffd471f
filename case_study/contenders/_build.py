"""Any contender from the parts of any domain."""

from __future__ import annotations

import random
from pathlib import Path

from autogen_core.models import ChatCompletionClient

from coag.compat import Recorder
from coag.errors import ConfigurationError
from coag.models import model_name_of

from ._coag_player import CoagPlayer, coag_agent
from ._contender import Contender
from ._parts import Act, Observation, Parts
from ._plain_player import PlainPlayer, plain_agent
from ._player import Player
from ._policy_player import Policy, PolicyPlayer

NO_MODEL = "none"
"""What the run of a contender that asks no model names as its model."""


def build_player(
    contender: Contender,
    parts: Parts,
    model: ChatCompletionClient | None,
    logs: Path,
    seed: int,
    *,
    model_name: str | None = None,
) -> Player:
    """The player that a contender is in a domain.

    Args:
        contender: Which one.
        parts: What the domain brings.
        model: The model; None where the contender asks none. Whoever opened it closes it.
        logs: The folder in which the run's folder is made.
        seed: The episode's seed: of chance, and of a CoAG agent's random source.
        model_name: The model as its runs name it; as its client does if not given.

    Raises:
        ConfigurationError: The contender asks a model, and there is none; or the domain has no
            oracle.
    """
    if not contender.asks_model:
        recorder = _recorder(contender, parts, NO_MODEL, logs, seed)
        return PolicyPlayer(_policy(contender, parts, seed), parts, recorder)
    if model is None:
        raise ConfigurationError(f"Contender {contender.name!r} asks a model: give one.")
    if contender.kind == "coag":
        agent = coag_agent(contender, parts, model, logs=logs, seed=seed)
        delivery = "constraint" if contender.constrained else "procedure"
        return CoagPlayer(agent, delivery, lambda: used_tokens(model))
    recorder = _recorder(contender, parts, model_name or model_name_of(model), logs, seed)
    return PlainPlayer(plain_agent(contender, parts, model, recorder), lambda: used_tokens(model))


def used_tokens(model: ChatCompletionClient) -> int:
    """Tokens that a model has read and written since it was opened."""
    usage = model.total_usage()
    return usage.prompt_tokens + usage.completion_tokens


def _recorder(contender: Contender, parts: Parts, model: str, logs: Path, seed: int) -> Recorder:
    return Recorder(
        logs,
        agent=parts.name,
        model=model,
        seed=seed,
        configuration={**parts.configuration, "contender": contender.name},
        recipe=parts.recipe if contender.asks_model else None,
    )


def _policy(contender: Contender, parts: Parts, seed: int) -> Policy:
    dice = random.Random(f"{seed} {parts.task}")
    oracle = parts.oracle_action

    async def by_chance(seen: Observation) -> Act | None:
        del seen
        return parts.random_action(dice)

    async def by_rule(seen: Observation) -> Act | None:
        return parts.rule_action(seen)

    async def by_search(seen: Observation) -> Act | None:
        del seen
        return None if oracle is None else await oracle()

    if contender.kind == "oracle" and oracle is None:
        raise ConfigurationError("This domain has no oracle: give `Parts.oracle_action`.")
    return {"random": by_chance, "rules": by_rule, "oracle": by_search}[contender.kind]
