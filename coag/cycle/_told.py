"""What a trace was told already, so that only what has changed is written again."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from coag.schema import ActionSpec, content_id, random_state


class Told:
    """Remembers what the snapshots of one trace hold."""

    def __init__(self) -> None:
        self._procedures: dict[str, int] | None = None
        self._random: object = None
        self._environment = self._actions = ""

    def begin(self) -> None:
        """Another trace begins: everything is told anew."""
        self.__init__()

    def new_procedures(self, versions: Mapping[str, int]) -> bool:
        """Whether the texts of these versions are not in the trace yet."""
        known, self._procedures = self._procedures, dict(versions)
        return known != self._procedures

    def new_random(self, source: random.Random) -> Any:
        """The random source's state as JSON, if it has changed; else None."""
        state = source.getstate()
        known, self._random = self._random, state
        return None if known == state else random_state(source)

    def new_environment(self, state: Any) -> bool:
        """Whether this state differs from the one that was told last."""
        known, self._environment = self._environment, _hash(state)
        return known != self._environment

    def new_actions(self, specs: Sequence[ActionSpec]) -> bool:
        """Whether these differ from those that were told last."""
        known, self._actions = self._actions, _hash([spec.model_dump() for spec in specs])
        return known != self._actions


def _hash(value: Any) -> str:
    return content_id(json.dumps(value, sort_keys=True, default=str))
