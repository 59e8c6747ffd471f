"""The drawing of a situated agent's tools."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits.hostile import FORBIDDEN, HARM
from kits.situated_runs import situated_run
from kits.tracked import AT, index_of

from coag.inspector.tool_chart import tools_svg
from coag.inspector.tool_history import read_tools
from coag.inspector.views import ToolEvent, ToolEventSort, ToolHistory, ToolRow

pytestmark = pytest.mark.broken_trace("the run is made up")
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_each_tool_has_a_lane_with_its_values_and_signals(tmp_path: Path) -> None:
    svg = tools_svg(read_tools(index_of(situated_run(tmp_path))), "tools")
    shown = texts(svg)
    for text in ("pump", "lamp", "state", "OFF", "NOMINAL", "2579", "true", "ready", "1.02 h"):
        assert text in shown
    drawing = ElementTree.fromstring(svg)
    titles = [one.text for one in drawing.iter(f"{SVG}title")]
    assert titles.count("Waiting for signal 'ready' of 'pump'.") == 3
    assert "The pump was restarted." in titles
    described = drawing.find(f"{SVG}desc")
    assert described is not None
    assert "signals: 1, waits: 3, time-outs: 1, gaps: 1" in str(described.text)


@given(
    st.lists(
        st.tuples(
            st.floats(0, 1e9),
            st.sampled_from(ToolEventSort),
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            st.none() | st.floats(-10, 1e9),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_whatever_happened_is_drawn_within_the_picture(
    happened: list[tuple[float, ToolEventSort, Any, float | None]],
) -> None:
    happened.sort(key=lambda one: one[0])
    events = [
        ToolEvent(
            sort=sort,
            tool=HARM,
            at=AT + timedelta(seconds=second),
            cycle=1,
            name=HARM[:80],
            text=HARM,
            until=None if until is None else AT + timedelta(seconds=until),
        )
        for second, sort, _, until in happened
    ]
    steps = tuple((AT + timedelta(seconds=second), value) for second, _, value, _ in happened)
    row = ToolRow(tool=HARM, properties={HARM: steps}, events=tuple(events))
    svg = tools_svg(ToolHistory(rows=(row,), rows_of=1), "tools")
    assert not FORBIDDEN & set(svg)
    assert "nan" not in svg.replace("nano", "")
    assert "inf" not in "".join(
        str(value)
        for one in ElementTree.fromstring(svg).iter()
        for name, value in one.attrib.items()
        if name in ("x", "y", "d", "points", "width")
    )
    for one in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        assert 0 <= float(one.attrib["x"]) <= 1_080


def test_nothing_to_draw_is_an_empty_picture() -> None:
    assert texts(tools_svg(ToolHistory(), "tools")) == []
