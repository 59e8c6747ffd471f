"""What a decision rested on, as a graph that is read from left to right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement

from coag.inspector.views import Edge, Node, NodeSort, WhyGraph

from .canvas import Ink, add_note, brief, drawing, label, width_of, wrapped, written

_COLUMNS: tuple[tuple[str, tuple[NodeSort, ...]], ...] = (
    ("it rested on", (NodeSort.PERCEPT, NodeSort.RECORD, NodeSort.PROCEDURE)),
    ("understood as", (NodeSort.REASONING,)),
    ("considered", (NodeSort.CANDIDATE,)),
    ("came to", (NodeSort.CHOICE, NodeSort.CONSTRAINT)),
)
_WIDE = 184.0
_ROOM = 64.0
"""Between two columns."""
_GAP = 12.0
"""Between two nodes of a column."""
_TOP = 30.0
_EDGE = 2.0
"""Room around everything."""
_PAD = 10.0
_SIZE = 12.0
_SMALL = 10.0
_LINE = 15.0
_LINES = 3
_LABEL = 120
_EDGE_LABEL = 18
_FRAGMENT = re.compile(r"#[A-Za-z][\w-]{0,60}")
_SHARES = (0.5, 0.7, 0.3, 0.85, 0.15)
"""Where on an edge its label may stand: those of neighbours do not meet."""


@dataclass(slots=True)
class _Box:
    """A node with its place."""

    node: Node
    lines: list[str]
    left: float
    top: float = 0.0

    @property
    def height(self) -> float:
        return _PAD + _SMALL + 4 + len(self.lines) * _LINE + _PAD - 4

    @property
    def middle(self) -> float:
        return self.top + self.height / 2


def why_svg(graph: WhyGraph, *, prefix: str, leads: Callable[[str], str] | None = None) -> str:
    """The decision of a cycle as a small graph.

    It has a size of its own, in which its texts can be read: the page lets it be scrolled.

    Args:
        graph: What took part; with no nodes the drawing says so.
        prefix: What its ids begin with, unique in the page: letters, digits and hyphens.
        leads: Where a spot of the cycle's page is found, by its id; None for no links.

    Returns:
        An `<svg>` element.
    """
    linked = leads is not None and any(_FRAGMENT.fullmatch(node.link) for node in graph.nodes)
    columns = _columns(graph)
    boxes = {box.node.id: box for _, column in columns for box in column}
    height = max((column[-1].top + column[-1].height for _, column in columns), default=_TOP + 30)
    width = max(len(columns), 3) * (_WIDE + _ROOM) - _ROOM + 2 * _EDGE
    root = drawing(
        width,
        height + _EDGE + 1,
        prefix=prefix,
        title=f"What the decision of cycle {graph.cycle} rested on",
        told=" ".join(graph.sentences[:8]) or "Nothing is known of it.",
        role="group" if linked else "img",
        grows=False,
    )
    if not boxes:
        add_note(root, "Nothing was decided yet.", (_EDGE, _TOP))
    for title, column in columns:
        add_note(root, title, (column[0].left, 14))
    _draw_edges(root, graph.edges, boxes)
    for box in boxes.values():
        _draw_node(root, box, leads)
    return written(root)


# ---- places ----


def _columns(graph: WhyGraph) -> list[tuple[str, list[_Box]]]:
    """The columns that hold anything, with every node in its place."""
    columns: list[tuple[str, list[_Box]]] = []
    for title, sorts in _COLUMNS:
        left = _EDGE + len(columns) * (_WIDE + _ROOM)
        nodes = sorted(
            (n for n in graph.nodes if n.sort in sorts), key=lambda n: sorts.index(n.sort)
        )
        if nodes:
            columns.append((title, [_Box(node, _lines(node), left) for node in nodes]))
    tallest = max((_tall(column) for _, column in columns), default=0.0)
    placed: dict[str, _Box] = {}
    for number, (_, column) in enumerate(columns):
        if number == len(columns) - 1 and number:
            column.sort(key=lambda box: _pull(box.node.id, graph.edges, placed))
        top = _TOP + (tallest - _tall(column)) / 2
        for box in column:
            box.top = top
            top += box.height + _GAP
            placed[box.node.id] = box
    return columns


def _tall(column: Sequence[_Box]) -> float:
    return sum(box.height for box in column) + _GAP * (len(column) - 1)


def _pull(node: str, edges: Sequence[Edge], placed: Mapping[str, _Box]) -> float:
    """The mean height of what leads to a node, so that few edges cross."""
    found = [placed[e.source].middle for e in edges if e.target == node and e.source in placed]
    return sum(found) / len(found) if found else 0.0


def _lines(node: Node) -> list[str]:
    text = label(node.label, _LABEL) or "(nothing)"
    return wrapped(text, _WIDE - 2 * _PAD - 2, _SIZE, _LINES)


# ---- drawing ----


def _draw_node(root: Element, box: _Box, leads: Callable[[str], str] | None) -> None:
    node = box.node
    parent = root
    if leads is not None and _FRAGMENT.fullmatch(node.link):
        parent = SubElement(root, "a", {"href": leads(node.link.removeprefix("#"))})
    group = SubElement(parent, "g", {"class": f"node {node.sort.value}"})
    SubElement(group, "title").text = label(node.detail or node.label, 400)
    place = {"x": brief(box.left), "y": brief(box.top), "rx": "6"}
    size = {"width": brief(_WIDE), "height": brief(box.height)}
    SubElement(group, "rect", {**place, **size, "fill": Ink.PAPER.paint, **_border(node)})
    left = {"x": brief(box.left + _PAD)}
    at = box.top + _PAD + _SMALL - 1
    small = {"font-size": brief(_SMALL), "fill": _ink(node).paint, "letter-spacing": "0.4"}
    SubElement(group, "text", {**left, "y": brief(at), **small}).text = _heading(node)
    if node.note:
        right = {"x": brief(box.left + _WIDE - _PAD), "text-anchor": "end"}
        small["fill"] = Ink.TEXT.paint
        text = SubElement(group, "text", {**right, "y": brief(at), **small})
        text.text = label(node.note, _EDGE_LABEL)
    at += 4
    for line in box.lines:
        at += _LINE
        text = {"font-size": brief(_SIZE), "fill": Ink.TEXT.paint}
        SubElement(group, "text", {**left, "y": brief(at - 1), **text}).text = line


def _heading(node: Node) -> str:
    """What it is, and in words what its border says."""
    if node.good is None or node.sort is NodeSort.CONSTRAINT:
        return node.sort.value
    if node.sort is NodeSort.CHOICE:
        return "choice" if node.good else "impasse"
    return f"{node.sort.value}, {'chosen' if node.good else 'rejected'}"


def _ink(node: Node) -> Ink:
    if node.good is None:
        return Ink.QUIET
    return Ink.GOOD if node.good else Ink.BAD


def _border(node: Node) -> dict[str, str]:
    if node.good is None:
        return {"stroke": Ink.GRID.paint, "stroke-opacity": "0.7"}
    if node.good:
        return {"stroke": Ink.GOOD.paint, "stroke-width": "2"}
    return {"stroke": Ink.BAD.paint, "stroke-width": "1.5", "stroke-dasharray": "5 3"}


def _draw_edges(root: Element, edges: Sequence[Edge], boxes: Mapping[str, _Box]) -> None:
    known = [edge for edge in edges if edge.source in boxes and edge.target in boxes]
    lines = SubElement(root, "g", {"fill": "none"})
    arriving: dict[str, int] = {}
    for edge in sorted(known, key=lambda one: one.good is True):
        source, target = boxes[edge.source], boxes[edge.target]
        if target.left <= source.left:
            continue
        number = arriving[edge.target] = arriving.get(edge.target, -1) + 1
        start = (source.left + _WIDE, source.middle)
        end = (target.left - 1, target.middle)
        _draw_line(lines, edge, start, end)
        text = label(edge.label, _EDGE_LABEL)
        if text:
            _draw_words(root, text, _between(start, end, _SHARES[number % len(_SHARES)]))


def _draw_line(
    group: Element, edge: Edge, start: tuple[float, float], end: tuple[float, float]
) -> None:
    (x, y), (to_x, to_y) = start, end
    bend = _ROOM * 0.55
    d = f"M{brief(x)} {brief(y)}C{brief(x + bend)} {brief(y)} {brief(to_x - bend)} {brief(to_y)} "
    d += f"{brief(to_x - 6)} {brief(to_y)}"
    look = {"stroke": Ink.QUIET.paint, "stroke-opacity": "0.7", "stroke-width": "1.2"}
    if edge.good is not None:
        ink = Ink.GOOD if edge.good else Ink.BAD
        look = {"stroke": ink.paint, "stroke-width": "2.2" if edge.good else "1.4"}
        look |= {} if edge.good else {"stroke-dasharray": "5 3"}
    SubElement(group, "path", {"d": d, **look})
    tip = f"M{brief(to_x)} {brief(to_y)}l-7 -3.5v7z"
    SubElement(group, "path", {"d": tip, "fill": look["stroke"]})


def _between(
    start: tuple[float, float], end: tuple[float, float], share: float
) -> tuple[float, float]:
    """A place on the curve from one end to the other."""
    (x, y), (to_x, to_y) = start, end
    smooth = share * share * (3 - 2 * share)
    return x + (to_x - x) * share, y + (to_y - y) * smooth


def _draw_words(root: Element, text: str, place: tuple[float, float]) -> None:
    """A label on an edge, on a piece of the page's ground."""
    wide = width_of(text, _SMALL) + 6
    x, y = place
    box = {"x": brief(x - wide / 2), "y": brief(y - 7), "width": brief(wide), "height": "14"}
    SubElement(root, "rect", {**box, "rx": "3", "fill": Ink.PAPER.paint})
    look = {"font-size": brief(_SMALL), "fill": Ink.TEXT.paint, "text-anchor": "middle"}
    SubElement(root, "text", {"x": brief(x), "y": brief(y + 3.5), **look}).text = text
