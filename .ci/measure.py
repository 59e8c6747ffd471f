"""How heavy the tree is: files, lines, names that occur twice, files that one other file imports.

    python .ci/measure.py [--json]

Rooms are the packages below `coag`; a file's importers are looked for in `coag` alone.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter, defaultdict
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def modules(folder: str) -> list[Path]:
    """The Python files below a folder, without what is generated."""
    return sorted(p for p in (ROOT / folder).rglob("*.py") if "__pycache__" not in p.parts)


def lines(path: Path) -> int:
    """Lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def room_of(path: Path) -> str:
    """The package below `coag` that a file is in."""
    parts = path.relative_to(ROOT / "coag").parts
    return parts[0] if len(parts) > 1 else "."


def name_of(path: Path) -> str:
    """A file's dotted name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_by(path: Path) -> set[str]:
    """The dotted names of modules that a file imports from, relative ones resolved."""
    package = name_of(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names


def classes(path: Path) -> list[str]:
    """The names of a file's classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def measure() -> dict[str, Any]:
    """All figures."""
    of_coag = modules("coag")
    rooms: dict[str, list[int]] = defaultdict(list)
    for path in of_coag:
        rooms[room_of(path)].append(lines(path))
    importers: Counter[str] = Counter()
    for path in of_coag:
        importers.update(imported_by(path) - {name_of(path)})
    single = [
        name_of(path)
        for path in of_coag
        if path.name != "__init__.py" and importers[name_of(path)] == 1
    ]
    counted = Counter(name for path in of_coag for name in classes(path))
    twice = sorted(name for name, count in counted.items() if count > 1)
    docs = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {
        "rooms": {
            room: [len(of), sum(of), median(of), max(of)] for room, of in sorted(rooms.items())
        },
        "trees": {
            name: [len(modules(name)), sum(map(lines, modules(name)))]
            for name in ("coag", "case_study", "vacuum_world", "tests", "benchmarks", "examples")
        },
        "classes of one name": twice,
        "files with one importer": len(single),
        "words of docs": sum(len(p.read_text(encoding="utf-8").split()) for p in docs),
    }


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    arguments = parser.parse_args()
    measures = measure()
    if arguments.json:
        print(json.dumps(measures, indent=1))
        return
    print("| room | files | lines | median | longest |\n|---|---:|---:|---:|---:|")
    for room, (files, total, middle, most) in measures["rooms"].items():
        print(f"| {room} | {files} | {total:,} | {middle:g} | {most} |")
    print("\n| tree | files | lines |\n|---|---:|---:|")
    for name, (files, total) in measures["trees"].items():
        print(f"| {name} | {files} | {total:,} |")
    twice = measures["classes of one name"]
    print(f"\nclasses of one name: {len(twice)}: {', '.join(twice)}")
    print(f"files with one importer: {measures['files with one importer']}")
    print(f"words of docs: {measures['words of docs']:,}")


if __name__ == "__main__":
    main()
