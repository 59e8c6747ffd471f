"""Lies in a trace are found, and of what is missing, old or torn it is said what it limits."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kits.brains import brain, respond
from kits.lies import LIES, Lie
from kits.runs import closed, say, with_info
from kits.tampering import (
    EDITS,
    Bodies,
    Edit,
    bodies_of,
    butler,
    edit,
    fetch,
    fetching,
    forge,
    where,
)

from coag import CoagAgent, CoagContext
from coag.errors import TraceError
from coag.proof import Rule, examine, verify
from coag.schema import PHASES, Percept, PerceptKind, Phase, Trust
from coag.tracing import MemoryTrace, RunFolder, TraceProblem, read_trace

BROKEN = pytest.mark.broken_trace("it lies in the trace")
V1 = Path(__file__).parents[1] / "tracing" / "data" / "v1"
IN_A_FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def rules(run: Path, **anchors: Any) -> set[Rule]:
    return {violation.rule for violation in verify(run, **anchors)}


def remarks(run: Path) -> str:
    found = examine(run)
    assert found.violations == ()
    return " ".join(map(str, found.remarks))


def test_an_honest_run_holds_also_when_the_forger_writes_it_again(run: Path) -> None:
    found = examine(run)
    assert (found.violations, found.remarks) == ((), ())
    assert found.records == len(bodies_of(run))
    forge(run, bodies_of(run))
    assert examine(run) == found


@BROKEN
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.name)
def test_a_lie_is_found_though_the_chain_was_forged(run: Path, lie: Lie) -> None:
    bodies = bodies_of(run)
    lie.tell(bodies)
    forge(run, bodies)
    found = rules(run)
    assert not found & {Rule.CHAIN, Rule.NUMBER, Rule.SEAL}
    assert lie.rule in found


@BROKEN
@pytest.mark.parametrize("edited", EDITS, ids=lambda edited: edited.name)
def test_an_edit_of_the_file_is_found(run: Path, edited: Edit) -> None:
    edit(run, edited.change)
    assert edited.rule in rules(run)


# ---- seals, hashes and the form of lines ----


@BROKEN
def test_a_run_that_was_rewritten_as_a_whole_is_found_by_the_noted_hash(run: Path) -> None:
    noted = examine(run).head
    assert verify(run, head=noted) == []
    forge(run, json.loads(json.dumps(bodies_of(run)).replace("cup is here", "cap is here")))
    assert verify(run) == []
    (found,) = verify(run, head=noted)
    assert found.rule is Rule.SEAL
    assert noted in found.text


@BROKEN
def test_what_is_done_to_the_files_of_an_ended_run_is_found(run: Path, honest: Path) -> None:
    versions = ((3, b'"v":1', Rule.CHAIN), (0, b'"v":"1"', Rule.LINE))
    for number, version, rule in versions:
        shutil.copytree(honest, run, dirs_exist_ok=True)
        edit(run, lambda lines, n=number, v=version: [
            line.replace(b'"v":2', v) if at == n else line for at, line in enumerate(lines)
        ])  # fmt: skip
        assert rule in rules(run)
    problems: list[TraceProblem] = []
    with pytest.raises(TraceError, match="line 1"):
        list(read_trace(RunFolder(run).trace_path, problems.append))
    shutil.copytree(honest, run, dirs_exist_ok=True)
    with_info(RunFolder(run), seal=None)
    assert Rule.SEAL in rules(run)


@BROKEN
def test_a_trace_of_rubbish_is_reported_line_by_line_within_bounds(run: Path) -> None:
    edit(run, lambda lines: [b"\x1b[2Jrubbish\n"] * 3_000)
    found = examine(run)
    assert len(found.violations) == 1_000
    assert "more violations" in " ".join(map(str, found.remarks))


@BROKEN
def test_no_byte_of_a_trace_can_be_changed_unseen(run: Path) -> None:
    data = (run / "trace.jsonl").read_bytes()

    @settings(IN_A_FIXTURE, max_examples=25)
    @given(at=st.integers(0, len(data) - 1), byte=st.integers(0, 255))
    def changed(at: int, byte: int) -> None:
        (run / "trace.jsonl").write_bytes(data[:at] + bytes([byte]) + data[at + 1 :])
        assert bool(verify(run)) is (data[at] != byte)

    changed()


@BROKEN
def test_whatever_a_record_says_a_check_ends_in_sentences(run: Path) -> None:
    honest = bodies_of(run)
    places = [place for n, body in enumerate(honest) for place in _places(body, (n,))]
    values = st.one_of(
        st.none(), st.integers(-1, 9), st.text(max_size=3), st.just([]), st.just([1]), st.just({})
    )

    @IN_A_FIXTURE
    @given(place=st.sampled_from(places), value=values)
    def check(place: tuple[Any, ...], value: Any) -> None:
        bodies: Any = json.loads(json.dumps(honest))
        *way, last = place
        at: Any = bodies
        for step in way:
            at = at[step]
        at[last] = value
        forge(run, bodies)
        assert all(violation.text.endswith(".") for violation in verify(run))

    check()


def _places(value: Any, way: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The ways to everything within a JSON value."""
    if not isinstance(value, dict | list):
        return []
    inside = cast("dict[Any, Any] | list[Any]", value)
    inner = inside.items() if isinstance(inside, dict) else enumerate(inside)
    return [each for step, it in inner for each in ((*way, step), *_places(it, (*way, step)))]


def test_what_is_no_run_is_an_error_and_nothing_is_none(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no run's folder"):
        verify(tmp_path)
    assert verify([]) == []


# ---- runs that have not ended ----


async def test_a_run_that_is_open_holds_also_with_what_sensors_bring_and_a_torn_line(
    tmp_path: Path,
) -> None:
    agent = butler(tmp_path)
    await say(agent, "Fetch.")
    signal = Percept(
        id="sensor-1",
        at=agent.trace[-1].at,
        kind=PerceptKind.SIGNAL,
        source="bell",
        trust=Trust.UNTRUSTED,
        content="It rings.",
    )
    await agent.perceive(signal)
    await say(agent, "Fetch.")
    assert agent.run_folder is not None
    assert "has not ended" in remarks(agent.run_folder.path)
    copy = tmp_path / "copy" / agent.run_folder.path.name
    shutil.copytree(agent.run_folder.path, copy)
    await agent.close()
    edit(copy, lambda lines: [*lines[:-1], lines[-1][:20]])
    assert "truncated" in remarks(copy)


@BROKEN
def test_of_a_killed_run_it_is_said_that_its_last_action_may_have_acted(run: Path) -> None:
    with_info(RunFolder(run), ended_at=None, seal=None)
    bodies = bodies_of(run)
    forge(run, bodies[: where(bodies, "intent") + 1])
    assert "(fetch) is the last that is known: whether it had its effect, is not." in remarks(run)


@BROKEN
@pytest.mark.parametrize("thing", ["jug", "pan"])
def test_an_action_that_is_begun_again_though_its_outcome_is_not_known_is_found(
    thing: str, run: Path
) -> None:
    bodies = bodies_of(run)
    message = bodies[where(bodies, "percept", kind="message", n=-1)]
    unknown = {"id": "unknown", "source": "fetch", "kind": "unknown_outcome", "sets_goal": False}
    unknown |= {"content": "It is not known.", "arguments": {"thing": thing}, "begins_turn": False}
    bodies.insert(where(bodies, "intent", n=-1), message | unknown)
    forge(run, bodies)
    texts = [one.text for one in verify(run) if one.rule is Rule.INTENT]
    assert any("whose outcome was not known" in text for text in texts) is (thing == "jug")


# ---- records that are missing ----


@BROKEN
@pytest.mark.parametrize("phase", PHASES)
def test_a_phase_that_is_missing_is_found(phase: Phase, run: Path) -> None:
    bodies = bodies_of(run)
    del bodies[where(bodies, "outcome", phase=phase, cycle=1)]
    forge(run, bodies)
    found = rules(run)
    assert (Rule.EXECUTION if phase is Phase.EXECUTION else Rule.PHASE) in found
    assert (Rule.INTENT in found) is (phase is Phase.SELECTION)
    assert Rule.RECEIPT not in found


@BROKEN
def test_a_cycle_that_is_missing_is_found_as_that_and_the_next_ones_are_checked(run: Path) -> None:
    bodies = bodies_of(run)
    first = where(bodies, "outcome", phase="retrieval", cycle=2)
    del bodies[first : where(bodies, "outcome", phase="proposal", cycle=3)]
    receipt = bodies[where(bodies, "receipt", n=-1)]
    receipt["content"] = "gold"
    forge(run, bodies)
    found = verify(run)
    phase = next(violation for violation in found if violation.rule is Rule.PHASE)
    assert "proposal of cycle 3 is recorded where retrieval of cycle 2 must come next" in phase.text
    assert (Rule.RECEIPT, receipt["cycle"]) in {(one.rule, one.cycle) for one in found}


# ---- records in RAM ----


async def test_a_trace_in_ram_is_checked_as_far_as_it_reaches() -> None:
    model = brain(fetching("cup"), fetching("pan"), respond())
    agent = CoagAgent("maid", model, tools=[fetch], proposal="json")
    await say(agent, "Fetch.")
    records = agent.trace
    for limit in range(1, len(records) + 1):  # of one whose beginning was dropped, the rest
        short = MemoryTrace(limit)
        for record in records:
            short.write(record)
        assert verify(short.entries) == verify(short.records) == []
    changed = [
        record.model_copy(update={"content": "gold"}) if record.record == "receipt" else record
        for record in records
    ]
    assert {violation.rule for violation in verify(changed)} == {Rule.RECEIPT}
    assert {violation.rule for violation in verify(records, head="abc")} == {Rule.SEAL}


# ---- the domain's hook ----


class Counting(CoagContext[Any]):
    """A domain whose state counts more than it should."""

    def _update_state_from_function_result(self, state: Any, percept: Percept) -> Any:
        return state.model_copy(update={"tool_calls": state.tool_calls + 2})


def test_the_domains_hook_computes_what_was_recorded(run: Path) -> None:
    assert verify(run, hooks=CoagContext[Any]()) == []
    assert rules(run, hooks=Counting()) == {Rule.HOOK}


@BROKEN
async def test_a_patch_that_no_snapshot_follows_is_found_by_the_hook_alone(tmp_path: Path) -> None:
    agent = CoagAgent("maid", brain(fetching("cup")), tools=[fetch], proposal="json",
                      logs=tmp_path, max_tool_iterations=1)  # fmt: skip
    await say(agent, "Fetch.")
    run = (await closed(agent)).path
    bodies = bodies_of(run)
    (percept,) = [body for body in bodies if body.get("kind") == "tool_return"]
    percept["state_patch"] = {"successes": 40}
    forge(run, bodies)
    assert verify(run) == []
    assert rules(run, hooks=CoagContext[Any]()) == {Rule.HOOK}


# ---- version 1 ----


def older(bodies: Bodies) -> None:
    """As the first traces: without who ended a turn, and without what was queued."""
    for body in bodies:
        body.pop("ended_by", None)
        body.get("working_memory", {}).pop("queued", None)


def asked_again(bodies: Bodies, attempt: int = 1) -> None:
    place = where(bodies, "model_call", phase="reasoning")
    again = {**bodies[place], "id": "call-again"}
    bodies[place]["usage"] = {**bodies[place]["usage"], "prompt_tokens": 999}
    bodies.insert(place + 1, {**again, "attempt": attempt})


def changed_v1(to: Path, change: Callable[[Bodies], None], name: str = "desk") -> Path:
    """A run of version 1 with its records changed, which no hash shows."""
    (run,) = [run for run in V1.iterdir() if name in run.name]
    to = Path(shutil.copytree(run, to / run.name))
    lines = [json.loads(line) for line in (to / "trace.jsonl").read_text("utf-8").splitlines()]
    bodies: Bodies = [line["body"] for line in lines]
    change(bodies)
    numbered = [{**lines[0], "seq": seq, "body": body} for seq, body in enumerate(bodies)]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in numbered)
    (to / "trace.jsonl").write_text(text, "utf-8")
    return to


@BROKEN
@pytest.mark.parametrize("name", sorted(path.name.split("-")[2] for path in V1.iterdir()))
def test_a_run_of_version_1_holds_and_is_said_to_have_no_chain(name: str, tmp_path: Path) -> None:
    run = changed_v1(tmp_path, lambda bodies: None, name)
    assert "not chained" in remarks(run)
    assert examine(run).head == ""


@BROKEN
def test_what_version_1_may_lack_or_repeat_is_no_violation(tmp_path: Path) -> None:
    assert "not chained" in remarks(changed_v1(tmp_path / "older", older))
    repeated = "1 model calls of reasoning in cycle 1 are in no outcome"
    assert repeated in remarks(changed_v1(tmp_path / "again", asked_again))
    second = changed_v1(tmp_path, lambda bodies: asked_again(bodies, attempt=2))
    assert Rule.USAGE in rules(second)  # a second attempt belongs to what was used
