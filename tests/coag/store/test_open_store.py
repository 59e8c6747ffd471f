from __future__ import annotations

from pathlib import Path

import pytest

from coag.errors import ConfigurationError
from coag.store import ChromaStore, HashEmbedder, open_store


@pytest.mark.parametrize("location", ["records", "http://127.0.0.1:9", "https://chroma.example"])
def test_location_is_chroma_and_nothing_is_touched_before_the_first_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(location, embedder=HashEmbedder())
    assert isinstance(store, ChromaStore)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "location", ["ftp://host:1", "http://", "http://host:99999", "http://host:1/path"]
)
def test_address_that_is_no_server_is_refused(location: str) -> None:
    with pytest.raises(ConfigurationError, match=location):
        open_store(location)


async def test_an_agents_folder_is_no_store_and_the_error_names_the_one_below(
    tmp_path: Path,
) -> None:
    await (await ChromaStore.open(tmp_path / "robbie" / "long_term", HashEmbedder())).close()
    with pytest.raises(ConfigurationError, match=r"open_store.*long_term"):
        await ChromaStore.open(tmp_path / "robbie", HashEmbedder())
    assert [one.name for one in (tmp_path / "robbie").iterdir()] == ["long_term"]
