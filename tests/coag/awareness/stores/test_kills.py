"""A writer that is killed leaves whole states, and nobody waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kits.state_writer import KEY, one_more, opened

from coag.awareness import change_stored

pytestmark = pytest.mark.slow
ROUNDS = 3
TESTS = Path(__file__).parents[3]


def started(kind: str, place: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "kits.state_writer", kind, str(place)],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("kind", ["folder", "sqlite"])
async def test_a_killed_writer_takes_back_nothing_and_blocks_nobody(
    kind: str, tmp_path: Path
) -> None:
    place = tmp_path / "states"
    store = opened(kind, place)
    ours = theirs = 0
    for round in range(ROUNDS):
        writer = started(kind, place)
        assert writer.stdout is not None
        said = [int(writer.stdout.readline())]
        for _ in range(5 + 3 * round):  # both write at once
            await change_stored(store, KEY, one_more, tries=1000)
            ours += 1
        writer.kill()
        said += [int(line) for line in writer.stdout if line.endswith("\n")]
        writer.wait()
        writer.stdout.close()
        theirs += len(said)
        stored = await change_stored(store, KEY, one_more)
        ours += 1
        unheard = stored.state.step - ours - theirs
        assert 0 <= unheard <= 1  # of a killed one the last change may be stored and not told
        theirs += unheard
    await store.close()
