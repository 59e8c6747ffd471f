"""Finding a circle among edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def circle_in(edges: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """A circle that the edges make, its first node again at its end; empty if there is none."""
    done: set[str] = set()
    for start in edges:
        path: list[str] = []
        on_path: set[str] = set()
        todo: list[tuple[str, bool]] = [(start, False)]
        while todo:
            node, leaving = todo.pop()
            if leaving:
                done.add(node)
                on_path.discard(path.pop())
                continue
            if node in on_path:
                return (*path[path.index(node) :], node)
            if node in done:
                continue
            path.append(node)
            on_path.add(node)
            todo.append((node, True))
            todo.extend((following, False) for following in edges.get(node, ()))
    return ()
