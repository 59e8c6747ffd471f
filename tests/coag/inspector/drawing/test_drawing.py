"""Drawings: well-formed, harmless, and saying what there is to see."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kits.aware_views import course, goal_view, stand
from kits.hostile import FORBIDDEN, HARM

from coag.inspector.drawing import (
    PROPERTIES,
    belief_svg,
    cost_svg,
    course_svg,
    goals_svg,
    why_svg,
)
from coag.inspector.views import (
    BeliefPoint,
    BeliefTrack,
    Course,
    CycleRow,
    Edge,
    Lane,
    Marks,
    Move,
    Node,
    NodeSort,
    Series,
    Span,
    Stand,
    WhyGraph,
)
from coag.schema import TokenUsage

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "title", "desc", "g", "defs", "path", "rect", "line", "text", "clipPath", "use"}
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
EVIL = ("$\\frac{1}{0}$ $_$ \\", HARM, "</text><script>x</script>", "\ud800\ufffe]]>", "字" * 99)


def track(
    believed: Sequence[Any],
    true: Sequence[Any] | None = None,
    *,
    path: str = "battery",
    numeric: bool = True,
) -> BeliefTrack:
    so = true if true is not None else [None] * len(believed)
    points = [
        BeliefPoint(cycle=cycle, believed=one, true=other)
        for cycle, (one, other) in enumerate(zip(believed, so, strict=True), 1)
    ]
    return BeliefTrack(
        path=path,
        true_path="" if true is None else "world",
        points=tuple(points),
        numeric=numeric,
        wrong=sum(p.believed != p.true for p in points) if true is not None else 0,
    )


def row(number: int, prompt: int, cached: int = 0, completion: int = 0) -> CycleRow:
    usage = TokenUsage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completion)
    return CycleRow(number=number, at=None, usage=usage)


def node(number: int, sort: NodeSort, label: str = "it", **more: Any) -> Node:
    return Node(id=f"n{number}", sort=sort, label=label, **more)


def parsed(svg: str) -> Element:
    """The drawing, once it is sure that it can stand in any page."""
    root = ElementTree.fromstring(svg.encode())
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= ELEMENTS | {"a"}
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.startswith(("{", "on", "style")), name
            if name in ("href", "clip-path"):
                assert re.fullmatch(r"#[\w-]+|url\(#p-\d+\)", value), value
            assert "javascript" not in value
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert all(name and name.startswith("p-") for name in ids)
    assert not FORBIDDEN & set(svg)
    assert root.find(f"{SVG}title") is not None
    assert root.find(f"{SVG}desc") is not None
    return root


def texts(root: Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def told(root: Element) -> str:
    return root.findtext(f"{SVG}desc") or ""


# ---- any text, any value ----


@given(st.lists(VALUES, max_size=6), st.text())
@example([HARM, EVIL[0], EVIL[3]], HARM)
@example([10**400, -(10**300), 1e308], "numbers")
def test_any_value_and_name_gives_a_harmless_drawing(values: list[Any], name: str) -> None:
    for numeric in (False, True):
        parsed(belief_svg(track(values, values[::-1], path=name, numeric=numeric), prefix="p"))


@given(st.lists(st.text(max_size=300), max_size=8), st.text())
@example(list(EVIL), HARM)
def test_any_text_gives_a_harmless_graph(words: list[str], link: str) -> None:
    sorts = list(NodeSort)
    nodes = tuple(
        node(n, sorts[n % len(sorts)], word, detail=word, note=word, link=link, good=n % 2 == 0)
        for n, word in enumerate(words)
    )
    edges = tuple(
        Edge(source=f"n{n}", target=f"n{m}", label=words[n], good=[None, True, False][m % 3])
        for n in range(len(words))
        for m in range(len(words) + 1)
    )
    graph = WhyGraph(cycle=1, nodes=nodes, edges=edges, sentences=tuple(words))
    parsed(why_svg(graph, prefix="p"))


@pytest.mark.parametrize("word", EVIL)
def test_words_of_a_field_are_no_formulas(word: str) -> None:
    root = parsed(belief_svg(track([word, "open"], numeric=False), prefix="p"))
    assert "open" in texts(root)
    assert len(max(texts(root), key=len)) <= 22


def test_huge_texts_are_cut() -> None:
    long = "x" * 10_000_000
    graph = WhyGraph(
        cycle=1, nodes=(node(1, NodeSort.CHOICE, long, detail=long, note=long),), edges=()
    )
    assert len(belief_svg(track([long], path=long, numeric=False), prefix="p")) < 6_000
    assert len(why_svg(graph, prefix="p")) < 3_000


def test_heaps_of_marks_are_taken_off() -> None:
    root = parsed(belief_svg(track(["e" + "\u0301" * 50], numeric=False), prefix="p"))
    assert "e\u0301\u0301" in texts(root)


# ---- what is seen ----


def test_belief_and_truth_are_told_in_words_and_in_the_legend() -> None:
    root = parsed(belief_svg(track([5, 4, 3], [5, 5, 3]), prefix="p"))
    assert {"believed", "true", "they differ", "cycle"} <= set(texts(root))
    assert told(root) == (
        "Believed from cycle 1 to 3: first 5, last 3. Belief and truth differ in 1 of 3 cycles."
    )
    assert root.get("role") == "img"
    assert root.get("viewBox")


def test_lines_differ_without_colour() -> None:
    root = parsed(belief_svg(track([5, 4, 3], [5, 5, 3]), prefix="p"))
    paths = [element for element in root.iter(f"{SVG}path") if element.get("stroke")]
    dashed = [one for one in paths if one.get("stroke-dasharray")]
    assert all("truth" in one.get("stroke", "") for one in dashed)
    assert dashed


def test_without_a_truth_there_is_one_line() -> None:
    root = parsed(belief_svg(track([5, 4]), prefix="p"))
    assert "true" not in texts(root)
    assert told(root).endswith("The environment does not tell what was so.")


def test_a_position_has_a_plot_for_each_of_its_numbers() -> None:
    root = parsed(belief_svg(track([[0, 1], None, [2, 3]], [[0, 1], [1, 1], [2, 2]]), prefix="p"))
    assert {"[0]", "[1]"} <= set(texts(root))


def test_many_words_share_a_row() -> None:
    words = [f"word {number}" for number in range(30)]
    found = texts(parsed(belief_svg(track(words, numeric=False), prefix="p")))
    assert "word 6" in found
    assert "word 7" not in found
    assert "others" in found


def test_yes_and_no_have_their_rows_though_only_one_was_met() -> None:
    found = texts(parsed(belief_svg(track([True, True], numeric=False), prefix="p")))
    assert {"false", "true"} <= set(found)


@pytest.mark.parametrize(
    ("value", "mark"),
    [(5, "5"), (-5, "\u22125"), (0.25, "0.25"), (1_234_000, "1234k"), (5e13, "50T")],
)
def test_a_field_that_never_changes_has_one_mark(value: float, mark: str) -> None:
    assert mark in texts(parsed(belief_svg(track([value] * 3), prefix="p")))


def test_tokens_are_summed_in_words() -> None:
    rows = [row(1, 1_000, 400, 50), row(2, 2_000, 0, 70)]
    root = parsed(cost_svg(rows, prefix="p"))
    assert {"prompt, from the cache", "prompt", "completion", "1", "2"} <= set(texts(root))
    assert told(root) == (
        "Cycles 1 to 2: 3,000 prompt tokens, 400 of them from the cache, and 120 completion tokens."
    )


def test_of_a_long_run_means_are_drawn() -> None:
    root = parsed(cost_svg([row(n, n) for n in range(1, 1_001)], prefix="p"))
    assert root.findtext(f"{SVG}title") == "Tokens by cycle, means of 7"


def test_cycles_without_tokens_are_drawn() -> None:
    parsed(cost_svg([row(1, 0), row(2, 0)], prefix="p"))


@pytest.mark.parametrize(
    "drawn",
    [
        lambda: belief_svg(track([]), prefix="p"),
        lambda: cost_svg([], prefix="p"),
        lambda: why_svg(WhyGraph(cycle=1, nodes=(), edges=()), prefix="p"),
    ],
)
def test_where_there_is_nothing_yet_the_drawing_says_so(drawn: Callable[[], str]) -> None:
    assert any(text.endswith(" yet.") for text in texts(parsed(drawn())))


def test_a_graph_tells_fates_in_words_and_links_to_the_page() -> None:
    graph = WhyGraph(
        cycle=3,
        nodes=(
            node(1, NodeSort.RECORD, "Red berries are bitter.", note="0.73"),
            node(2, NodeSort.REASONING, "Hungry."),
            node(3, NodeSort.CANDIDATE, "pick(red)", good=False, link="#proposal"),
            node(4, NodeSort.CANDIDATE, "pick(green)", good=True, link="//elsewhere"),
            node(5, NodeSort.CONSTRAINT, "bitter", good=False),
            node(6, NodeSort.CHOICE, "pick(green)", good=True),
        ),
        edges=(
            Edge(source="n1", target="n2"),
            Edge(source="n3", target="n5", label="forbids", good=False),
            Edge(source="n4", target="n6", label="chosen", good=True),
            Edge(source="n6", target="n1"),
            Edge(source="n1", target="nowhere"),
        ),
        sentences=("It picked a green one.",),
    )
    root = parsed(why_svg(graph, prefix="p", leads=lambda spot: f"#there-{spot}"))
    found = texts(root)
    assert {"candidate, rejected", "candidate, chosen", "0.73", "forbids", "choice"} <= set(found)
    assert [link.get("href") for link in root.iter(f"{SVG}a")] == ["#there-proposal"]
    assert root.get("role") == "group"
    assert told(root) == "It picked a green one."
    unlinked = parsed(why_svg(graph, prefix="p"))
    assert (unlinked.get("role"), unlinked.find(f".//{SVG}a")) == ("img", None)


def test_drawings_are_the_same_each_time_and_small() -> None:
    steps = track([n % 9 for n in range(500)], [n % 8 for n in range(500)])
    drawn = belief_svg(steps, prefix="p")
    assert drawn == belief_svg(steps, prefix="p")
    assert len(drawn) < 40_000
    assert len(cost_svg([row(n, 1_000 + n % 7, 100, 9) for n in range(500)], prefix="p")) < 40_000


def test_a_prefix_that_could_end_an_attribute_is_refused() -> None:
    for prefix in ("", '"', "a b", "1", "x" * 99):
        with pytest.raises(ValueError, match="begins no id"):
            cost_svg([], prefix=prefix)


def test_colours_are_the_page_s() -> None:
    drawn = belief_svg(track([5, 4, 3], [5, 5, 3]), prefix="p")
    assert set(re.findall(r"var\((--[\w-]+)", drawn)) <= set(PROPERTIES)
    assert not re.findall(r'(?:fill|stroke)="#', drawn)


# ---- where an agent stood ----


def words(root: Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_goals_are_drawn_with_what_they_serve_and_wait_for() -> None:
    goals = (*stand().goals, goal_view(9, status="completed"), goal_view(8, status="abandoned"))
    root = parsed(goals_svg(stand(goals=goals), prefix="p"))
    told = " ".join(words(root))
    assert "active, pursued now" in told
    assert "+ new" in told
    assert "2 completed, 1 abandoned: folded" in told
    dashed = [path for path in root.iter(f"{SVG}path") if path.get("stroke-dasharray") == "5 3"]
    assert len(dashed) == 1  # the windows wait for the hall
    indents = {float(box.get("x", "0")) for box in root.iter(f"{SVG}rect") if box.get("rx") == "6"}
    assert len(indents) == 2


def test_of_a_few_goals_closed_ones_are_drawn_too() -> None:
    goals = (goal_view(1, status="completed"), goal_view(2, status="abandoned"))
    assert {"goal 1", "goal 2"} <= set(words(parsed(goals_svg(stand(goals=goals), prefix="p"))))


def test_a_closed_goal_is_drawn_where_something_open_hangs_on_it() -> None:
    done = goal_view(1, description="done", status="completed")
    awaited = goal_view(2, description="given up", status="abandoned")
    fresh = goal_view(3, description="just done", status="completed", move=Move.CHANGED)
    folded = [goal_view(number, status="completed") for number in range(4, 9)]
    below = goal_view(9, description="below", parent=done.id, waits_for=(awaited.id,))
    goals = (done, awaited, fresh, *folded, below)
    told = words(parsed(goals_svg(stand(goals=goals), prefix="p")))
    assert {"done", "given up", "just done", "below", "5 completed: folded"} <= set(told)


@pytest.mark.parametrize("count", [0, 1, 40, 200])
def test_of_many_goals_the_weightiest_are_drawn_and_the_others_counted(count: int) -> None:
    goals = tuple(goal_view(number, priority=number / 200) for number in range(count))
    told = words(parsed(goals_svg(stand(goals=goals), prefix="p")))
    drawn = [text for text in told if text.startswith("goal ")]
    assert len(drawn) == min(count, 40)
    assert not drawn or drawn[-1] == f"goal {count - 1}"
    assert any("more open goals" in text for text in told) == (count > 40)


def test_goals_in_a_circle_that_a_log_may_tell_of_end() -> None:
    one = goal_view(1, parent=goal_view(2).id, waits_for=(goal_view(2).id,))
    two = goal_view(2, parent=goal_view(1).id, waits_for=(goal_view(1).id,))
    parsed(goals_svg(stand(goals=(one, two)), prefix="p"))


def test_a_course_marks_the_cycle_and_leads_to_the_others() -> None:
    svg = course_svg(course(), 4, prefix="p", leads=lambda cycle: f"#cycle-{cycle}")
    root = parsed(svg)
    assert [link.get("href") for link in root.iter(f"{SVG}a")] == [
        f"#cycle-{n}" for n in range(1, 5)
    ]
    told = words(root)
    assert {"Clean", "threat: Smoke", "failure (1)", "energy: 20 of 100"} <= set(told)
    assert "and 2 more that are not drawn" in told
    assert root.get("role") == "group"
    assert parsed(course_svg(course(), 4, prefix="p")).get("role") == "img"


def test_a_course_of_many_cycles_and_marks_stays_small() -> None:
    cycles = tuple(range(1, 501))
    spans = tuple(Span(first=at, last=at, state="active", weight=0.5) for at in cycles[::10])
    lanes = tuple(Lane(id=str(n), label=HARM, type="threat", spans=spans) for n in range(24))
    marks = tuple(
        Marks(type=f"type {n}", sticky=True, at=tuple((at, 3) for at in cycles)) for n in range(7)
    )
    series = tuple(Series(name="n", values=tuple(map(float, cycles))) for _ in range(8))
    made = course(
        cycles=cycles, goals=lanes, attention=lanes, marks=marks, series=series, series_of=8
    )
    svg = course_svg(made, 500, prefix="p")
    parsed(svg)
    assert len(svg) < 600_000


@pytest.mark.parametrize("evil", EVIL)
def test_hostile_names_of_goals_and_attention_stay_short_text(evil: str) -> None:
    def say(text: str) -> str:
        return f"{evil}{text}" if text else ""

    parsed(goals_svg(stand(say), prefix="p"))
    parsed(course_svg(course(say), 4, prefix="p"))


def test_nothing_to_draw_of_awareness_is_said() -> None:
    nothing = Stand(module="m", cycle=1)
    assert "There is no goal." in words(parsed(goals_svg(nothing, prefix="p")))
    empty = Course(module="m", cycles=())
    assert "There is no cycle yet." in words(parsed(course_svg(empty, 1, prefix="p")))


@given(st.lists(st.none() | st.floats(), max_size=6))
@example([1e308, -1e308, None, float("nan"), float("inf")])
def test_any_numbers_over_the_cycles_can_be_drawn(values: list[float | None]) -> None:
    series = (Series(name="n", values=tuple(values)),)
    cycles = tuple(range(1, len(values) + 1))
    root = parsed(course_svg(course(cycles=cycles, series=series), 1, prefix="p"))
    paths = " ".join(path.get("d", "") for path in root.iter(f"{SVG}path"))
    assert "nan" not in paths
    assert "inf" not in paths
