"""What awareness exports at its top, and what the import costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import coag
import coag.awareness as face


def test_the_rooms_that_take_their_time_are_loaded_when_they_are_first_used() -> None:
    code = (
        "import sys, coag.awareness as face\n"
        "rooms = ('coag.awareness.model_perception', 'psycopg', 'autogen_core')\n"
        "assert not [one for one in rooms if one in sys.modules]\n"
        "from coag.awareness import ModelPerception\n"
        "assert face.ModelPerception is ModelPerception\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50)
    assert coag.Awareness is face.Awareness
    assert set(face.__all__) <= set(dir(face))
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = face.Nonsense
