"""Other memories, used through their public interfaces and with the same embedder as ours.

Chroma and AutoGen's `ChromaDBVectorMemory` come with coag. mem0 and LangMem's store are measured
where they are installed beside it; nothing here asks for them. No contender has a language model:
mem0 stores what it is given (`infer=False`), and LangMem's tools would put into LangGraph's store
what a model decides, so that its store alone is measured.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import chromadb
import numpy as np
from autogen_core.memory import MemoryContent, MemoryMimeType
from autogen_ext.memory.chromadb import (
    ChromaDBVectorMemory,
    CustomEmbeddingFunctionConfig,
    PersistentChromaDBVectorMemoryConfig,
)
from chromadb.config import Settings
from numpy.typing import NDArray

from coag.store import Embedder, WordLlamaEmbedder

from ._contender import Item, Looped
from ._metrics import LOOKED_AT

COLLECTION = "bench"
_USER = "bench"


class Vectors:
    """Texts as vectors of unit length, called as Chroma calls an embedding function.

    Unit length matters: `ChromaDBVectorMemory` asks for cosine in a way that Chroma does not
    read, and gets squared distances, which rank alike only then.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder or WordLlamaEmbedder()
        self.dimension = self._embedder.dimension

    def __call__(self, input: Sequence[str]) -> list[NDArray[np.float32]]:
        return list(self.of(input))

    def embed_query(self, input: Sequence[str]) -> list[NDArray[np.float32]]:
        """The same for questions."""
        return list(self.of(input))

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text."""
        rows = np.asarray(self._embedder.embed(list(texts)), dtype=np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

    @staticmethod
    def name() -> str:
        """What Chroma keeps of it."""
        return "default"

    def get_config(self) -> dict[str, Any]:
        """What Chroma keeps of it."""
        return {}

    def is_legacy(self) -> bool:
        """Chroma is not to build it again."""
        return True

    def default_space(self) -> str:
        """What Chroma takes by default."""
        return "l2"

    def supported_spaces(self) -> list[str]:
        """What it accepts."""
        return ["cosine", "l2", "ip"]


class BareChroma:
    """A collection of Chroma and nothing besides.

    Args:
        folder: Where it is stored.
        vectors: The embedder.
        keyed: Whether a statement is stored under its subject and attribute, so that the last word
            on them is the only one.
    """

    def __init__(self, folder: Path, vectors: Vectors, *, keyed: bool = False) -> None:
        settings = Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(path=str(folder), settings=settings)
        self._rows = client.get_or_create_collection(COLLECTION, embedding_function=None)
        self._vectors = vectors
        self._keyed = keyed
        self._kept: dict[str, str] = {}

    def add(self, turns: Sequence[Item]) -> None:
        """All in one call."""
        texts = [text for _, text, _ in turns]
        ids = [_key(known) if self._keyed else name for name, _, known in turns]
        self._kept |= dict(zip(ids, (name for name, _, _ in turns), strict=True))
        self._rows.upsert(
            ids=ids,
            documents=texts,
            embeddings=cast("Any", self._vectors.of(texts)),
            metadatas=[{"turn": name, "mime_type": "text/plain"} for name, _, _ in turns],
        )

    def query(self, text: str, k: int) -> list[str]:
        """With documents and metadata, as the caller needs them."""
        found = self._rows.query(
            query_embeddings=cast("Any", self._vectors.of([text])),
            n_results=k,
            include=["documents", "metadatas", "distances"],
        )
        rows = (found["metadatas"] or [[]])[0]
        return [str(row["turn"]) for row in rows]

    def retract(self, names: Sequence[str]) -> bool:
        """Deletes by id; under a key, only if the last word is one of these."""
        ids = [key for key, name in self._kept.items() if name in set(names)]
        if ids:
            self._rows.delete(ids=ids)
        for key in ids:
            del self._kept[key]
        return True

    def close(self) -> None:
        """Chroma closes with the process."""


class AutoGenMemory(Looped):
    """AutoGen's `ChromaDBVectorMemory`, which takes in one text at a time."""

    def __init__(self, folder: Path, vectors: Vectors, k: int = LOOKED_AT) -> None:
        super().__init__()
        self._memory = ChromaDBVectorMemory(
            PersistentChromaDBVectorMemoryConfig(
                collection_name=COLLECTION,
                persistence_path=str(folder),
                k=k,
                embedding_function_config=CustomEmbeddingFunctionConfig(function=lambda: vectors),
            )
        )

    def add(self, turns: Sequence[Item]) -> None:
        """One by one: there is no other way."""
        for name, text, _ in turns:
            content = MemoryContent(
                content=text, mime_type=MemoryMimeType.TEXT, metadata={"turn": name}
            )
            self.run(self._memory.add(content))

    def query(self, text: str, k: int) -> list[str]:
        """At most as many as it was opened for."""
        found = self.run(self._memory.query(text)).results
        return [str((one.metadata or {})["turn"]) for one in found[:k]]

    def retract(self, names: Sequence[str]) -> bool:
        """There is no way but to clear everything."""
        return False

    def close(self) -> None:
        """Releases it."""
        self.run(self._memory.close())
        self.end()


class Mem0:
    """mem0 as it is without a model: with `infer=False`, over its default store in a folder."""

    def __init__(self, folder: Path, vectors: Vectors) -> None:
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(folder)
        unused = {"provider": "openai", "config": {"api_key": "never asked"}}
        store = {"path": str(folder / "qdrant"), "on_disk": True}
        store |= {"collection_name": COLLECTION, "embedding_model_dims": vectors.dimension}
        settings = {
            "llm": unused,
            "embedder": unused,
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(folder / "history.db"),
        }
        self._memory: Any = importlib.import_module("mem0").Memory.from_config(settings)
        self._memory.embedding_model = _Mem0Embedding(vectors)
        self._ids: dict[str, str] = {}

    def add(self, turns: Sequence[Item]) -> None:
        """One by one, as its `add` takes them."""
        for name, text, _ in turns:
            added = self._memory.add(text, user_id=_USER, metadata={"turn": name}, infer=False)
            self._ids[name] = added["results"][0]["id"]

    def query(self, text: str, k: int) -> list[str]:
        """Without its threshold, so that as much comes as from the others."""
        found = self._memory.search(text, filters={"user_id": _USER}, top_k=k, threshold=0.0)
        return [str(one["metadata"]["turn"]) for one in found["results"]]

    def retract(self, names: Sequence[str]) -> bool:
        """Deletes by id."""
        for name in names:
            self._memory.delete(self._ids.pop(name))
        return True

    def close(self) -> None:
        """Releases its files."""
        self._memory.vector_store.client.close()


class _Mem0Embedding:
    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return self._vectors.of([text])[0].tolist()

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return self._vectors.of(texts).tolist()


class LangGraphStore:
    """The store under LangMem's tools: LangGraph's `InMemoryStore` with an index of meaning."""

    def __init__(self, vectors: Vectors) -> None:
        module: Any = importlib.import_module("langgraph.store.memory")

        def embed(texts: list[str]) -> list[list[float]]:
            return vectors.of(texts).tolist()

        index = {"dims": vectors.dimension, "embed": embed, "fields": ["text"]}
        self._store: Any = module.InMemoryStore(index=index)
        self._put: Any = importlib.import_module("langgraph.store.base").PutOp

    def add(self, turns: Sequence[Item]) -> None:
        """One by one: its batches (4.3.2) take no text twice."""
        for name, text, _ in turns:
            self._store.batch([self._put((_USER,), name, {"text": text})])

    def query(self, text: str, k: int) -> list[str]:
        """By meaning."""
        return [str(one.key) for one in self._store.search((_USER,), query=text, limit=k)]

    def retract(self, names: Sequence[str]) -> bool:
        """Deletes by key."""
        for name in names:
            self._store.delete((_USER,), name)
        return True

    def close(self) -> None:
        """It goes with the process."""


def _key(known: Mapping[str, Any]) -> str:
    return f"{known['subject']}, {known['attribute']}"


# ---- The embedder that a command line names ----


def embedder_named(name: str | None) -> Embedder | None:
    """What `package.module:callable` makes; None, the default, without a name."""
    if name is None:
        return None
    module, _, made = name.partition(":")
    return getattr(importlib.import_module(module), made)()
