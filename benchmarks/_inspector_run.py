"""A long run for measuring: the cycles of a real one, repeated with right numbers and hashes."""

import asyncio
import re
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from case_study.runner import CaseFolder, CaseRequest, run_case
from coag.schema import SystemClock
from coag.tracing import (
    RecordKind,
    RunFolder,
    RunInfo,
    TraceIndex,
    line_hash,
    list_runs,
    read_run,
)

_BODY = re.compile(rb'^\{"v":2,"seq":\d+,"hash":"\w*","body":(.*)\}\n$', re.DOTALL)
_IDS = re.compile(rb'"ids":\{[^{}]*\}')
_COUNT = re.compile(rb":(\d+)")
_NUMBERED = re.compile(rb'("(?:cycle|turn)":|(?:percept|intent|call|candidate)-)(\d+)')
_STARTED = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def long_run(folder: Path, cycles: int) -> RunFolder:
    """Leaves a run of so many cycles in a folder of logs; about 40 KB a cycle.

    The trace of a scripted robot is taken apart into its cycles, and those in which it acts in
    the world are repeated. Numbers of cycles, turns and ids go on; texts and times are those of
    the original.
    """
    with tempfile.TemporaryDirectory() as place:
        original = asyncio.run(_played(Path(place)))
        info = read_run(original.path)
        head, bodies = _cut(original)
    run = RunFolder.create(folder, _named(info, cycles))
    _write(run.trace_path, head, bodies, cycles)
    run.finish(at=SystemClock().now(), result={"success": True, "summary": "made for measuring"})
    return run


async def _played(place: Path) -> RunFolder:
    request = CaseRequest.model_validate(
        {"scenario": "energy-dilemma", "agent": "coag", "model": "scripted:impulsive"}
    )
    case = CaseFolder.create(place, request)
    await run_case(case)
    return next(iter(list_runs(case.path)))


def _named(info: RunInfo, cycles: int) -> RunInfo:
    changes = {"id": f"20261122-120000-long-{cycles:06}", "started_at": _STARTED, "recipe": None}
    return info.model_copy(update={**changes, "ended_at": None, "seal": None, "result": None})


def _cut(run: RunFolder) -> tuple[list[bytes], list[list[bytes]]]:
    """The bodies before the first cycle, and those of each cycle of six phases."""
    index = TraceIndex(run.trace_path)
    while index.extend():
        pass
    lines = run.trace_path.read_bytes().splitlines(keepends=True)
    stretches = [index.stretch(number) for number in range(index.stretches)]
    parts = [_bodies(lines[each.first : each.first + each.count]) for each in stretches]
    whole = [
        bodies
        for each, bodies in zip(stretches, parts, strict=True)
        if each.cycle
        and _outcomes(index, each.first, each.count) == 6
        and not any(b'"internal":true' in body for body in bodies)
    ]
    return parts[0], whole


def _outcomes(index: TraceIndex, first: int, count: int) -> int:
    return sum(index.kind(at) is RecordKind.OUTCOME for at in range(first, first + count))


def _bodies(lines: Sequence[bytes]) -> list[bytes]:
    found = [_BODY.match(line) for line in lines]
    return [match[1] for match in found if match is not None]


def _write(
    path: Path, head: Sequence[bytes], cycles: Sequence[Sequence[bytes]], count: int
) -> None:
    shift = len(cycles)
    seq, before = 0, ""
    with path.open("wb") as file:
        for body in _repeated(head, cycles, count, shift):
            before = line_hash(before, seq, body)
            file.write(b'{"v":2,"seq":%d,"hash":"%s","body":%s}\n' % (seq, before.encode(), body))
            seq += 1


def _repeated(
    head: Sequence[bytes], cycles: Sequence[Sequence[bytes]], count: int, shift: int
) -> Iterator[bytes]:
    yield from head
    for number in range(count):
        rounds, at = divmod(number, shift)
        for body in cycles[at]:
            yield _renumbered(body, rounds * shift) if rounds else body


def _renumbered(body: bytes, by: int) -> bytes:
    """Cycles and turns are so many later; ids so many times ten, that none comes twice."""

    def later(found: re.Match[bytes]) -> bytes:
        name, number = found[1], found[2]
        if name.startswith(b'"'):
            return b"%s%d" % (name, int(number) + by)
        return b"%s%0*d" % (name, len(number), int(number) + 10 * by)

    def more(found: re.Match[bytes]) -> bytes:
        return _COUNT.sub(lambda count: b":%d" % (int(count[1]) + 10 * by), found[0])

    return _IDS.sub(more, _NUMBERED.sub(later, body))
