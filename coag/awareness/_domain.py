"""What every engine asks of its adapter: a state to begin with, an observation, a text."""

from __future__ import annotations

from collections.abc import Mapping

from coag.errors import AwarenessError, ObservationError
from coag.schema import Clock, estimate_tokens

from ._adapter import Adapter
from ._observation import Observation
from ._settings import EngineSettings
from .state import Attention, AwarenessState, Trajectory

BUDGET = 500
"""Tokens of an injection where nothing else is said."""


def new_state(
    adapter: Adapter, clock: Clock, settings: EngineSettings | None = None
) -> AwarenessState:
    """The state that an adapter's domain starts with."""
    chosen = settings or EngineSettings()
    return AwarenessState(
        domain=adapter.domain_name,
        trajectory=Trajectory(window=chosen.trajectory_window, sticky=chosen.sticky),
        attention=Attention(scan_patterns=adapter.define_scan_patterns()),
        protocol=adapter.define_protocol_defaults(),
        at=clock.now(),
    )


def of_domain(adapter: Adapter, state: AwarenessState) -> AwarenessState:
    """The state, which must be of the adapter's domain.

    Raises:
        AwarenessError: It is of another one.
    """
    if state.domain != adapter.domain_name:
        raise AwarenessError(
            f"The state is of domain {state.domain!r}, the adapter's is "
            f"{adapter.domain_name!r}: give the adapter that kept the state."
        )
    return state


def observed(adapter: Adapter, raw: Mapping[str, object], state: AwarenessState) -> Observation:
    """What the adapter makes of raw input.

    Raises:
        ObservationError: It breaks the schema, or has a type that the domain does not declare.
    """
    observation = adapter.parse_observation(raw, state)
    types = adapter.define_entity_types()
    for place, entity in enumerate(observation.entities):
        _check_type(f"entities[{place}].type", entity.type, types)
    types = adapter.define_relationship_types()
    for place, edge in enumerate(observation.relationships):
        _check_type(f"relationships[{place}].type", edge.type, types)
    return observation


def _check_type(path: str, given: str, declared: tuple[str, ...]) -> None:
    """Refuses a type that is not among the declared ones, where there are any."""
    if declared and given not in declared:
        raise ObservationError(
            path, f"the domain has no type {given!r}; it declares {', '.join(declared)}."
        )


def check_budget(budget: int) -> None:
    """Refuses a budget that is none.

    Raises:
        ValueError: It is negative, or no finite number.
    """
    if not 0 <= budget < float("inf"):
        raise ValueError(f"budget is in tokens and at least 0, not {budget!r}.")


def injected(adapter: Adapter, state: AwarenessState, budget: int) -> str:
    """The state as text for a prompt, of at most `budget` tokens.

    Raises:
        ValueError: The budget is negative.
        AwarenessError: The adapter gave more than that.
    """
    check_budget(budget)
    text = adapter.format_for_injection(state, budget)
    taken = estimate_tokens(text)
    if taken > budget:
        raise AwarenessError(
            f"The adapter of domain {adapter.domain_name!r} gave {taken} tokens for a budget of "
            f"{budget}. Make its `format_for_injection` count as `estimate_tokens` does, or let "
            "`render_injection` choose what fits."
        )
    return text
