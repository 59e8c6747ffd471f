"""Memory that was in RAM only, given back by what the trace says was written to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coag.memory import (
    LongTermMemory,
    ProceduralMemory,
    ProcedureVersion,
    revoke_again,
    settled,
)
from coag.schema import Record, Written

from ._recorded import taking_up


async def recover_memory(
    written: Sequence[Written], memory: LongTermMemory | None, procedures: ProceduralMemory
) -> None:
    """Writes again what a run had written, where it is gone; memory on a disk has it still.

    Raises:
        TraceError: What is said to be written cannot be.
    """
    if memory is not None and await _recover_records(_still_held(written), memory):
        for line in written:
            if line.what == "revoked" and line.content.get("source") is not None:
                with taking_up(line, "content"):
                    await revoke_again(await memory.reaching_all(), line)
    _recover_versions([w for w in written if w.what == "procedure"], procedures)


def _still_held(written: Sequence[Written]) -> list[Written]:
    """The lines of the records that were not revoked after they were written."""
    held: list[Written] = []
    for line in written:
        if line.what == "record":
            held.append(line)
        elif line.what == "revoked":
            gone = set(line.content.get("records", ()))
            held = [one for one in held if one.id not in gone]
    return held


async def _recover_records(written: Sequence[Written], memory: LongTermMemory) -> bool:
    """Writes records again; False where there are none, or they are there still."""
    if not written or await memory.store.get([line.id for line in written]):
        return False
    for line in written:
        with taking_up(line, "content"):
            record = Record.model_validate(line.content)
        others = await memory.store.get([record.supersedes or "", *record.lineage.contradicts])
        old = [other for other in others if other.id == record.supersedes]
        if old:
            await memory.store.supersede(old[0].id, record)
        else:
            await memory.store.add([record])
        changed = settled(record, old, [other for other in others if other not in old])
        if changed:
            await memory.store.update(changed)
    return True


def _recover_versions(written: Sequence[Written], procedures: ProceduralMemory) -> None:
    state = procedures.save_state()
    histories: dict[str, list[Any]] = state["procedures"]
    for line in written:
        name, _, version = line.id.rpartition("@")
        history = histories.get(name, [])
        with taking_up(line, "id"):
            is_next = len(history) == int(version) - 1
        if is_next:
            with taking_up(line, "content"):
                ProcedureVersion.model_validate(line.content)
            histories[name] = [*history, line.content]
    if written:
        with taking_up(written[-1], "content"):
            procedures.load_state(state)
