"""The source tree as the architecture tests see it."""

import ast
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("coag", "vacuum_world", "case_study")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder that holds `pyproject.toml`."""
    return ROOT


@pytest.fixture(scope="session")
def source_modules() -> list[Path]:
    """Every Python file of the packages, sorted."""
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


Import = tuple[ast.Import | ast.ImportFrom, bool]


def _imports(statements: Iterable[ast.AST], late: bool = False) -> Iterator[Import]:
    """Imports among statements and what is within them; no expression is looked into."""
    for one in statements:
        if isinstance(one, ast.Import | ast.ImportFrom):
            yield one, late
            continue
        inner = late or isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            within: list[ast.AST] = getattr(one, part, [])
            yield from _imports(within, inner)


@pytest.fixture(scope="session")
def imports(source_modules: list[Path]) -> dict[Path, list[Import]]:
    """The imports of each file of the packages, each with whether a function makes it."""
    return {
        path: list(_imports(ast.parse(path.read_text(encoding="utf-8")).body))
        for path in source_modules
    }


@pytest.fixture(scope="session")
def repository_files() -> list[Path]:
    """The files that a clone brings: what git tracks or would, or all files where git is absent."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        hidden = {".venv", "build", "dist", "logs", "__pycache__"}
        every = (path for path in ROOT.rglob("*") if path.is_file())
        return sorted(path for path in every if not hidden & set(path.relative_to(ROOT).parts))
    listed = subprocess.run(
        [git, "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return sorted(ROOT / line for line in listed.stdout.splitlines() if (ROOT / line).is_file())
