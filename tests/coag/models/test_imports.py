"""What importing `coag.models` costs, and its deprecated names."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

HEAVY = ("openai", "ollama", "anthropic", "tiktoken", "chromadb", "wordllama", "autogen_ext")


def test_importing_brings_in_no_providers_package() -> None:
    code = (
        "import sys, coag.models; "
        f"print([name for name in {HEAVY!r} if name in sys.modules], end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]"


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
