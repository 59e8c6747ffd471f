"""The earlier names of the faces of cycle, context and agent still work, with a warning."""

from __future__ import annotations

from types import ModuleType

import pytest

from coag import agent, context, cycle


@pytest.mark.parametrize(
    ("face", "old", "new"),
    [
        (cycle, "ModuleSeam", "ModuleHost"),
        (cycle, "Part", "Ablation"),
        (context, "Deed", "PastAction"),
        (agent, "Remains", "RecoveredState"),
    ],
)
def test_an_earlier_name_warns_and_gives_the_new_one(face: ModuleType, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now .*{new}"):
        assert getattr(face, old) is getattr(face, new)
    with pytest.raises(AttributeError):
        getattr(face, "nothing")  # noqa: B009 - a name that the face does not have
