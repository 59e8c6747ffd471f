from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["coag.store", "coag.memory"])
def test_importing_brings_in_nothing_heavy(package: str) -> None:
    script = (
        f"import sys, {package}\n"
        "heavy = {'chromadb', 'wordllama', 'numpy', 'httpx', 'autogen_core'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
