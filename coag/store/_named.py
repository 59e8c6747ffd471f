"""Embedders by their names."""

from __future__ import annotations

from coag.errors import ConfigurationError
from coag.schema import Imported

from ._chroma_functions import ChromaEmbedder, known_to_chroma, names_known_to_chroma
from ._embedders import Embedder, HashEmbedder
from ._wordllama import WordLlamaEmbedder
from .minilm import MiniLmEmbedder

_HASH = "hash-"
_SHORT = {"wordllama": WordLlamaEmbedder.name, "minilm": MiniLmEmbedder.name}
"""Names of ours that nobody has to look up."""


def embedder_of(given: Embedder | str | Imported | None) -> Embedder:
    """The embedder that is meant.

    Args:
        given: An embedder as it is; `wordllama`, `minilm`, `hash-DIMENSION`, or the whole name of
            one of these; the name of an embedding function of Chroma, e.g. `ollama` or
            `ollama:MODEL`, for which chromadb is imported; or how to import another one. None is
            `WordLlamaEmbedder`.

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
    found = known_to_chroma(name)
    if found is None:
        raise ConfigurationError(_unknown(given))
    return found


def name_of_embedder(embedder: Embedder) -> str | Imported:
    """The name of one that is known by it, or how to import another one.

    Raises:
        ConfigurationError: It cannot be imported.
    """
    if type(embedder) in (WordLlamaEmbedder, MiniLmEmbedder, HashEmbedder):
        return embedder.name
    if isinstance(embedder, ChromaEmbedder) and embedder.known_as is not None:
        return embedder.known_as
    try:
        return Imported.of(embedder)
    except ConfigurationError as error:
        raise ConfigurationError(f"Embedder {embedder.name!r}: {error}") from error


def _unknown(name: str) -> str:
    ours = ", ".join(f"{short} ({whole})" for short, whole in _SHORT.items())
    return (
        f"There is no embedder named {name!r}. coag has {ours} and {_HASH}DIMENSION; Chroma has "
        f"{', '.join(names_known_to_chroma())}, each also as NAME:MODEL. Another one is given as "
        "itself, or in a configuration by import name."
    )
