"""Prints every requirement of the project and its extras at its lower bound: `lower_bounds.py`.

A requirement without a lower bound has nothing that could be tried, and ends the program.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"

table = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
extras = table["optional-dependencies"]
asked = {*table["dependencies"], *(line for lines in extras.values() for line in lines)}
for requirement in sorted(asked):
    name = re.match(r"[\w.-]+", requirement)
    if name is None or name.group() == table["name"]:  # an extra made of extras
        continue
    bound = re.search(r">=\s*([\w.]+)", requirement)
    if bound is None:
        sys.exit(f"{requirement!r} has no lower bound (>=) in pyproject.toml: add the one tried.")
    sys.stdout.write(f"{name.group()}=={bound.group(1)}\n")
