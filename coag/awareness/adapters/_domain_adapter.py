"""The seven members that a domain has (SAGEN table 2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from coag.awareness._observation import Observation
from coag.awareness.injection import InjectionBlock, render_injection
from coag.awareness.state import AwarenessState, InteractionProtocol, ScanPattern

from ._blocks import standard_blocks


class DomainAdapter(ABC):
    """A domain. It keeps nothing, so that a state goes on in another process as in this one.

    Five members must be written. The text for prompts is made of the blocks that every domain
    shares and of `domain_blocks`; override `format_for_injection` only to render otherwise.
    """

    @property
    @abstractmethod
    def domain_name(self) -> str:
        """The domain, e.g. `conversation`."""

    @abstractmethod
    def define_entity_types(self) -> tuple[str, ...]:
        """The types that entities may have; none: any."""

    @abstractmethod
    def define_relationship_types(self) -> tuple[str, ...]:
        """The types that relationships may have; none: any."""

    @abstractmethod
    def define_scan_patterns(self) -> tuple[ScanPattern, ...]:
        """What to watch for, whatever happens."""

    @abstractmethod
    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What raw input says where things stand so; the state is only read.

        Raises:
            ObservationError: It breaks the domain's schema; the error names the place.
        """

    def define_protocol_defaults(self) -> InteractionProtocol:
        """The contract that a new state starts with."""
        return InteractionProtocol()

    def format_for_injection(self, state: AwarenessState, budget: int) -> str:
        """The state as text of at most `budget` tokens, the tags included.

        Raises:
            ValueError: The budget is negative.
        """
        return render_injection((*standard_blocks(state), *self.domain_blocks(state)), budget)

    def domain_blocks(self, state: AwarenessState) -> tuple[InjectionBlock, ...]:
        """What this domain shows besides what every domain shows."""
        del state
        return ()
