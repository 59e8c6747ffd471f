"""States in a trace that nobody can take up: a replay and a fork say where they stand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from kits.porters import TASK, porter

from coag.errors import ConfigurationError, TraceError
from coag.proof import fork, replay, why
from coag.tracing import RunFolder

pytestmark = pytest.mark.broken_trace("its states are changed on purpose")
Body = dict[str, Any]
BIG = [3, [1 << 80] * 625, None]
VERSION = {"version": 7}
HOSTILE: list[tuple[str, Any]] = [
    ("random", "x"),
    ("random", 5),
    ("random", [3, [1], None]),
    ("random", BIG),
    ("random", {}),
    ("procedures", {"state": 5}),
    ("procedures", {"state": {"x": 1}}),
    ("procedures", {"state": {"procedures": {"reasoning": [VERSION]}}}),
    ("detector", {"x": 5}),
    ("detector", {"x": {"key": 1}}),
    ("working_memory", {"goal": 5}),
    ("working_memory", {}),
]


async def changed(
    folder: Path, sort: str, change: Callable[[Body], None], number: int = 0
) -> RunFolder:
    """A porter's run with one record of a sort changed, by default the first."""
    agent = porter(log=str(folder / "calls.txt"), logs=str(folder / "logs"))
    await agent.on_messages([TextMessage(content=TASK, source="user")], CancellationToken())
    run = agent.run_folder
    assert run is not None
    await agent.close()
    lines = [json.loads(line) for line in run.trace_path.read_text("utf-8").splitlines()]
    change([line["body"] for line in lines if line["body"]["record"] == sort][number])
    run.trace_path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return run


@pytest.mark.parametrize(("field", "value"), HOSTILE)
async def test_a_hostile_snapshot_is_named_with_its_field(
    tmp_path: Path, field: str, value: Any
) -> None:
    run = await changed(tmp_path, "snapshot", lambda body: body.update({field: value}))
    with pytest.raises(TraceError, match=rf"'{field}' of the snapshot of cycle 0 cannot be read"):
        await replay(run)


@pytest.mark.parametrize(("field", "value"), HOSTILE[:3] + HOSTILE[5:7])
async def test_a_fork_refuses_a_hostile_snapshot(tmp_path: Path, field: str, value: Any) -> None:
    run = await changed(tmp_path, "snapshot", lambda body: body.update({field: value}))
    with pytest.raises(TraceError, match=rf"'{field}' of a snapshot cannot be read"):
        await fork(run, "2.reasoning")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"content": {}}, "'content' of the record that .* was written"),
        ({"what": "procedure", "id": "proposal@x"}, "'id' of the record that 'proposal@x'"),
        ({"what": "procedure", "id": "proposal@2"}, "'content' of the record that 'proposal@2'"),
    ],
)
async def test_a_fork_refuses_what_cannot_have_been_written(
    tmp_path: Path, changes: Body, said: str
) -> None:
    run = await changed(tmp_path, "written", lambda body: body.update(changes))
    with pytest.raises(TraceError, match=said):
        await fork(run, "4")


async def test_versions_that_are_no_numbers_are_named_where_the_cycle_begins(
    tmp_path: Path,
) -> None:
    hostile = {"procedures": {"versions": {"reasoning": None}}}
    run = await changed(tmp_path, "snapshot", lambda body: body.update(hostile), number=2)
    with pytest.raises(TraceError, match="'procedures' of the snapshot of cycle 1"):
        await replay(run)


async def test_a_goal_that_is_no_text_is_not_told(tmp_path: Path) -> None:
    def aimless(body: Body) -> None:
        body["working_memory"]["goal"] = 5

    run = await changed(tmp_path, "snapshot", aimless, number=2)
    assert why(run, 2).goal == ""
    with pytest.raises(ConfigurationError, match="goal"):
        await fork(run, "2")
