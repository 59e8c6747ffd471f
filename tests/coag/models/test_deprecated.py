"""Deprecated names."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.parametrize(
    ("face", "old", "new"),
    [
        ("coag.models", "Asker", "StructuredModel"),
        ("coag.models", "listening", "capture_usage"),
        ("coag.schema", "Rung", "OutputMode"),
    ],
)
def test_names_of_before_still_work_and_say_the_new_one(face: str, old: str, new: str) -> None:
    module = importlib.import_module(face)
    with pytest.warns(DeprecationWarning, match=f"{face}.{old} is now {face}.{new}"):
        assert getattr(module, old) is getattr(module, new)
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        _ = module.Nobody
