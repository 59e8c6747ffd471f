"""Storing and restoring a state, beside LangGraph's checkpointers, which hold any state."""

from __future__ import annotations

import asyncio
import gc
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from coag.awareness import AwarenessEngine, ConversationAdapter, SqliteStateStore, load_state

from .talk import BUDGET, TURNS, WARM_UP, Row, medians, talked, timed, turn


def checkpoints(rounds: int) -> tuple[int, dict[str, Row]]:
    """Bytes of the state of 50 turns; and each way of keeping and restoring it."""
    engine = talked(TURNS)
    text = engine.state.model_dump_json()
    plain = engine.state.model_dump(mode="json")
    restored: list[AwarenessEngine] = []
    observation = engine.observe(turn(TURNS))

    gc.freeze()

    def restore() -> None:
        restored[:] = [AwarenessEngine(ConversationAdapter(), state=load_state(text))]

    with tempfile.TemporaryDirectory() as place, asyncio.Runner() as runner:
        store = SqliteStateStore(Path(place) / "states.sqlite")
        work: dict[str, Callable[[], object]] = {
            "coag: state to JSON bytes": lambda: engine.state.model_dump_json().encode(),
            "coag: JSON bytes to state": restore,
            "coag: first update after it": lambda: restored[0].update(observation),
            "coag: first inject after it": lambda: restored[0].inject(BUDGET),
            "coag, SQLite: save": lambda: runner.run(store.save("bench", engine.state)),
            "coag, SQLite: load": lambda: runner.run(store.load("bench")),
            "dict: json.dumps": lambda: json.dumps(plain).encode(),
            "dict: json.loads": lambda: json.loads(text),
            **savers(Path(place), plain),
        }
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
        for number in range(WARM_UP + rounds):
            for name, one in work.items():
                each = timed(one)
                if number >= WARM_UP:
                    taken[name].append(each)
        runner.run(store.close())
    return len(text.encode()), {name: medians(each) for name, each in taken.items()}


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
    calls: dict[str, Callable[[], object]] = {}
    for name, saver in {"RAM": in_memory_saver(), "SQLite": sqlite(db)}.items():
        put, get = put_and_get(base, saver, kept)
        calls |= {f"LangGraph, {name}: put": put, f"LangGraph, {name}: get": get}
    return calls


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
        loaded = saver.get_tuple(thread)
        if loaded.checkpoint["channel_values"]["state"]["step"] != kept["step"]:
            raise ValueError("LangGraph gave another state than was put.")

    put()
    return put, get
