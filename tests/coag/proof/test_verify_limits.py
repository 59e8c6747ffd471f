"""What a check tells of runs that are not over, are old, are torn, or are no files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, cast

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kits.brains import brain, respond
from kits.tampering import bodies_of, butler, edit, fetch, fetching, forge, honest_run

from coag import CoagAgent, CoagContext
from coag.errors import TraceError
from coag.proof import Rule, examine, verify
from coag.schema import Percept, PerceptKind, Trust
from coag.tracing import MemoryTrace

V1 = Path(__file__).parents[1] / "tracing" / "data" / "v1"
BROKEN = pytest.mark.broken_trace("it lies in the trace")


async def said(agent: CoagAgent, text: str = "Fetch.") -> None:
    await agent.on_messages([TextMessage(content=text, source="user")], CancellationToken())


def remarks(run: Path) -> str:
    found = examine(run)
    assert found.holds
    return " ".join(map(str, found.remarks))


async def test_a_run_that_goes_on_holds_and_is_said_to_go_on(tmp_path: Path) -> None:
    agent = butler(tmp_path)
    await said(agent)
    assert agent.run_folder is not None
    assert "has not ended" in remarks(agent.run_folder.path)
    await agent.close()


async def test_a_torn_last_line_is_told_of_and_no_violation(tmp_path: Path) -> None:
    agent = butler(tmp_path)
    await said(agent)
    assert agent.run_folder is not None
    copy = tmp_path / "copy" / agent.run_folder.path.name
    shutil.copytree(agent.run_folder.path, copy)
    await agent.close()
    edit(copy, lambda lines: [*lines[:-1], lines[-1][:20]])
    assert "truncated" in remarks(copy)


@BROKEN
async def test_a_torn_last_line_of_a_sealed_run_is_a_violation(tmp_path: Path) -> None:
    run = await honest_run(tmp_path)
    edit(run, lambda lines: [*lines[:-1], lines[-1][:20]])
    assert Rule.SEAL in {violation.rule for violation in verify(run)}


def test_runs_of_version_1_hold_and_are_said_to_have_no_chain() -> None:
    for run in V1.iterdir():
        assert "not chained" in remarks(run)
        assert examine(run).head == ""


@BROKEN
async def test_whoever_rewrites_all_of_it_is_found_by_the_hash_that_was_noted_down(
    tmp_path: Path,
) -> None:
    run = await honest_run(tmp_path)
    noted = examine(run).head
    assert verify(run, head=noted) == []
    bodies = bodies_of(run)
    text = json.dumps(bodies).replace("cup is here", "cap is here")
    forge(run, json.loads(text))
    assert verify(run) == []
    (found,) = verify(run, head=noted)
    assert found.rule is Rule.SEAL
    assert noted in found.text


@BROKEN
async def test_a_trace_that_was_removed_is_found(tmp_path: Path) -> None:
    run = await honest_run(tmp_path)
    (run / "trace.jsonl").unlink()
    assert Rule.SEAL in {violation.rule for violation in verify(run)}


def test_what_is_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no run's folder"):
        verify(tmp_path)


@BROKEN
async def test_a_trace_of_rubbish_is_told_of_line_by_line_within_bounds(tmp_path: Path) -> None:
    run = await honest_run(tmp_path)
    edit(run, lambda lines: [b"\x1b[2Jrubbish\n"] * 3_000)
    found = examine(run)
    assert len(found.violations) == 1_000
    assert "more violations" in " ".join(map(str, found.remarks))


@BROKEN
async def test_no_byte_of_a_trace_can_be_changed_unseen(tmp_path: Path) -> None:
    run = await honest_run(tmp_path)
    whole = (run / "trace.jsonl").read_bytes()

    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(at=st.integers(0, len(whole) - 1), byte=st.integers(0, 255))
    def changed(at: int, byte: int) -> None:
        (run / "trace.jsonl").write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        assert bool(verify(run)) is (whole[at] != byte)

    changed()


# ---- in RAM ----


async def test_a_trace_in_ram_is_checked_as_far_as_it_can_be() -> None:
    agent = CoagAgent("maid", brain(fetching("cup"), respond()), tools=[fetch], proposal="json")
    await said(agent)
    assert verify(agent.trace) == []
    changed = [
        record.model_copy(update={"content": "gold"}) if record.record == "receipt" else record
        for record in agent.trace
    ]
    assert {violation.rule for violation in verify(changed)} == {Rule.RECEIPT}


async def test_of_a_trace_whose_beginning_was_dropped_the_rest_is_checked() -> None:
    agent = CoagAgent(
        "maid", brain(fetching("cup"), fetching("pan"), respond()), tools=[fetch], proposal="json"
    )
    await said(agent)
    whole = agent.trace
    for limit in range(1, len(whole)):
        short = MemoryTrace(limit)
        for record in whole:
            short.write(record)
        assert verify(short.entries) == []
        assert verify(short.records) == []


def test_of_nothing_nothing_is_violated() -> None:
    assert verify([]) == []


# ---- the domain's hook ----


class Counting(CoagContext[Any]):
    """A domain whose state counts more than it should."""

    def _update_state_from_function_result(self, state: Any, percept: Percept) -> Any:
        return state.model_copy(update={"tool_calls": state.tool_calls + 2})


async def test_the_domains_hook_computes_what_was_recorded(tmp_path: Path) -> None:
    run = await honest_run(tmp_path)
    assert verify(run, hooks=CoagContext[Any]()) == []
    found = verify(run, hooks=Counting())
    assert {violation.rule for violation in found} == {Rule.HOOK}


@BROKEN
async def test_a_patch_that_no_snapshot_follows_is_found_by_the_hook_alone(tmp_path: Path) -> None:
    agent = CoagAgent(
        "maid",
        brain(fetching("cup")),
        tools=[fetch],
        proposal="json",
        logs=tmp_path,
        max_tool_iterations=1,
    )
    await said(agent)
    assert agent.run_folder is not None
    run = agent.run_folder.path
    await agent.close()
    bodies = bodies_of(run)
    (percept,) = [body for body in bodies if body.get("kind") == "tool_return"]
    percept["state_patch"] = {"successes": 40}
    forge(run, bodies)
    assert verify(run) == []
    assert {violation.rule for violation in verify(run, hooks=CoagContext[Any]())} == {Rule.HOOK}


async def test_what_a_sensor_tells_between_turns_is_no_violation(tmp_path: Path) -> None:
    agent = butler(tmp_path)
    await said(agent)
    await agent.perceive(
        Percept(
            id="sensor-1",
            at=agent.trace[-1].at,
            kind=PerceptKind.SIGNAL,
            source="bell",
            trust=Trust.UNTRUSTED,
            content="It rings.",
        )
    )
    await said(agent)
    assert agent.run_folder is not None
    assert "has not ended" in remarks(agent.run_folder.path)
    await agent.close()


@BROKEN
async def test_whatever_a_record_says_a_check_ends_in_sentences(tmp_path: Path) -> None:
    run = await honest_run(tmp_path)
    honest = bodies_of(run)
    places = [place for n, body in enumerate(honest) for place in _places(body, (n,))]
    values = st.one_of(
        st.none(), st.integers(-1, 9), st.text(max_size=3), st.just([]), st.just([1]), st.just({})
    )

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(place=st.sampled_from(places), value=values)
    def said(place: tuple[Any, ...], value: Any) -> None:
        bodies: Any = json.loads(json.dumps(honest))
        *way, last = place
        at: Any = bodies
        for step in way:
            at = at[step]
        at[last] = value
        forge(run, bodies)
        assert all(violation.text.endswith(".") for violation in verify(run))

    said()


def _places(value: Any, way: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The ways to everything within a JSON value."""
    if not isinstance(value, dict | list):
        return []
    inside = cast("dict[Any, Any] | list[Any]", value)
    inner = inside.items() if isinstance(inside, dict) else enumerate(inside)
    places: list[tuple[Any, ...]] = []
    for step, item in inner:
        places += [(*way, step), *_places(item, (*way, step))]
    return places
