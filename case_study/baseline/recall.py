"""AutoGen's own long-term memory for the plain agent, as AutoGen's documentation uses it.

`ChromaDBVectorMemory` finds what is like the last message and puts it into the dialogue as one
more system message a turn. What is known to go wrong with it is left as it is; only its embedding
function is ours, since the default one downloads a model at its first use.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

from autogen_core.memory import Memory, MemoryContent, MemoryMimeType

from coag.store import WordLlamaEmbedder

RECALLED = 3
"""Records that are recalled a turn."""
LEAST_SCORE = 0.3
"""Score from which on a record is recalled."""
_TINY = 1e-9


class _Words:
    """Our default embedder as an embedding function of Chroma.

    Its vectors have length 1: only then are the scores that AutoGen computes cosines.
    """

    def __call__(self, input: Sequence[str]) -> Any:
        import numpy as np

        rows = WordLlamaEmbedder().embed(list(input))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return list(rows / np.maximum(lengths, _TINY))

    def embed_query(self, input: Sequence[str]) -> Any:
        return self(input)

    @staticmethod
    def name() -> str:
        return "coag-wordllama"

    @staticmethod
    def build_from_config(config: Mapping[str, Any]) -> _Words:
        del config
        return _Words()

    def get_config(self) -> dict[str, Any]:
        return {}

    def default_space(self) -> str:
        return "l2"

    def supported_spaces(self) -> list[str]:
        return ["l2"]

    def is_legacy(self) -> bool:
        return False


def _words() -> Any:
    return _Words()


class _Closable(Protocol):
    """A client of Chroma, as far as it is used here."""

    def delete_collection(self, name: str) -> None: ...


@cache
def _memory_class() -> Any:
    """AutoGen's memory over a client of ours.

    Its own can neither stay in this process nor be told to send no telemetry.
    """
    import chromadb
    from autogen_ext.memory.chromadb import (
        ChromaDBVectorMemory,
        PersistentChromaDBVectorMemoryConfig,
    )
    from chromadb.config import Settings

    class Recall(ChromaDBVectorMemory):
        """AutoGen's memory, on disk or in this process."""

        def __init__(
            self, config: PersistentChromaDBVectorMemoryConfig, folder: Path | None
        ) -> None:
            super().__init__(config)
            self._in_process = folder is None
            settings = Settings(anonymized_telemetry=False)
            self._client = (
                chromadb.EphemeralClient(settings)
                if folder is None
                else chromadb.PersistentClient(str(folder), settings)
            )

        async def close(self) -> None:
            """Lets go of it; what rests in this process only is gone."""
            client = cast("_Closable | None", self._client)
            if self._in_process and client is not None and self._collection is not None:
                client.delete_collection(self.collection_name)
            await super().close()

    return Recall


def open_recall(folder: Path | None = None) -> Memory:
    """AutoGen's Chroma memory; whoever opens it closes it.

    Args:
        folder: Where it rests; None keeps it in this process until it is closed.
    """
    from autogen_ext.memory.chromadb import (
        CustomEmbeddingFunctionConfig,
        PersistentChromaDBVectorMemoryConfig,
    )

    config = PersistentChromaDBVectorMemoryConfig(
        collection_name="robot" if folder else f"robot-{uuid.uuid4().hex}",
        persistence_path=str(folder or ""),
        k=RECALLED,
        score_threshold=LEAST_SCORE,
        embedding_function_config=CustomEmbeddingFunctionConfig(function=_words),
    )
    return cast("Memory", _memory_class()(config, folder))


def done(action: str, arguments: Mapping[str, Any], result: str, turn: int) -> MemoryContent:
    """What was done and what came of it, as it is put into the memory."""
    told = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return MemoryContent(
        content=f"{action}({told}) gave: {result}",
        mime_type=MemoryMimeType.TEXT,
        metadata={"turn": turn},
    )
