"""Goals over cycles, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element, SubElement

from coag.inspector.views import GoalView, Move, Stand

from .canvas import (
    CROSS,
    LEGEND,
    TICK,
    Ink,
    Key,
    add_box,
    add_legend,
    add_note,
    add_path,
    add_text,
    at,
    brief,
    drawing,
    label,
    width_of,
    wrapped,
    written,
)

# ---- Goals in rows, one below the other: which are drawn, where, and what is folded ----


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
        """Pixels from the left edge."""
        return 2 + min(self.depth, DEEPEST) * INDENT

    @property
    def height(self) -> float:
        """Pixels of the row."""
        return 12 + len(self.lines) * LINE + (LINE if self.goal else 0)

    @property
    def middle(self) -> float:
        """Pixels from the top to its middle."""
        return self.top + self.height / 2


@dataclass(slots=True)
class Tree:
    """Goals by what they serve, and those that are drawn."""

    children: dict[str, list[GoalView]] = field(default_factory=dict[str, list[GoalView]])
    drawn: frozenset[str] = frozenset()


def goal_rows(goals: Sequence[GoalView]) -> list[Row]:
    """Goals as rows, each below what it serves."""
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


# ---- Goals: what serves what, what waits for what, and which one is pursued ----


_RIGHT = 58.0
"""Room for what waits for what, to the right of the goals."""
_SMALL = 11.0
_LANES = 5
"""Lines that run beside each other, to the right."""
_INKS: Mapping[str, Ink] = {
    "active": Ink.BELIEF,
    "blocked": Ink.WRONG,
    "deferred": Ink.QUIET,
    "completed": Ink.GOOD,
    "abandoned": Ink.QUIET,
}
_EDGES: Mapping[str, str] = {"blocked": "5 3", "deferred": "2 3", "abandoned": "2 3"}
"""How borders are dashed."""
_MOVES: Mapping[Move, str] = {Move.ADDED: "+ new", Move.CHANGED: "~ changed"}


def goals_svg(stand: Stand, *, prefix: str) -> str:
    """The goals of one cycle, those that serve another below it and further to the right.

    Of more than a few goals the closed ones are folded where nothing open hangs on them. It has
    a size of its own, in which its texts can be read: the page lets it be scrolled.

    Args:
        stand: What the module held; without a goal the drawing says so.
        prefix: What its ids begin with, unique in the page: letters, digits and hyphens.

    Returns:
        An `<svg>` element.
    """
    rows = goal_rows(stand.goals)
    left_out = sum(goal.is_open for goal in stand.goals) - sum(
        row.goal is not None and row.goal.is_open for row in rows
    )
    height = rows[-1].top + rows[-1].height + 4 if rows else LEGEND + 24
    root = drawing(
        WIDE + _RIGHT,
        height + (20 if left_out else 0),
        prefix=prefix,
        title=f"Goals as cycle {stand.cycle} began",
        told=_told(stand),
        grows=False,
    )
    if not rows:
        add_note(root, "There is no goal.", (2, LEGEND))
        return written(root)
    keys = [Key(name="serves the one above", ink=Ink.QUIET, sort="line")]
    keys.append(Key(name="waits for", ink=Ink.TRUTH, sort="dashes"))
    add_legend(root, keys, 2)
    by_id = {row.goal.id: row for row in rows if row.goal}
    _draw_hierarchy(root, rows, by_id)
    _draw_waiting(root, rows, by_id)
    for row in rows:
        _draw(root, row)
    if left_out:
        text = f"{left_out} more open goals have no room here; the table below has them."
        add_note(root, text, (2, height + 12))
    return written(root)


# ---- places ----


# ---- drawing ----


def _draw(root: Element, row: Row) -> None:
    group = SubElement(root, "g", {"class": "node"})
    goal = row.goal
    if goal is None:
        look = {"fill": "none", "stroke": Ink.GRID.paint, "stroke-opacity": "0.6"}
        box = (row.left, row.top, min(WIDE - row.left, 260), row.height)
        add_box(group, box, look, radius=6)
        add_text(group, row.lines[0], (row.left + 12, row.middle + 4), ink=Ink.QUIET, size=_SMALL)
        return
    ink = _INKS.get(goal.status, Ink.QUIET)
    SubElement(group, "title").text = label(_sentence(goal), 400)
    box = (row.left, row.top, WIDE - row.left, row.height)
    add_box(group, box, {"fill": Ink.PAPER.paint, **_border(goal, ink)}, radius=6)
    add_box(group, (row.left, row.top + 3, 5, row.height - 6), {"fill": ink.paint})
    _draw_icon(group, goal.status, (row.left + 14, row.top + 16), ink)
    for number, line in enumerate(row.lines):
        place = (row.left + 32, row.top + 19 + number * LINE)
        look = Ink.TEXT if goal.is_open else Ink.QUIET
        add_text(group, line, place, ink=look, size=SIZE, bold=goal.pursued)
    _draw_small(group, row, goal, ink)


def _border(goal: GoalView, ink: Ink) -> dict[str, str]:
    if goal.pursued:
        return {"stroke": ink.paint, "stroke-width": "2.5"}
    look = {"stroke": ink.paint if goal.is_open else Ink.GRID.paint, "stroke-width": "1"}
    dashes = _EDGES.get(goal.status)
    return look | ({"stroke-dasharray": dashes} if dashes else {})


def _draw_icon(group: Element, status: str, place: tuple[float, float], ink: Ink) -> None:
    x, y = place
    if status == "completed":
        add_path(group, f"{at(x, y - 2)}{TICK}", ink, 2.2)
    elif status == "abandoned":
        add_path(group, f"{at(x + 1, y - 5)}{CROSS}", ink, 1.8)
    elif status == "blocked":
        add_path(group, f"{at(x, y - 2)}h9", ink, 3)
    elif status == "deferred":
        add_path(group, f"{at(x + 2, y - 6)}v8m5 -8v8", ink, 2)
    else:
        add_path(group, f"{at(x + 1, y - 6)}v8l7 -4z", ink, 1.4, {"fill": ink.paint})


def _draw_small(group: Element, row: Row, goal: GoalView, ink: Ink) -> None:
    """What kind of goal it is, and how much it matters."""
    low = row.top + row.height - 9
    x = row.left + 32
    status = f"{goal.status}, pursued now" if goal.pursued else goal.status
    add_text(group, status, (x, low), ink=ink, size=_SMALL, bold=True)
    x += width_of(status, _SMALL) * BOLD + 10
    rest = f"{goal.source}, since cycle {goal.since}"
    add_text(group, rest, (x, low), ink=Ink.QUIET, size=_SMALL)
    move = _MOVES.get(goal.move) if goal.move else None
    if move:
        x += width_of(rest, _SMALL) + 10
        add_text(group, move, (x, low), ink=Ink.GOOD, size=_SMALL, bold=True)
    left = WIDE - BAR - 46
    share = min(max(goal.priority, 0.0), 1.0)
    ground = {"fill": Ink.GRID.paint, "fill-opacity": "0.4"}
    add_box(group, (left, row.top + 12, BAR, 5), ground)
    add_box(group, (left, row.top + 12, BAR * share, 5), {"fill": Ink.QUIET.paint})
    end = (WIDE - 8, row.top + 18)
    add_text(group, f"p {goal.priority:.2f}", end, ink=Ink.QUIET, size=_SMALL, anchor="end")


def _draw_hierarchy(root: Element, rows: Sequence[Row], by_id: Mapping[str, Row]) -> None:
    for row in rows:
        parent = by_id.get(row.parent)
        if parent is None or row.left <= parent.left:
            continue
        x = parent.left + 12
        d = f"{at(x, parent.top + parent.height)}V{brief(row.middle)}H{brief(row.left)}"
        add_path(root, d, Ink.QUIET, 1.3)


def _draw_waiting(root: Element, rows: Sequence[Row], by_id: Mapping[str, Row]) -> None:
    """A dashed line to what a goal waits for; its arrow stands there."""
    number = 0
    for row in rows:
        for on in row.goal.waits_for if row.goal else ():
            other = by_id.get(on)
            if other is None or other is row:
                continue
            reach = WIDE + 16 + number % _LANES * 9
            number += 1
            start, end = row.middle + 4, other.middle - 4
            d = f"{at(WIDE, start)}C{brief(reach)} {brief(start)} {brief(reach)} {brief(start)} "
            side = 14 if end > start else -14
            d += f"{brief(reach)} {brief(start + side)}V{brief(end - side)}"
            d += f"C{brief(reach)} {brief(end)} {brief(reach)} {brief(end)} {brief(WIDE + 7)} "
            d += brief(end)
            add_path(root, d, Ink.TRUTH, 1.8, {"stroke-dasharray": "5 3"})
            tip = f"{at(WIDE + 1, end)}l8 -4v8z"
            add_path(root, tip, Ink.TRUTH, 0.5, {"fill": Ink.TRUTH.paint})


# ---- in words ----


def _sentence(goal: GoalView) -> str:
    told = f"{goal.description}: {goal.status}, {goal.source}, priority {goal.priority:.2f}"
    return f"{told}; reached when {goal.criteria}" if goal.criteria else told


def _told(stand: Stand) -> str:
    told = f"{stand.goals_open} open and {stand.goals_closed} closed goals."
    if stand.pursued is not None:
        told += f" Pursued now: {label(stand.pursued.description, LABEL)}."
    blocked = sum(goal.status == "blocked" for goal in stand.goals)
    return f"{told} Blocked: {blocked}. The table below tells each."
