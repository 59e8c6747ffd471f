"""Folders of Chroma as somebody else opens them, and an embedder that waits for leave."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import chromadb
from chromadb.config import Settings

from coag.store import HashEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def foreign_client(folder: Path, **more: Any) -> Any:
    """Somebody else's Chroma on the same folder."""
    return chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False, **more))


class SlowEmbedder(HashEmbedder):
    """Waits for leave before it embeds anything."""

    def __init__(self, dimension: int = 8) -> None:
        super().__init__(dimension)
        self.started, self.go_on = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """See `HashEmbedder.embed`."""
        self.started.set()
        assert self.go_on.wait(100)
        return super().embed(texts)
