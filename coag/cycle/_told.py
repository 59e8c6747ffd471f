"""What a trace was told already, so that only what has changed is written again."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from coag.schema import ActionSpec, content_id, random_state


@dataclass(slots=True)
class _Last:
    """What was told last; nothing yet of what is empty."""

    procedures: dict[str, int] | None = None
    random: object = None
    environment: str = ""
    """Hash of the environment's state, which may be large."""
    actions: tuple[ActionSpec, ...] | None = None


class Told:
    """Remembers what the snapshots of one trace hold."""

    def __init__(self) -> None:
        self._last = _Last()

    def begin(self) -> None:
        """Another trace begins: everything is told anew."""
        self._last = _Last()

    def new_procedures(self, versions: Mapping[str, int]) -> bool:
        """Whether the texts of these versions are not in the trace yet."""
        known, self._last.procedures = self._last.procedures, dict(versions)
        return known != self._last.procedures

    def new_random(self, source: random.Random) -> Any:
        """The random source's state as JSON, if it has changed; else None."""
        state = source.getstate()
        known, self._last.random = self._last.random, state
        return None if known == state else random_state(source)

    def new_environment(self, state: Any) -> bool:
        """Whether this state differs from the one that was told last."""
        known, self._last.environment = self._last.environment, _hash(state)
        return known != self._last.environment

    def new_actions(self, specs: Sequence[ActionSpec]) -> bool:
        """Whether these differ from those that were told last."""
        if self._last.actions == tuple(specs):
            return False
        # Schemas are dictionaries that their owner may change in place.
        self._last.actions = deepcopy(tuple(specs))
        return True


def _hash(value: Any) -> str:
    return content_id(json.dumps(value, sort_keys=True, default=str))
