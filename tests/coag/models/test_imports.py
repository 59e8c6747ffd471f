"""What importing `coag.models` costs."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("openai", "ollama", "anthropic", "tiktoken", "chromadb", "wordllama", "autogen_ext")


def test_importing_brings_in_no_providers_package() -> None:
    code = (
        "import sys, coag.models; "
        f"print([name for name in {HEAVY!r} if name in sys.modules], end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]"


def test_the_face_names_what_it_exports() -> None:
    import coag.models as face

    assert all(hasattr(face, name) for name in face.__all__)
    assert len(set(face.__all__)) == len(face.__all__)
