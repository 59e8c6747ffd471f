"""Following runs by server-sent events."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from kits.hostile import hostile_run
from kits.situated_runs import properties

from coag.inspector import live
from coag.inspector.web import Inspector
from coag.schema import Redactor, RetrievalOutcome, SteppingClock, TraceRecord
from coag.tracing import RunFolder, RunInfo, TraceWriter, open_trace

pytestmark = [
    pytest.mark.broken_trace("its records are made up"),
    pytest.mark.timeout(240),  # the process that checks takes seconds to start at best
]
NOW = SteppingClock().now()
PATIENCE = httpx.Timeout(60)


def _cycle(number: int) -> TraceRecord:
    return RetrievalOutcome(cycle=number, at=NOW, query=f"cycle number {number}")


def _running(logs: Path) -> tuple[RunFolder, TraceWriter]:
    """A run with one cycle that is still recorded."""
    info = RunInfo(id="running", kind="coag", agent="writer", model="scripted", started_at=NOW)
    folder = RunFolder.create(logs, info, redactor=Redactor())
    trace = open_trace(folder, redactor=Redactor())
    trace.write(_cycle(1))
    trace.flush()
    return folder, trace


@contextmanager
def _events(url: str) -> Generator[Iterator[tuple[str, str]]]:
    """The events of an address: name and data, as they come."""

    def parsed(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
        name, data = "message", list[str]()
        for line in lines:
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
            elif not line and data:
                yield name, "\n".join(data)
                name, data = "message", []

    with httpx.stream("GET", url, timeout=PATIENCE) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield parsed(answer.iter_lines())


@contextmanager
def _followed(logs: Path, path: str) -> Generator[tuple[str, Iterator[tuple[str, str]]]]:
    with Inspector(logs) as inspector, _events(f"{inspector.url}/runs/{path}") as events:
        yield inspector.url, events


def _until(events: Iterator[tuple[str, str]], name: str, text: str = "") -> str:
    return next(data for found, data in events if found == name and text in data)


def test_a_page_receives_each_cycle_while_it_is_recorded(tmp_path: Path) -> None:
    folder, trace = _running(tmp_path)
    with _followed(tmp_path, "running/events?rows=1") as (_, events):
        _until(events, "fragment", 'id="')
        trace.write(_cycle(2))
        trace.flush()
        assert "/runs/running" in _until(events, "fragment", "/cycles/2")

        trace.close()
        folder.finish(at=NOW, redactor=Redactor())
        _until(events, "end")


def test_a_page_receives_the_tools_of_a_situated_agent(tmp_path: Path) -> None:
    folder, trace = _running(tmp_path)
    with _followed(tmp_path, "running/events?rows=1") as (_, events):
        _until(events, "fragment", 'id="')
        trace.write(properties(0, state="RAMPING"))
        trace.write(_cycle(2))
        trace.close()
        folder.finish(at=NOW, redactor=Redactor())
        assert "RAMPING" in _until(events, "fragment", '<div id="tools">')


def test_what_the_checks_find_is_marked_at_the_cycles_that_a_page_shows(tmp_path: Path) -> None:
    hostile_run(tmp_path, name="ended")
    with _followed(tmp_path, "ended/events?rows=99") as (_, events):
        sent = list(events)

    found = "".join(data for name, data in sent if name == "fragment")
    assert not {"\x1b"} & set(found)
    assert "<script>window" not in found
    marked = [data for name, data in sent if name == "fragment" and "line-finding" in data]
    assert 'id="row-' in marked[-1]
    assert "data-list" not in marked[-1]
    names = [name for name, _ in sent]
    assert names[-1] == "end"
    assert "checking" in names


def test_the_page_of_findings_is_loaded_again_when_they_are_there(tmp_path: Path) -> None:
    hostile_run(tmp_path, name="ended")
    with Inspector(tmp_path) as inspector:
        address = f"{inspector.url}/runs/ended"
        assert "events?only=checks" in httpx.get(f"{address}/findings", timeout=PATIENCE).text
        streams: list[list[str]] = []
        for _ in range(2):  # the second as that of a page which was made right before the end
            with _events(f"{address}/events?only=checks") as events:
                streams.append([name for name, _ in events])
        found = httpx.get(f"{address}/findings", timeout=PATIENCE).text
    assert (streams[0][-1], streams[1]) == ("reload", ["reload"])
    assert "events?only=checks" not in found
    assert "First went wrong" in found


def test_streams_end_when_the_inspector_does(tmp_path: Path) -> None:
    _, trace = _running(tmp_path)
    trace.close()
    with Inspector(tmp_path) as inspector:
        stream = httpx.stream("GET", f"{inspector.url}/runs/running/events", timeout=PATIENCE)
        answer = stream.__enter__()
        lines = answer.iter_lines()
        next(lines)
    assert not any("trouble" in line for line in lines)
    stream.__exit__(None, None, None)


def test_a_trace_that_is_cut_while_it_is_followed_is_shown_again(tmp_path: Path) -> None:
    folder = hostile_run(tmp_path, name="cut", ended=False)
    data = folder.trace_path.read_bytes()
    with _followed(tmp_path, "cut/events?rows=2") as (url, events):
        _until(events, "fragment")
        folder.trace_path.write_bytes(data[: data.index(b"\n") + 1])
        page = httpx.get(f"{url}/runs/cut", timeout=PATIENCE)
    assert "was cut while it was read" in page.text


def test_a_page_whose_run_is_replaced_by_a_shorter_one_is_loaded_again(tmp_path: Path) -> None:
    folder, trace = _running(tmp_path)
    data = folder.trace_path.read_bytes()
    for number in (2, 3):
        trace.write(_cycle(number))
    trace.close()
    with _followed(tmp_path, "running/events?rows=3") as (_, events):
        _until(events, "fragment")
        (tmp_path / "new").write_bytes(data)
        (tmp_path / "new").replace(folder.trace_path)
        assert _until(events, "reload") == ""


def test_a_page_is_followed_after_a_description_was_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_PATIENCE", 600.0)  # however long a busy machine leaves it so
    folder, trace = _running(tmp_path)
    data = folder.info_path.read_bytes()
    with _followed(tmp_path, "running/events?rows=1") as (url, events):
        _until(events, "fragment")
        folder.info_path.write_bytes(data[:40])
        answer = httpx.get(f"{url}/runs/running", timeout=PATIENCE)
        folder.info_path.write_bytes(data)
        trace.write(_cycle(2))
        trace.flush()
        assert "/cycles/2" in _until(events, "fragment", "/cycles/2")
    trace.close()
    assert answer.status_code == 422
    assert "run.json" in answer.text


def test_a_run_that_stays_unreadable_is_a_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_PATIENCE", 0.0)
    folder = hostile_run(tmp_path, name="broken", ended=False)
    with _followed(tmp_path, "broken/events") as (_, events):
        _until(events, "fragment")
        folder.info_path.write_bytes(b"{")
        assert "run.json" in _until(events, "trouble")


def test_more_pages_than_there_are_streams_have_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MOST", 1)
    hostile_run(tmp_path, name="followed", ended=False)
    with Inspector(tmp_path) as inspector:
        address = f"{inspector.url}/runs/followed/events"
        nobody = httpx.get(f"{inspector.url}/runs/nobody/events", timeout=PATIENCE)
        with _events(address) as events:
            _until(events, "fragment")
            refused = httpx.get(address, timeout=PATIENCE)
    assert (nobody.status_code, refused.status_code) == (404, 503)
    assert refused.headers["retry-after"] == "10"
