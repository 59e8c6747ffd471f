"""Goals in rows, one below the other: which are drawn, where, and what is folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coag.inspector.views import GoalView

from ._labels import label, wrapped
from ._legend import LEGEND

_SHOWN = 40
"""Goals that are drawn."""
_FEW = 5
"""Goals up to which closed ones are drawn, too."""
WIDE = 536.0
INDENT = 24.0
DEEPEST = 6
"""Levels up to which goals stand further to the right."""
_GAP = 8.0
SIZE = 13.0
BOLD = 1.12
"""How much wider bold texts are."""
LINE = 16.0
_LINES = 2
BAR = 54.0
LABEL = 160


@dataclass(slots=True)
class Row:
    """A goal in its place, or closed ones that are folded."""

    goal: GoalView | None
    depth: int
    lines: list[str]
    top: float = 0.0
    parent: str = ""

    @property
    def left(self) -> float:
        return 2 + min(self.depth, DEEPEST) * INDENT

    @property
    def height(self) -> float:
        return 12 + len(self.lines) * LINE + (LINE if self.goal else 0)

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


@dataclass(slots=True)
class Tree:
    """Goals by what they serve, and those that are drawn."""

    children: dict[str, list[GoalView]] = field(default_factory=dict[str, list[GoalView]])
    drawn: frozenset[str] = frozenset()


def goal_rows(goals: Sequence[GoalView]) -> list[Row]:
    tree = _tree(goals)
    rows: list[Row] = []
    waiting = [(goal, 0) for goal in reversed(tree.children.get("", []))]
    folded = _folded(tree, "", 0)
    while waiting:
        goal, depth = waiting.pop()
        if goal.id not in tree.drawn:
            continue
        text = label(goal.description, LABEL) or "(nothing)"
        room = (WIDE - min(depth, DEEPEST) * INDENT - BAR - 90) / BOLD
        lines = wrapped(text, room, SIZE, _LINES)
        parent = goal.parent if goal.parent in tree.drawn else ""
        rows.append(Row(goal, depth, lines, parent=parent))
        rows += _folded(tree, goal.id, depth + 1)
        waiting += [(one, depth + 1) for one in reversed(tree.children.get(goal.id, []))]
    rows += folded
    top = LEGEND + 4.0
    for row in rows:
        row.top = top
        top += row.height + _GAP
    return rows


def _tree(goals: Sequence[GoalView]) -> Tree:
    by_id = {goal.id: goal for goal in goals}
    tree = Tree()
    for goal in goals:
        tree.children.setdefault(goal.parent if goal.parent in by_id else "", []).append(goal)
    awaited = {on for goal in goals if goal.is_open for on in goal.waits_for}
    few = len(goals) <= _FEW
    wanted = [one for one in goals if few or one.is_open or one.move or one.id in awaited]
    drawn: set[str] = set()
    for goal in sorted(wanted, key=lambda one: (not one.pursued, not one.is_open, -one.priority)):
        line = _line_to_root(goal, by_id) - drawn
        if len(drawn) + len(line) <= _SHOWN:
            drawn |= line
    tree.drawn = frozenset(drawn)
    return tree


def _line_to_root(goal: GoalView, by_id: Mapping[str, GoalView]) -> set[str]:
    """A goal and all that it serves."""
    line: set[str] = set()
    at_goal: GoalView | None = goal
    while at_goal is not None and at_goal.id not in line:
        line.add(at_goal.id)
        at_goal = by_id.get(at_goal.parent)
    return line


def _folded(tree: Tree, parent: str, depth: int) -> list[Row]:
    """A line that says how many closed goals below one are not drawn."""
    counts = {"completed": 0, "abandoned": 0}
    waiting = [one for one in tree.children.get(parent, []) if one.id not in tree.drawn]
    seen: set[str] = set()
    while waiting:
        goal = waiting.pop()
        if goal.id in seen:
            continue
        seen.add(goal.id)
        if goal.status in counts:
            counts[goal.status] += 1
        waiting += tree.children.get(goal.id, [])
    told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    return [Row(None, depth, [f"{told}: folded"], parent=parent)] if told else []
