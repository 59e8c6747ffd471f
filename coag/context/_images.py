"""The images of a dialogue: working memory names them by hash, here they are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import cast
from weakref import WeakKeyDictionary

from autogen_core import Image

from coag.schema import Phase, Prompt

from ._working_memory import WorkingMemory

IMAGES_KEPT = 4
"""Images of the dialogue that are kept and shown, the newest ones."""
IMAGE_CHARACTERS = 8_000_000
"""Characters of an image as a data URI; a larger one is left out."""
SHOWN_IN = (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION)
"""Phases whose prompts hold the dialogue."""


class Images:
    """The newest images of the dialogue, as data URIs by hash."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}
        self._uris: WeakKeyDictionary[Image, str] = WeakKeyDictionary()

    def named(self, content: object) -> dict[str, str]:
        """The images of a message's content by their hash, as data URIs."""
        if not isinstance(content, list):
            return {}
        images = [part for part in cast("list[object]", content) if isinstance(part, Image)]
        for image in images:
            if image not in self._uris:  # writing an image is dear
                self._uris[image] = image.data_uri
        return named_images([self._uris[image] for image in images])

    def keep(self, arrived: Mapping[str, str], memory: WorkingMemory) -> None:
        """Takes in what a percept brought, and lets go of what the dialogue shows no more."""
        if not arrived and not self._kept:
            return
        known = {**self._kept, **arrived}
        self._kept = {name: known[name] for name in _newest(memory) if name in known}

    def put_into(self, prompt: Prompt, phase: Phase, memory: WorkingMemory) -> Prompt:
        """The prompt with the images, where phases see them.

        A message that names its images by their hash gets those that are kept; in prompts without
        such messages all stand in the first one of the user.
        """
        if any(said.images for said in prompt):
            return tuple(
                said.model_copy(
                    update={"images": tuple(self._kept[n] for n in said.images if n in self._kept)}
                )
                for said in prompt
            )
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


def named_images(uris: Sequence[str]) -> dict[str, str]:
    """Images by their hash, without those that are too large."""
    kept = [uri for uri in uris if len(uri) <= IMAGE_CHARACTERS]
    return {hashlib.sha256(uri.encode()).hexdigest()[:16]: uri for uri in kept}
