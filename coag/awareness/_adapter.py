"""What the engine asks of a domain's adapter (SAGEN §5, table 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ._observation import Observation
from .state import AwarenessState, InteractionProtocol, ScanPattern


class Adapter(Protocol):
    """All that is particular to a domain. It keeps nothing: what it knows is in the state."""

    @property
    def domain_name(self) -> str:
        """The domain, e.g. `conversation`."""
        ...

    def define_entity_types(self) -> tuple[str, ...]:
        """The types that its entities may have; none: any."""
        ...

    def define_relationship_types(self) -> tuple[str, ...]:
        """The types that its relationships may have; none: any."""
        ...

    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """What to watch for."""
        ...

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What raw input says, given where things stand; the state is only read."""
        ...

    def format_for_injection(self, state: AwarenessState, budget: int) -> str:
        """The state as text for a prompt, of at most `budget` tokens."""
        ...

    def define_protocol_defaults(self) -> InteractionProtocol:
        """The contract that a new state starts with."""
        ...
