"""The versions that are claimed are the versions that are tried: bounds, pins and pages agree."""

import ast
import re
import runpy
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


def _project(repository: Path) -> dict[str, Any]:
    return tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _asked_for(repository: Path, *, extras: bool) -> list[Requirement]:
    """What `pyproject.toml` asks for, without the extra that is made of the others."""
    project = _project(repository)
    lines: list[str] = list(project["dependencies"])
    if extras:
        lines += [line for group in project["optional-dependencies"].values() for line in group]
    return [found for found in map(Requirement, lines) if found.name != project["name"]]


def _pins(repository: Path, name: str) -> dict[str, Version]:
    """Version by canonical name in a requirements file."""
    text = (repository / "requirements" / name).read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==(\S+)", text, re.M)
    return {canonicalize_name(package): Version(version) for package, version in found}


def test_every_requirement_has_a_lower_and_an_upper_bound(repository: Path) -> None:
    for asked in _asked_for(repository, extras=True):
        assert sorted(bound.operator for bound in asked.specifier) == ["<", ">="], str(asked)


PACKAGES = ("coag", "vacuum_world", "case_study")
_PART_OF = {
    "anyio": "starlette",
    "httpx2": "mcp",
    "markupsafe": "jinja2",
    "mcp-types": "mcp",
    "onnxruntime": "chromadb",
    "pydantic-core": "pydantic",
    "requests": "opentelemetry-exporter-otlp-proto-http",
    "tokenizers": "chromadb",
}
"""What is imported only together with the requirement that is built on it."""


Imports = Mapping[Path, list[tuple[ast.Import | ast.ImportFrom, bool]]]


def _imported(imports: Imports) -> Iterator[str]:
    """The foreign modules that our packages import, as they are called in an import."""
    for node in (node for found in imports.values() for node, _ in found):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif node.module and not node.level:
            yield node.module.partition(".")[0]


def test_everything_that_is_imported_is_asked_for(repository: Path, imports: Imports) -> None:
    asked = {canonicalize_name(one.name) for one in _asked_for(repository, extras=True)}
    known = asked | {name for name, of in _PART_OF.items() if of in asked} | {"pytest"}
    owners = packages_distributions()
    for name in set(_imported(imports)) - sys.stdlib_module_names - set(PACKAGES):
        assert known & set(map(canonicalize_name, owners.get(name, [name]))), name


def test_lowest_set_has_every_requirement_at_its_lower_bound(repository: Path) -> None:
    pins = _pins(repository, "lowest.txt")
    for asked in _asked_for(repository, extras=True):
        (lower,) = (bound.version for bound in asked.specifier if bound.operator == ">=")
        assert pins[canonicalize_name(asked.name)] == Version(lower), str(asked)


@pytest.mark.parametrize("name", ["run.txt", "dev.txt", "newest.txt", "lowest.txt"])
def test_every_pin_is_within_the_bounds(repository: Path, name: str) -> None:
    pins = _pins(repository, name)
    for asked in _asked_for(repository, extras=name != "run.txt"):
        assert pins[canonicalize_name(asked.name)] in asked.specifier, str(asked)


def test_newest_set_is_nowhere_older_than_the_lowest(repository: Path) -> None:
    newest, lowest = _pins(repository, "newest.txt"), _pins(repository, "lowest.txt")
    for asked in _asked_for(repository, extras=True):
        name = canonicalize_name(asked.name)
        assert newest[name] >= lowest[name], str(asked)


def test_extra_all_is_made_of_every_other_extra(repository: Path) -> None:
    project = _project(repository)
    extras: dict[str, list[str]] = project["optional-dependencies"]
    (whole,) = map(Requirement, extras["all"])
    assert whole.name == project["name"]
    assert extras["assess"] == extras["evals"]  # its former name
    assert whole.extras == extras.keys() - {"all", "assess"}


def test_every_extra_is_locked(repository: Path) -> None:
    script = (repository / "requirements" / "lock.sh").read_text(encoding="utf-8")
    extras: dict[str, list[str]] = _project(repository)["optional-dependencies"]
    assert set(re.findall(r"--extra ([\w-]+)", script)) == extras.keys() - {"all"}


def test_compatibility_page_gives_every_bound(repository: Path) -> None:
    page = (repository / "docs" / "compatibility.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| `([^`]+)` \|", page, re.M)
    documented = {name: Requirement(f"{name}{bounds}").specifier for name, bounds in rows}
    assert len(rows) == len(documented)
    assert documented == {one.name: one.specifier for one in _asked_for(repository, extras=True)}


def test_matrix_shows_only_packages_that_both_sets_have(repository: Path) -> None:
    shown = runpy.run_path(str(repository / "requirements" / "matrix.py"))["SHOWN"]
    for name in ("lowest.txt", "newest.txt"):
        assert set(shown) <= _pins(repository, name).keys()


@pytest.mark.parametrize(
    ("log", "closing"),
    [
        ("....\n12 passed in 1.20s\n", "12 passed"),
        (
            "FAILED a - b in 2s\n2 failed, 9 passed, 1 deselected in 61.02s (0:01:01)\n",
            "2 failed, 9 passed, 1 deselected",
        ),
        ("ImportError while loading conftest\n", "pytest ended with 4 before it counted"),
    ],
)
def test_matrix_says_what_pytest_counted(repository: Path, log: str, closing: str) -> None:
    matrix = runpy.run_path(str(repository / "requirements" / "matrix.py"))
    assert matrix["closing"](log, 4) == closing
