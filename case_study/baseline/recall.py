"""AutoGen's own long-term memory for the plain agent, as AutoGen's documentation uses it.

`ChromaDBVectorMemory` finds what is like the last message and puts it into the dialogue as one
more system message a turn. What is known to go wrong with it is left as it is; only its embedding
function is ours, since the default one downloads a model at its first use.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from autogen_core.memory import Memory, MemoryContent, MemoryMimeType

from coag.store import WordLlamaEmbedder

RECALLED, LEAST_SCORE = 3, 0.3
"""Records that are recalled a turn, and the score from which on one is."""
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


def open_recall(folder: Path | None = None) -> Memory:
    """AutoGen's Chroma memory; the caller closes it.

    Its own client can neither stay in this process nor switch telemetry off.

    Args:
        folder: Where it is stored; None keeps it in this process until it is closed.
    """
    import chromadb
    from autogen_ext.memory.chromadb import (
        ChromaDBVectorMemory,
        CustomEmbeddingFunctionConfig,
        PersistentChromaDBVectorMemoryConfig,
    )
    from chromadb.config import Settings

    settings = Settings(anonymized_telemetry=False)
    if folder is None:
        client: Any = chromadb.EphemeralClient(settings)
    else:
        client = chromadb.PersistentClient(str(folder), settings)

    class Recall(ChromaDBVectorMemory):
        async def close(self) -> None:
            if folder is None and self._client is not None and self._collection is not None:
                client.delete_collection(self.collection_name)
            await super().close()

    config = PersistentChromaDBVectorMemoryConfig(
        collection_name="robot" if folder else f"robot-{uuid.uuid4().hex}",
        persistence_path=str(folder or ""),
        k=RECALLED,
        score_threshold=LEAST_SCORE,
        embedding_function_config=CustomEmbeddingFunctionConfig(function=_Words),
    )
    memory: Any = Recall(config)
    memory._client = client  # AutoGen takes no client
    return cast("Memory", memory)


def done(action: str, arguments: Mapping[str, Any], result: str, turn: int) -> MemoryContent:
    """What was done and what came of it, as it is put into the memory."""
    listed = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return MemoryContent(
        content=f"{action}({listed}) gave: {result}",
        mime_type=MemoryMimeType.TEXT,
        metadata={"turn": turn},
    )
