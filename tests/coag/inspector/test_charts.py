"""Drawings: well-formed, harmless, and saying what there is to see."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kits.aware_views import history
from kits.hostile import FORBIDDEN, HARM

from coag.inspector.beliefs import BeliefPoint, BeliefTrack
from coag.inspector.charts import belief_svg, cost_svg, history_svg, why_svg
from coag.inspector.pages import static_text
from coag.inspector.views import CycleRow, Lane, LaneSpan, ModuleHistory, StateSeries
from coag.inspector.why import Edge, Node, NodeSort, WhyGraph
from coag.schema import TokenUsage

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = {"svg", "title", "desc", "g", "path", "polyline", "circle", "rect", "text", "a"}
VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
EVIL = ("$\\frac{1}{0}$ $_$ \\", HARM, "</text><script>x</script>", "\ud800\ufffe]]>", "字" * 99)
PROPERTIES = set(re.findall(r"(--plot-\w+):", static_text("inspector.css")))


def nowhere(spot: object) -> str:
    return ""


def track(believed: Sequence[Any], true: Sequence[Any] = (), **fields: Any) -> BeliefTrack:
    so = true or [None] * len(believed)
    points = tuple(
        BeliefPoint(cycle=cycle, believed=one, true=other)
        for cycle, (one, other) in enumerate(zip(believed, so, strict=True), 1)
    )
    wrong = sum(point.believed != point.true for point in points) if true else 0
    defaults: dict[str, Any] = {"path": "battery", "numeric": True} | fields
    return BeliefTrack(points=points, true_path="world" if true else "", wrong=wrong, **defaults)


def row(number: int, prompt: int, cached: int = 0, completion: int = 0) -> CycleRow:
    usage = TokenUsage(prompt_tokens=prompt, cached_tokens=cached, completion_tokens=completion)
    return CycleRow(number=number, at=None, usage=usage)


def node(number: int, sort: NodeSort, label: str = "it", **more: Any) -> Node:
    return Node(id=f"n{number}", sort=sort, label=label, **more)


def parsed(svg: str) -> Element:
    """The drawing, once it is sure that it can stand in any page."""
    root = ElementTree.fromstring(svg.encode())
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= ELEMENTS
    for element in root.iter():
        for name, value in element.attrib.items():
            assert not name.startswith(("{", "on", "style")), name
            if name == "href":
                assert re.fullmatch(r"#[\w-]+", value), value
            assert "javascript" not in value
            assert "nan" not in value
            assert not re.search(r"\binf\b", value)
    ids = [element.get("id", "") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert all(name.startswith("p-") for name in ids)
    assert not FORBIDDEN & set(svg)
    assert set(re.findall(r"var\((--[\w-]+)", svg)) <= PROPERTIES
    assert not re.findall(r'(?:fill|stroke)="#', svg)
    return root


def texts(root: Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


# ---- any text, any value ----


@given(st.lists(VALUES, max_size=6), st.text())
@example([HARM, EVIL[0], EVIL[3]], HARM)
@example([10**400, -(10**300), 1e308], "numbers")
def test_any_value_and_name_gives_a_harmless_drawing(values: list[Any], name: str) -> None:
    for numeric in (False, True):
        parsed(belief_svg(track(values, values[::-1], path=name, numeric=numeric), "p"))


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
    parsed(why_svg(graph, "p", nowhere))


@given(st.lists(st.none() | st.floats(), max_size=6), st.sampled_from(EVIL))
@example([1e308, -1e308, None, float("nan"), float("inf")], HARM)
def test_any_numbers_and_names_over_the_cycles_can_be_drawn(
    values: list[float | None], evil: str
) -> None:
    def say(text: str) -> str:
        return f"{evil}{text}" if text else ""

    series = (StateSeries(name=evil, values=tuple(values)),)
    cycles = tuple(range(1, len(values) + 1))
    parsed(history_svg(history(say, cycles=cycles, series=series), 1, "p", nowhere))


@pytest.mark.parametrize("word", EVIL)
def test_words_of_a_field_are_no_formulas(word: str) -> None:
    found = texts(parsed(belief_svg(track([word, "open"], numeric=False), "p")))
    assert "open" in found
    assert len(max(found, key=len)) <= 22


def test_drawings_of_much_are_small_and_the_same_each_time() -> None:
    long = "x" * 10_000_000
    nodes = (node(1, NodeSort.CHOICE, long, detail=long, note=long),)
    assert len(belief_svg(track([long], path=long, numeric=False), "p")) < 6_000
    assert len(why_svg(WhyGraph(cycle=1, nodes=nodes, edges=()), "p", nowhere)) < 3_000
    steps = track([n % 9 for n in range(500)], [n % 8 for n in range(500)])
    drawn = belief_svg(steps, "p")
    assert drawn == belief_svg(steps, "p")
    assert len(drawn) < 40_000
    assert len(cost_svg([row(n, 1_000 + n % 7, 100, 9) for n in range(500)], "p")) < 40_000
    cycles = tuple(range(1, 501))
    spans = tuple(LaneSpan(first=at, last=at, state="active") for at in cycles[::10])
    kinds = ("goal", "transition", "attention")
    lanes = tuple(Lane(kind=kind, label=HARM, spans=spans) for kind in kinds for _ in range(24))
    series = tuple(StateSeries(name="n", values=tuple(map(float, cycles))) for _ in range(8))
    many = history(cycles=cycles, lanes=lanes, series=series)
    assert len(history_svg(many, 500, "p", nowhere)) < 800_000


@pytest.mark.parametrize("prefix", ["", '"', "a b", "1", "x" * 99])
def test_a_prefix_that_could_end_an_attribute_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="begins no id"):
        cost_svg([], prefix)


# ---- what is seen ----


def test_belief_and_truth_differ_in_words_and_without_colour() -> None:
    root = parsed(belief_svg(track([5, 4, 3], [5, 5, 3]), "p"))
    assert {"believed", "true", "they differ", "cycle"} <= set(texts(root))
    assert root.findtext(f"{SVG}desc") == (
        "Believed from cycle 1 to 3: first 5, last 3. Belief and truth differ in 1 of 3 cycles."
    )
    assert root.get("role") == "img"
    lines = [element for element in root.iter(f"{SVG}polyline")]
    dashed = {one.get("stroke") for one in lines if one.get("stroke-dasharray")}
    assert dashed == {"var(--plot-truth)"}


def test_a_position_has_a_plot_for_each_of_its_numbers() -> None:
    root = parsed(belief_svg(track([[0, 1], None, [2, 3]], [[0, 1], [1, 1], [2, 2]]), "p"))
    assert {"[0]", "[1]"} <= set(texts(root))


def test_values_that_are_words_have_rows_of_which_many_share_one() -> None:
    words = [f"word {number}" for number in range(30)]
    found = texts(parsed(belief_svg(track(words, numeric=False), "p")))
    assert {"word 6", "others"} <= set(found)
    assert "word 7" not in found
    yes = texts(parsed(belief_svg(track([True, True], numeric=False), "p")))
    assert {"false", "true"} <= set(yes)


@pytest.mark.parametrize(
    ("value", "mark"),
    [(-5, "\u22125"), (0.25, "0.25"), (1_234_000, "1234k"), (5e13, "50T")],
)
def test_a_field_that_never_changes_has_one_mark(value: float, mark: str) -> None:
    assert mark in texts(parsed(belief_svg(track([value] * 3), "p")))


def test_tokens_are_summed_in_words_and_of_a_long_run_means_are_drawn() -> None:
    root = parsed(cost_svg([row(1, 1_000, 400, 50), row(2, 2_000, 0, 70)], "p"))
    assert {"prompt, from the cache", "prompt", "completion", "1", "2"} <= set(texts(root))
    assert root.findtext(f"{SVG}desc") == (
        "Cycles 1 to 2: 3,000 prompt tokens, 400 of them from the cache, and 120 completion tokens."
    )
    long = parsed(cost_svg([row(n, n) for n in range(1, 1_001)], "p"))
    assert long.findtext(f"{SVG}title") == "Tokens by cycle, means of 7"


@pytest.mark.parametrize(
    "drawn",
    [
        belief_svg(track([]), "p"),
        cost_svg([], "p"),
        why_svg(WhyGraph(cycle=1, nodes=(), edges=()), "p", nowhere),
        history_svg(ModuleHistory(module="m", cycles=()), 1, "p", nowhere),
    ],
)
def test_where_there_is_nothing_yet_the_drawing_says_so(drawn: str) -> None:
    assert any(text.endswith(" yet.") for text in texts(parsed(drawn)))


def test_a_graph_shows_outcomes_in_words_and_links_to_the_page() -> None:
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
    root = parsed(why_svg(graph, "p", lambda spot: f"#there-{spot}"))
    found = texts(root)
    assert {"candidate, rejected", "candidate, chosen", "0.73", "forbids", "choice"} <= set(found)
    assert [link.get("href") for link in root.iter(f"{SVG}a")] == ["#there-proposal"]
    assert root.get("role") == "group"
    assert root.findtext(f"{SVG}desc") == "It picked a green one."
    unlinked = parsed(why_svg(graph, "p", nowhere))
    assert (unlinked.get("role"), unlinked.find(f".//{SVG}a")) == ("img", None)


def test_a_history_marks_the_cycle_and_leads_to_the_others() -> None:
    root = parsed(history_svg(history(), 4, "p", lambda cycle: f"#cycle-{cycle}"))
    links = [link.get("href") for link in root.iter(f"{SVG}a")]
    assert links == [f"#cycle-{n}" for n in range(1, 5)]
    assert {"Clean", "threat: Smoke", "failure", "energy: 20 of 100"} <= set(texts(root))
    assert root.get("role") == "group"
    assert parsed(history_svg(history(), 4, "p", nowhere)).get("role") == "img"
