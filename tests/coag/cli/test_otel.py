"""`coag otel`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kits.collector import running_collector

from coag._util.sockets import reserved_port
from coag.tracing import RunFolder

Say = Callable[..., Any]
LeaveRun = Callable[..., RunFolder]

pytestmark = pytest.mark.broken_trace("its runs are records that nobody lived through")


@pytest.fixture(autouse=True)
def sdk_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "false")


def test_a_run_is_sent_without_what_was_said(say: Say, coag_run: RunFolder) -> None:
    with running_collector() as collector:
        result = say("otel", "latest", "--endpoint", collector.url)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"{coag_run.path.name}: {len(collector.spans)} spans sent\n"
    sent = b"".join(collector.raw)
    assert b"Dirt lies east" not in sent
    assert b"What now?" not in sent


def test_content_is_sent_if_asked_for(say: Say, coag_run: RunFolder) -> None:
    with running_collector() as collector:
        say("otel", coag_run.path.name, "--endpoint", collector.url, "--with-content")
    sent = b"".join(collector.raw)
    assert b"Dirt lies east" in sent
    assert b"What now?" in sent


def test_all_runs_of_a_folder_are_sent_plain_ones_too(
    say: Say, coag_run: RunFolder, plain_run: RunFolder
) -> None:
    with running_collector() as collector:
        result = say("otel", "logs", "--endpoint", collector.url)
    assert [line.split(":")[0] for line in result.out.splitlines()] == [
        coag_run.path.name,
        plain_run.path.name,
    ]
    assert {span.trace_id for span in collector.spans} == {
        span.trace_id for span in collector.spans if not span.parent_span_id
    }


@pytest.mark.usefixtures("coag_run")
def test_a_collector_that_does_not_answer_is_a_sentence(say: Say) -> None:
    with reserved_port() as port:
        result = say("otel", "latest", "--endpoint", f"http://127.0.0.1:{port}")
    assert result.code == 2
    assert "No collector answers at" in result.err
    assert result.err.count("\n") == 1


def test_a_hostile_run_is_sent_and_shown_harmlessly(say: Say, leave_run: LeaveRun) -> None:
    leave_run([], "run-evil")
    with running_collector() as collector:
        result = say("otel", "run-evil", "--endpoint", collector.url)
    assert result.out == "run-evil: 0 spans sent\n"
