"""The table of states: it holds any state, also in a file of an older version."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.record_states import state_of

from coag.memory.dynamics import DynamicsFile, RecordState, RecordStates

LATER = [name for name in RecordState._fields if name not in ("record", "encoded_at")]


@given(st.sets(st.sampled_from(LATER[3:])))
def test_a_table_that_lacks_columns_gets_them_and_its_rows_the_defaults(lacking: set[str]) -> None:
    with closing(DynamicsFile()) as file:
        before, plain = state_of("a", uses=3, gist="short"), state_of("a")
        RecordStates(file, "ann").put([before])
        with file.transaction() as db:
            for name in lacking:
                db.execute(f"ALTER TABLE states DROP COLUMN {name}")
        states = RecordStates(file, "ann")
        (found,) = states.get(["a"]).values()
        defaults = RecordState._field_defaults
        for name in RecordState._fields:
            expected = defaults[name] if name in lacking else getattr(before, name)
            assert getattr(found, name) == expected
        states.put([plain, state_of("b", gist_at=2.5)])
        assert states.get(["a", "b"]) == {"a": plain, "b": state_of("b", gist_at=2.5)}


@pytest.mark.parametrize("name", ["heard_at", "faded_at"])
def test_an_older_file_that_is_only_looked_at_stays_as_it_is(tmp_path: Path, name: str) -> None:
    path = tmp_path / "dynamics.sqlite3"
    with closing(DynamicsFile(path)) as file:
        RecordStates(file, "ann").put([state_of("a")])
        with file.transaction() as db:
            db.execute(f"ALTER TABLE states DROP COLUMN {name}")
    before = path.read_bytes()
    with closing(DynamicsFile(path, read_only=True)) as file:
        assert RecordStates(file, "ann").get(["a"])["a"].record == "a"
    assert path.read_bytes() == before
