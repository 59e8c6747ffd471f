"""Finished runs that tests of forks, replays and explanations only look at, made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from kits.foragers import foraged
from kits.gallery import in_a_loop
from kits.porters import TASK, porter
from kits.runs import run_of
from kits.tampering import honest_run

from coag.tracing import RunFolder


@pytest.fixture(scope="session")
def berries(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A forager's run of four cycles in two turns; it is not to be changed."""
    return in_a_loop(foraged(tmp_path_factory.mktemp("berries")))


@pytest.fixture(scope="session")
def compact_berries(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The same with compact deliberation."""
    return in_a_loop(foraged(tmp_path_factory.mktemp("compact"), depth="compact"))


@pytest.fixture(scope="session")
def bare_berries(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """The same without an environment that reports its state."""
    return in_a_loop(foraged(tmp_path_factory.mktemp("bare"), world=False))


@pytest.fixture(scope="session")
def stones(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A porter's run; it is not to be changed."""
    where = tmp_path_factory.mktemp("stones")
    return in_a_loop(run_of(porter(log=str(where / "calls.txt"), logs=str(where / "logs")), TASK))


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A butler's run; it is not to be changed."""
    return in_a_loop(honest_run(tmp_path_factory.mktemp("honest")))


def copied(run: RunFolder | Path, to: Path) -> RunFolder:
    """A copy of a run, which may be changed."""
    path = run if isinstance(run, Path) else run.path
    return RunFolder(Path(shutil.copytree(path, to / path.name)))


@pytest.fixture
def own_berries(berries: RunFolder, tmp_path: Path) -> RunFolder:
    """A copy of the forager's run, which may be changed."""
    return copied(berries, tmp_path / "logs")


@pytest.fixture
def own_stones(stones: RunFolder, tmp_path: Path) -> RunFolder:
    """A copy of the porter's run, which may be changed."""
    return copied(stones, tmp_path / "logs")


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> Path:
    """A copy of the butler's run, which may be changed."""
    return copied(honest, tmp_path).path
