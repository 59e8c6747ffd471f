"""What is written into a trace again, and what only once."""

from __future__ import annotations

from coag.cycle.deps import SnapshotDeltas


def test_only_changes_are_written_again_and_everything_in_another_trace() -> None:
    deltas = SnapshotDeltas()
    assert deltas.changed("versions", {"reasoning": 1})
    assert not deltas.changed("versions", {"reasoning": 1})
    assert deltas.changed("actions", {"reasoning": 1})
    assert deltas.changed("versions", {"reasoning": 2})
    deltas.reset()
    assert deltas.changed("versions", {"reasoning": 2})
