"""What `make check` tests: sizes, unique class names, no circles, no dead code, budgets of lines.

    python .ci/house.py

A room's budget of lines is in `.ci/lines.toml`; raise it there, on purpose, where more is needed.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from measure import ROOT, imported_by, lines, modules, name_of, room_of
from vulture import Vulture

MODULE_LINES, CLASS_LINES, FUNCTION_LINES = 800, 300, 60
PACKAGES = ("coag", "vacuum_world", "case_study")
USERS = (*PACKAGES, "tests", "benchmarks", "examples")
CALLED_BY_OTHERS = [
    "__*__", "test_*", "_to_config", "_from_config", "component_*", "on_*", "action_*", "pytest_*",
    "compose", "_repr_html_", "build_from_config", "default_space", "supported_spaces", "is_legacy",
    "_get_compatible_context", "_add_messages_to_context", "list_commands", "_validate_tool_result",
    "doctor", "otel", "import_", "_Closable", "died_of", "told", "make_reflective_dataset",
    "propose_new_texts", "AgentDojo", "Tau2", "Bfcl", "before_run", "after_run",
]  # fmt: skip
"""Names by which libraries call our code, and commands that are imported by name."""
REGISTERED = [
    "@pytest.*", "@*.command*", "@*command", "@*.callback*", "@field_*", "@model_*",
    "@*.get", "@robots.*", "@control.*", "@anybody.*", "@rule*", "@tool*", "@property",
    "@*measure*", "@operation*", "@internal_operation*",
]  # fmt: skip
"""Decorators that hand a function over to somebody who calls it."""


def sizes() -> Iterator[str]:
    """Modules, classes and functions that are too long to be read at once."""
    for path in (path for package in PACKAGES for path in modules(package)):
        if lines(path) > MODULE_LINES:
            yield f"{path.relative_to(ROOT)} has {lines(path)} lines; at most {MODULE_LINES}."
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                most = CLASS_LINES
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                most = FUNCTION_LINES
            else:
                continue
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > most:
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield f"{where} {node.name} has {length} lines; at most {most}."


def class_names() -> Iterator[str]:
    """Class names that `coag` defines more than once."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in modules("coag"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"Class {name} is defined {len(found)} times: {', '.join(found)}."


def circles() -> Iterator[str]:
    """A circle of imports between modules of one package, if there is any."""
    for package in PACKAGES:
        paths = {name_of(path): path for path in modules(package)}
        graph = {
            name: {found for found in imported_by(path) if found in paths and found != name}
            for name, path in paths.items()
        }
        # A face imports its modules, and a module's dotted name holds its face's: no circle.
        faces = {name for name, path in paths.items() if path.name == "__init__.py"}
        for name, wanted in graph.items():
            graph[name] = {one for one in wanted if one not in faces or not name.startswith(one)}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            yield f"Modules import each other: {' > '.join(error.args[1])}."


def dead_code() -> Iterator[str]:
    """Functions, methods and classes that nobody uses, tests and examples included.

    Fields are left out: many are read only where a value is written as JSON.
    """
    vulture = Vulture(ignore_names=CALLED_BY_OTHERS, ignore_decorators=REGISTERED)
    vulture.scavenge([str(ROOT / user) for user in USERS])
    for item in vulture.get_unused_code(min_confidence=60):
        where = Path(item.filename).relative_to(ROOT)
        if where.parts[0] in PACKAGES and item.typ in ("function", "method", "class"):
            yield f"{where}:{item.first_lineno} nobody uses the {item.typ} {item.name}."


def budgets() -> Iterator[str]:
    """Rooms with more lines than their budget, or with none."""
    allowed = tomllib.loads((ROOT / ".ci" / "lines.toml").read_text(encoding="utf-8"))["lines"]
    used: dict[str, int] = defaultdict(int)
    for path in modules("coag"):
        used[f"coag/{room_of(path)}"] += lines(path)
    for tree in ("case_study", "vacuum_world", "tests", "benchmarks", "examples"):
        used[tree] = sum(map(lines, modules(tree)))
    for room, count in sorted(used.items()):
        if room not in allowed:
            yield f"{room} has no budget of lines in .ci/lines.toml; it has {count} lines."
        elif count > allowed[room]:
            yield f"{room} has {count} lines; its budget in .ci/lines.toml is {allowed[room]}."


def main() -> None:
    """Prints each violation, and exits with 1 where there is one."""
    problems = [*sizes(), *class_names(), *circles(), *dead_code(), *budgets()]
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    if problems:
        sys.exit(1)
    sys.stdout.write("Sizes, class names, imports, use and budgets of lines hold.\n")


if __name__ == "__main__":
    main()
