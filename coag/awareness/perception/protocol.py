"""What a perception must do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from coag.awareness.state import AwarenessState


class Domain(StrEnum):
    """Which adapter's analysis a perception gives."""

    CONVERSATION = "conversation"
    CODING = "coding"


class Perception(Protocol):
    """Reads raw input. It keeps nothing and changes nothing: what it knows is in the state."""

    async def perceive(self, text: str, state: AwarenessState) -> Mapping[str, object]:
        """What a text says where things stand so: the analysis that the adapter takes.

        Raises:
            ModelAnswerError: A model was asked, and gave nothing usable.
            ModelCallError: A model could not be asked.
        """
        ...
