"""Importing the package is cheap: what is heavy is imported where it is used."""

import json
import subprocess
import sys
from typing import Any

_HEAVY = ("chromadb", "wordllama", "openai", "ollama", "anthropic", "tiktoken", "uvicorn")


def _in_a_fresh_interpreter(code: str) -> Any:
    """What a script prints as JSON in its last line, run in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=50
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_coag_brings_in_nothing_heavy() -> None:
    loaded = _in_a_fresh_interpreter(
        "import json, sys, coag; print(json.dumps([name for name in sys.modules]))"
    )
    assert set(loaded) & set(_HEAVY) == set()


def test_every_name_of_the_lazy_face_resolves_and_is_listed_by_dir() -> None:
    absent, hidden = _in_a_fresh_interpreter(
        "import json, coag\n"
        "names = coag.__all__\n"
        "hidden = sorted(set(names) - set(dir(coag)))\n"
        "print(json.dumps([[name for name in names if not hasattr(coag, name)], hidden]))"
    )
    assert (absent, hidden) == ([], [])


def test_a_name_that_coag_does_not_have_is_an_attribute_error() -> None:
    message = _in_a_fresh_interpreter(
        "import json, coag\n"
        "try:\n"
        "    coag.Nonsense\n"
        "except AttributeError as error:\n"
        "    print(json.dumps(str(error)))"
    )
    assert "Nonsense" in message
