"""Adapters that read an agent's percepts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from pydantic import ValidationError

from coag.awareness._observation import Observation
from coag.awareness._problems import where_wrong
from coag.awareness.adapters import DomainAdapter
from coag.awareness.state import AwarenessState
from coag.errors import ObservationError
from coag.schema import Percept


class PerceptAdapter(DomainAdapter):
    """A domain whose raw input is what an agent perceives: tool results, changes, messages.

    Write `parse_percept`. What the module sees by itself, it adds: goals, failures, stalls. An
    event of type progress or discovery says that a percept brought the goal on.
    """

    def parse_observation(self, raw: Mapping[str, object], state: AwarenessState) -> Observation:
        """What a percept, given as its fields, says where things stand so.

        Raises:
            ObservationError: It is no percept; the error names the place.
        """
        try:
            percept = Percept.model_validate(raw)
        except ValidationError as error:
            path, problem = where_wrong(error)
            raise ObservationError(path, problem) from error
        return self.parse_percept(percept, state)

    @abstractmethod
    def parse_percept(self, percept: Percept, state: AwarenessState) -> Observation:
        """What a percept says where things stand so; the state is only read.

        Raises:
            ObservationError: It cannot be read; the error names the place.
        """
