"""A situated agent's tools over time, read from a trace."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from kits.hostile import FORBIDDEN, HARM, hostile_run
from kits.situated_runs import perceived, properties, signal, situated_run, waited
from kits.tracked import AT, cycles_of, index_of, written_run

from coag.inspector import Inspector, tool_history, write_report
from coag.inspector.tool_history import read_tools
from coag.inspector.views import ToolEventSort, ToolHistory
from coag.schema import PerceptKind
from coag.tracing import RunFolder

pytestmark = pytest.mark.broken_trace("their records are made up")


def history_of(folder: RunFolder) -> ToolHistory:
    return read_tools(index_of(folder))


def test_properties_are_followed_from_value_to_value(tmp_path: Path) -> None:
    pump, lamp = history_of(situated_run(tmp_path)).rows
    assert (pump.tool, lamp.tool) == ("pump", "lamp")
    assert list(pump.properties) == ["state", "psi", "doors"]
    seconds = [((at - AT).total_seconds(), value) for at, value in pump.properties["state"]]
    assert seconds == [(0, "OFF"), (0.5, "RAMPING"), (61, "NOMINAL")]
    assert [value for _, value in pump.properties["psi"]] == [0, 2_579]
    assert len(pump.properties["doors"]) == 1


def test_waits_last_until_the_next_turn_and_what_came_is_beside_them(tmp_path: Path) -> None:
    pump, _ = history_of(situated_run(tmp_path)).rows
    assert [(one.sort.value, one.cycle) for one in pump.events] == [
        ("wait", 1),
        ("signal", 2),
        ("wait", 2),
        ("time-out", 3),
        ("gap", 3),
        ("wait", 3),
    ]
    waits = [one for one in pump.events if one.sort is ToolEventSort.WAIT]
    took = [one.until and one.until - one.at for one in waits]
    assert took == [timedelta(minutes=1), timedelta(hours=1), None]
    assert {one.name for one in pump.events} == {"", "ready", "restarted"}


def test_the_list_says_what_changed_and_leaves_out_what_did_not(tmp_path: Path) -> None:
    records = [properties(0, on=False), properties(1, on=False), properties(2, on=True)]
    events = history_of(written_run(tmp_path, records)).events
    assert [one.text for one in events] == ["on false", "on false → true"]


def test_a_run_of_another_agent_has_no_tools(tmp_path: Path) -> None:
    assert history_of(written_run(tmp_path, cycles_of("sweep", "sweep"))) == ToolHistory()


def test_what_waits_for_no_tool_is_shown_by_its_action(tmp_path: Path) -> None:
    outcome, *rest = waited(1, 1, 2)
    delegated = outcome.model_copy(update={"arguments": {}, "ended_by": "delegate"})
    (row,) = history_of(written_run(tmp_path, [delegated, *rest])).rows
    assert row.tool == "delegate"


def test_a_long_run_is_read_from_its_end_and_says_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_history, "_PERCEPTS", 300)
    records = [signal(second, "tick", f"clock_{second % 20}") for second in range(400)]
    history = history_of(written_run(tmp_path, records))
    assert (history.left_out, history.rows_of, len(history.rows)) == (100, 20, 12)
    assert (history.events_of, len(history.events)) == (300, 200)
    assert history.events[-1].at == AT + timedelta(seconds=399)


def test_the_page_and_the_report_of_a_run_show_them(tmp_path: Path) -> None:
    run = situated_run(tmp_path / "logs")
    other = hostile_run(tmp_path / "logs", name="other")
    with Inspector(tmp_path / "logs") as inspector:
        pages = [
            httpx.get(f"{inspector.url}/runs/{one.path.name}", trust_env=False, timeout=20).text
            for one in (run, other)
        ]
    assert "Tools over time" in pages[0]
    assert "state &#34;OFF&#34; → &#34;RAMPING&#34;" in pages[0]
    assert "It took 60.0" not in pages[0]
    assert "It took 1\N{NARROW NO-BREAK SPACE}min" in pages[0]
    assert "It had not ended." in pages[0]
    assert 'href="/runs/situated/cycles/3"' in pages[0]
    assert "Tools over time" not in pages[1]
    write_report([run, other], tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text().count('<h3 class="h3">Tools over time') == 1


def test_what_tools_say_does_no_harm(tmp_path: Path) -> None:
    name = "hostile"
    data = {"properties": {HARM: HARM, "deep": [[HARM] * 9], "big": 10**400}, "name": HARM}
    more = {"reason": HARM, "condition": {"tool": HARM}}
    kinds = (PerceptKind.PROPERTY_CHANGE, *PerceptKind)
    records = [
        perceived(second, kind, HARM, HARM, **data, **more) for second, kind in enumerate(kinds)
    ]
    run = written_run(tmp_path, [*records, *waited(90, 1, None, HARM)], name=name)
    assert history_of(run).rows
    with Inspector(tmp_path) as inspector:
        answer = httpx.get(f"{inspector.url}/runs/{name}", trust_env=False, timeout=20)
    assert answer.status_code == 200
    assert "Tools over time" in answer.text
    assert not FORBIDDEN & set(answer.text)
    assert "<script>window" not in answer.text
    assert "<img" not in answer.text


@pytest.mark.parametrize("data", [None, [], "x", {"properties": [1], "condition": 3, "name": 9}])
def test_percepts_of_another_form_are_shown_by_their_text(tmp_path: Path, data: object) -> None:
    records = [
        perceived(second, kind).model_copy(update={"data": data})
        for second, kind in enumerate(PerceptKind)
    ]
    events = history_of(written_run(tmp_path, records)).events
    assert [one.sort.value for one in events] == ["signal", "time-out", "gap"]
