"""Embedders by their names, also those of Chroma."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol

from coag.errors import ConfigurationError, RecordStoreError
from coag.schema import Imported

from .chroma_client import known_functions
from .embedders import Embedder, HashEmbedder, WordLlamaEmbedder
from .minilm import MiniLmEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class EmbeddingFunction(Protocol):
    """What Chroma calls an embedding function: texts in, vectors out."""

    def __call__(self, input: Any) -> Any:
        """One vector per text."""
        ...


def chroma_embedder(
    function: EmbeddingFunction, *, name: str | None = None, minimum_similarity: float = 0.0
) -> Embedder:
    """Wraps one of Chroma's embedding functions, or anything callable like one.

    Args:
        function: Called with a list of texts, from a worker thread, one call at a time. Its
            `embed_query`, where it has one, is used for queries.
        name: Names the model exactly; None asks the function for its name and its model's.
        minimum_similarity: Cosine below which texts are unrelated; 0 keeps
            everything, measure it for the model in use.

    Raises:
        ValueError: If `minimum_similarity` is not between 0 and 1.
    """
    if not 0.0 <= minimum_similarity <= 1.0:
        raise ValueError(f"minimum_similarity must be in 0..1, not {minimum_similarity!r}.")
    return ChromaEmbedder(function, name or _name_of(function), minimum_similarity)


class ChromaEmbedder:
    """One of Chroma's embedding functions, as `chroma_embedder` and `embedder_of` give it."""

    def __init__(
        self,
        function: EmbeddingFunction,
        name: str,
        minimum_similarity: float,
        known_as: str | None = None,
    ) -> None:
        self.known_as = known_as
        """By which name it was asked for; None where the function was given itself."""
        self._function = function
        self._one_at_a_time = threading.Lock()
        self._dimension: int | None = None
        self.name = name
        self.minimum_similarity = minimum_similarity

    @property
    def dimension(self) -> int:
        """Found out by embedding a word, at the first use of the store."""
        if self._dimension is None:
            self._dimension = len(self.embed_query("dimension")[0])
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text."""
        return self._rows(self._function, texts)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """One row, from the function's `embed_query` where it has one."""
        return self._rows(getattr(self._function, "embed_query", self._function), [text])

    def _rows(self, function: EmbeddingFunction, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        with self._one_at_a_time:
            try:
                return np.asarray(function(input=list(texts)), dtype=np.float32)
            # The function is somebody else's code and may raise anything; a store promises its
            # callers RecordStoreError for any failure to answer.
            except Exception as error:
                raise RecordStoreError(f"Embedder {self.name!r} failed: {error!r}") from error


def _name_of(function: EmbeddingFunction) -> str:
    """The function's own name and its model's, or the name of its class or of itself."""
    named, configured = getattr(function, "name", None), getattr(function, "get_config", None)
    own = named() if callable(named) else None
    if not isinstance(own, str):
        return str(getattr(function, "__name__", type(function).__qualname__))
    config: object = configured() if callable(configured) else None
    if not isinstance(config, Mapping):
        return own
    models = [str(value) for key, value in config.items() if key in ("model", "model_name")]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # a foreign mapping
    return ":".join([own, *models])


_HASH = "hash-"
_SHORT = {"wordllama": WordLlamaEmbedder.name, "minilm": MiniLmEmbedder.name}
"""Names of ours that nobody has to look up."""


def embedder_of(given: Embedder | str | Imported | None) -> Embedder:
    """The embedder that is meant.

    Args:
        given: An embedder as it is; `wordllama`, `minilm`, `hash-DIMENSION`, or the whole name of
            one of these; the name of an embedding function of Chroma, e.g. `ollama` or
            `ollama:MODEL`, for which chromadb is imported, and which takes keys from the
            environment and keeps everything (`minimum_similarity` is 0); or how to import another
            one. None is `WordLlamaEmbedder`.

    Raises:
        ConfigurationError: There is none, its package is not installed, or Chroma cannot make it
            by its name alone.
    """
    if given is None:
        return WordLlamaEmbedder()
    if isinstance(given, Imported):
        return given.get()
    if not isinstance(given, str):
        return given
    name = _SHORT.get(given, given)
    if name == WordLlamaEmbedder.name:
        return WordLlamaEmbedder()
    if name == MiniLmEmbedder.name:
        return MiniLmEmbedder()
    size = name.removeprefix(_HASH)
    if name.startswith(_HASH) and size.isdecimal() and int(size):
        return HashEmbedder(int(size))
    own, _, model = name.partition(":")
    known = known_functions()
    if own not in known:
        ours = ", ".join(f"{short} ({whole})" for short, whole in _SHORT.items())
        raise ConfigurationError(
            f"There is no embedder named {name!r}. coag has {ours} and {_HASH}DIMENSION; Chroma "
            f"has {', '.join(sorted(known))}, each also as NAME:MODEL. Another one is given as "
            "itself, or in a configuration by import name."
        )
    try:
        function = _made_by_name(known[own], model)
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"Chroma's embedding function {name!r} cannot be made by its name alone: {error} Make "
            "it yourself and give chroma_embedder(FUNCTION)."
        ) from error
    return ChromaEmbedder(function, _name_of(function), 0.0, known_as=name)


def _made_by_name(kind: Callable[..., EmbeddingFunction], model: str) -> EmbeddingFunction:
    """A function of Chroma, which takes its model under one of two names, if it takes one."""
    if not model:
        return kind()
    names = [one for one in ("model_name", "model") if one in signature(kind).parameters]
    if not names:
        raise TypeError("it takes no model.")
    return kind(**{names[0]: model})


def name_of_embedder(embedder: Embedder) -> str | Imported:
    """The name of one that is known by it, or how to import another one."""
    if type(embedder) in (WordLlamaEmbedder, MiniLmEmbedder, HashEmbedder):
        return embedder.name
    if isinstance(embedder, ChromaEmbedder) and embedder.known_as is not None:
        return embedder.known_as
    try:
        return Imported.of(embedder)
    except ConfigurationError as error:
        raise ConfigurationError(f"Embedder {embedder.name!r}: {error}") from error
