"""Modules, classes and functions stay small enough to be read at once."""

import ast
from pathlib import Path

_MODULE_LINES = 800
_CLASS_LINES = 300
_FUNCTION_LINES = 60


def _spans(path: Path, *kinds: type[ast.stmt]) -> list[tuple[str, int]]:
    """Name and length in lines of each definition of the given kinds in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        (
            f"{path.name}:{node.lineno} {node.name}",
            (node.end_lineno or node.lineno) - node.lineno + 1,
        )
        for node in ast.walk(tree)
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and isinstance(node, kinds)
    ]


def test_no_module_is_longer_than_800_lines(source_modules: list[Path]) -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in source_modules}
    assert {str(path): n for path, n in lengths.items() if n > _MODULE_LINES} == {}


def test_no_class_is_longer_than_300_lines(source_modules: list[Path]) -> None:
    spans = [span for path in source_modules for span in _spans(path, ast.ClassDef)]
    assert [span for span in spans if span[1] > _CLASS_LINES] == []


def test_no_function_is_longer_than_60_lines(source_modules: list[Path]) -> None:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    spans = [span for path in source_modules for span in _spans(path, *kinds)]
    assert [span for span in spans if span[1] > _FUNCTION_LINES] == []
