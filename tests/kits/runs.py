"""Finished runs of agents, and copies of them that are cut or edited."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken

from coag.agent import CoagAgent
from coag.proof import ReplayReport, replay
from coag.schema import TraceRecord
from coag.tracing import RunFolder, read_trace

Body = dict[str, Any]
Bodies = list[Body]
Build = Callable[[Path | None], CoagAgent]
"""Builds an agent that keeps its logs in a folder."""


async def say(agent: BaseChatAgent, *texts: str) -> None:
    for text in texts:
        await agent.on_messages([TextMessage(content=text, source="user")], CancellationToken())


async def closed(agent: CoagAgent) -> RunFolder:
    folder = agent.run_folder
    assert folder is not None
    await agent.close()
    return folder


async def run_of(agent: CoagAgent, *texts: str) -> RunFolder:
    """The folder of a run with these messages."""
    await say(agent, *(texts or ("Go on.", "And again.")))
    return await closed(agent)


def records(run: RunFolder | Path) -> list[TraceRecord]:
    path = RunFolder(run).trace_path if isinstance(run, Path) else run.trace_path
    return [entry.body for entry in read_trace(path, lambda problem: None)]


def length(run: RunFolder | Path) -> int:
    return len(records(run))


async def check_same(run: RunFolder, build: Build | None = None, *, taken: int = 0) -> ReplayReport:
    """The run's replay is the same but for records that are taken from the trace."""
    report = await replay(run, agent=None if build is None else lambda: build(None))
    assert report.divergence is None, ascii(report.divergence)
    assert report.records == length(run) - taken
    return report


# ---- runs that are changed ----


def edited(run: RunFolder, edit: Callable[[Bodies], object]) -> RunFolder:
    """The run with its records changed, without hashes."""
    lines = [json.loads(line) for line in run.trace_path.read_text("utf-8").splitlines()]
    bodies: Bodies = [line["body"] for line in lines]
    edit(bodies)
    numbered = [{"v": 2, "seq": seq, "body": body} for seq, body in enumerate(bodies)]
    run.trace_path.write_text("".join(json.dumps(line) + "\n" for line in numbered), "utf-8")
    return run


def place(bodies: Bodies, n: int = 0, **fields: Any) -> int:
    """The place of the n-th record with these fields."""
    found = [
        number
        for number, body in enumerate(bodies)
        if all(body.get(name) == value for name, value in fields.items())
    ]
    return found[n]


def note(bodies: Bodies, at: int, about: str, text: str, cycle: int = 2) -> None:
    """Puts a note before a record."""
    made: dict[str, Any] = {
        "record": "note",
        "cycle": cycle,
        "about": about,
        "text": text,
        "details": {},
    }
    bodies.insert(at, {**made, "at": bodies[min(at, len(bodies) - 1)]["at"]})


def with_info(run: RunFolder, **fields: Any) -> RunFolder:
    """The run with other fields in its `run.json`."""
    info = json.loads(run.info_path.read_text())
    run.info_path.write_text(json.dumps({**info, **fields}))
    return run


def cut(run: RunFolder, kept: int, *, torn: bool = False) -> None:
    """Leaves so many lines of a trace, and half of the next where it is torn."""
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    half = lines[kept][: len(lines[kept]) // 2] if torn else b""
    run.trace_path.write_bytes(b"".join(lines[:kept]) + half)


def broken_copy(run: RunFolder, where: Path, kept: int, *, torn: bool = False) -> RunFolder:
    """A copy of a run that was interrupted after so many lines."""
    ignored = shutil.ignore_patterns("cycles")
    copy = RunFolder(Path(shutil.copytree(run.path, where / run.path.name, ignore=ignored)))
    cut(copy, kept, torn=torn)
    return copy
