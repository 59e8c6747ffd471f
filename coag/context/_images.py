"""The images of a dialogue: working memory names them by hash, here they are kept."""

from __future__ import annotations

from collections.abc import Mapping

from coag.schema import Phase, Prompt

from ._working_memory import WorkingMemory

IMAGES_KEPT = 4
"""Images of the dialogue that are kept and shown, the newest ones."""
SHOWN_IN = (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION)
"""Phases whose prompts hold the dialogue."""


class Images:
    """The newest images of the dialogue, as data URIs by hash."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def keep(self, arrived: Mapping[str, str], memory: WorkingMemory) -> None:
        """Takes in what a percept brought, and lets go of what the dialogue shows no more."""
        if not arrived and not self._kept:
            return
        known = {**self._kept, **arrived}
        self._kept = {name: known[name] for name in _newest(memory) if name in known}

    def put_into(self, prompt: Prompt, phase: Phase, memory: WorkingMemory) -> Prompt:
        """The prompt with the images in the first message of the user, where phases see them."""
        shown = tuple(self._kept[name] for name in _newest(memory) if name in self._kept)
        first = next((n for n, said in enumerate(prompt) if said.role == "user"), None)
        if not shown or first is None or phase not in SHOWN_IN:
            return prompt
        seen = prompt[first].model_copy(update={"images": shown})
        return (*prompt[:first], seen, *prompt[first + 1 :])

    def save(self) -> dict[str, str]:
        """What is kept, as JSON."""
        return dict(self._kept)

    def load(self, state: Mapping[str, str]) -> None:
        """Goes on from a saved state."""
        self._kept = dict(state)


def _newest(memory: WorkingMemory) -> list[str]:
    named = dict.fromkeys(name for said in memory.dialogue for name in said.images)
    return list(named)[-IMAGES_KEPT:]
