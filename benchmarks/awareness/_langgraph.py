"""LangGraph's checkpointers, which hold any state; nothing here asks for them to be installed."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def installed() -> bool:
    """Whether both checkpointers are there; if not, it is said."""
    if find_spec("langgraph") and find_spec("langgraph.checkpoint.sqlite"):
        return True
    print(
        "LangGraph's rows are left out: install langgraph-checkpoint and "
        "langgraph-checkpoint-sqlite, best in an environment of their own, to have them.",
        file=sys.stderr,
    )
    return False


def savers(folder: Path, kept: Mapping[str, Any]) -> dict[str, Callable[[], object]]:
    """LangGraph's put and get of a state, in RAM and in SQLite; none where it is not installed."""
    if not installed():
        return {}
    base: Any = import_module("langgraph.checkpoint.base")
    sqlite: Any = import_module("langgraph.checkpoint.sqlite").SqliteSaver
    db = sqlite3.connect(str(folder / "langgraph.sqlite"), check_same_thread=False)
    found: dict[str, Callable[[], object]] = {}
    for name, saver in {"RAM": in_memory_saver(), "SQLite": sqlite(db)}.items():
        put, get = put_and_get(base, saver, kept)
        found |= {f"LangGraph, {name}: put": put, f"LangGraph, {name}: get": get}
    return found


def in_memory_saver() -> Any:
    """LangGraph's checkpointer in RAM."""
    return import_module("langgraph.checkpoint.memory").InMemorySaver()


def put_and_get(
    base: Any, saver: Any, kept: Mapping[str, Any]
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Keeps a state as the newest checkpoint of a thread, and reads the newest one."""
    thread = {"configurable": {"thread_id": "bench", "checkpoint_ns": ""}}
    version = 0

    def put() -> None:
        nonlocal version
        version += 1
        checkpoint = base.empty_checkpoint()
        checkpoint["channel_values"] = {"state": kept}
        checkpoint["channel_versions"] = {"state": version}
        metadata: dict[str, Any] = {"source": "loop", "step": version, "parents": {}}
        saver.put(thread, checkpoint, metadata, {"state": version})

    def get() -> None:
        found = saver.get_tuple(thread)
        if found.checkpoint["channel_values"]["state"]["step"] != kept["step"]:
            raise ValueError("LangGraph gave another state than was put.")

    put()
    return put, get
