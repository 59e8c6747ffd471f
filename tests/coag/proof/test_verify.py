from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from kits.lies import Lie
from kits.rarer_lies import ALL_LIES
from kits.tampering import EDITS, Edit, bodies_of, edit, forge, honest_run

from coag.proof import Rule, examine, verify

BROKEN = pytest.mark.broken_trace("it lies in the trace")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def honest(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    yield await honest_run(tmp_path_factory.mktemp("honest"))


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> Path:
    """A copy of an honest run."""
    shutil.copytree(honest, tmp_path / honest.name)
    return tmp_path / honest.name


def test_an_honest_run_holds(run: Path) -> None:
    found = examine(run)
    assert found.violations == ()
    assert found.remarks == ()
    assert found.records == len(bodies_of(run))


def test_an_honest_run_written_again_by_the_forger_holds(run: Path) -> None:
    head = examine(run).head
    forge(run, bodies_of(run))
    assert verify(run) == []
    assert examine(run).head == head


@BROKEN
@pytest.mark.parametrize("lie", ALL_LIES, ids=lambda lie: lie.name)
def test_a_lie_is_found_though_the_chain_was_made_anew(run: Path, lie: Lie) -> None:
    bodies = bodies_of(run)
    lie.tell(bodies)
    forge(run, bodies)
    rules = {violation.rule for violation in verify(run)}
    assert not rules & {Rule.CHAIN, Rule.NUMBER, Rule.SEAL}
    assert lie.rule in rules


@BROKEN
@pytest.mark.parametrize("edited", EDITS, ids=lambda edited: edited.name)
def test_an_edit_of_the_file_is_found(run: Path, edited: Edit) -> None:
    edit(run, edited.change)
    assert edited.rule in {violation.rule for violation in verify(run)}
