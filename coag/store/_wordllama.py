"""The default embedder: small, quick, and in the wheel."""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LOADING = threading.Lock()


class _Model(Protocol):
    def embed(self, texts: list[str]) -> NDArray[np.float32]: ...


class WordLlamaEmbedder:
    """Static word vectors of the `wordllama` package, 256 numbers a text, no network.

    Loaded at the first text (about half a second), shared by all of a process; after that a
    text takes a fraction of a millisecond. Safe to use from several threads.
    """

    name = "wordllama-l2_supercat-256"
    dimension = 256
    minimum_similarity = 0.15
    """Measured, see docs/memory.md."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text."""
        return _model().embed(list(texts))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The same as for a stored text."""
        return self.embed([text])


def _model() -> _Model:
    with _LOADING:
        return _load()


@cache
def _load() -> _Model:
    from pathlib import Path

    with _root_logger_left_alone():
        import wordllama

    # The loader looks for the weights next to the wrong package unless it is told.
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    return cast("_Model", model)


@contextmanager
def _root_logger_left_alone() -> Generator[None]:
    """Importing wordllama configures the root logger, unless that has a handler already."""
    root, guard = logging.getLogger(), logging.NullHandler()
    root.addHandler(guard)
    try:
        yield
    finally:
        root.removeHandler(guard)
