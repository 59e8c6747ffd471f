"""Each package has one face, and all that it shows exists and is explained."""

import ast
import importlib
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("coag", "vacuum_world", "case_study")
_ON_THEIR_OWN = (
    "coag.compat.approval_web",
    "coag.compat.awareness",
    "coag.compat.mcp",
    "coag.memory.correction",
    "coag.memory.health",
    "coag.memory.network",
    "coag.memory.transfer",
    "coag.ui.top",
)
"""Modules that need an extra, or that few need, so that no face imports them."""
_TOOLS = "coag._util"
"""The tools that every room uses; each is imported from its own module."""


def _dotted(path: Path) -> str:
    """The import name of a source file; a face is named after its folder."""
    parts = path.relative_to(_ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _faces() -> list[str]:
    return sorted(
        _dotted(path) for name in _PACKAGES for path in (_ROOT / name).rglob("__init__.py")
    )


Imports = Mapping[Path, list[tuple[ast.Import | ast.ImportFrom, bool]]]


def _by_name(imports: Imports) -> Iterator[tuple[Path, ast.ImportFrom, bool]]:
    """Each `from ... import`, with its file and whether a function makes it."""
    for path, found in imports.items():
        yield from ((path, one, late) for one, late in found if isinstance(one, ast.ImportFrom))


def _room(module: str) -> str:
    """The package whose modules a module may know: `coag.store.chroma` -> `coag.store`."""
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("face", _faces())
def test_face_says_what_it_is_for(face: str) -> None:
    assert (importlib.import_module(face).__doc__ or "").strip()


@pytest.mark.parametrize(
    "face", [name for name in _faces() if name.startswith("coag") and name != _TOOLS]
)
def test_face_lists_its_public_names(face: str) -> None:
    listed = importlib.import_module(face).__all__
    assert listed
    assert len(set(listed)) == len(listed)
    assert [name for name in listed if name.startswith("_") and name != "__version__"] == []


@pytest.mark.parametrize("face", _faces())
def test_every_public_name_exists(face: str) -> None:
    module = importlib.import_module(face)
    absent = [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
    assert absent == []


@pytest.mark.parametrize("face", _faces())
def test_every_public_class_and_function_is_documented(face: str) -> None:
    module = importlib.import_module(face)
    undocumented: list[str] = []
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        text = value.__doc__ or ""
        # A dataclass without a docstring gets its signature for one.
        if not text.strip() or text.startswith(f"{name}("):
            undocumented.append(name)
    assert undocumented == []


def test_every_folder_with_code_has_a_face(source_modules: list[Path]) -> None:
    folders = {path.parent for path in source_modules}
    assert [_dotted(path) for path in folders if not (path / "__init__.py").is_file()] == []


def test_no_package_reaches_past_anothers_face(imports: Imports) -> None:
    reached: list[str] = []
    for path, node, _ in _by_name(imports):
        if node.level or node.module is None or node.module in _ON_THEIR_OWN:
            continue
        parts = node.module.split(".")
        within = len(parts) > 2 and (_ROOT / Path(*parts)).with_suffix(".py").is_file()
        own = (_room(_dotted(path)), _TOOLS)
        if parts[0] in _PACKAGES and within and _room(node.module) not in own:
            reached.append(f"{_dotted(path)}:{node.lineno} imports {node.module}")
    assert reached == []


def test_own_imports_are_at_the_top_except_where_loading_late_is_the_point(
    imports: Imports,
) -> None:
    # The lazy face, and command lines that start quickly.
    late = {"__init__.py", "__main__.py", "entry.py"}
    hidden = [
        f"{_dotted(path)}:{node.lineno}"
        for path, node, is_late in _by_name(imports)
        if is_late and path.name not in late
        if node.level or (node.module or "").split(".")[0] in _PACKAGES
    ]
    assert hidden == []
