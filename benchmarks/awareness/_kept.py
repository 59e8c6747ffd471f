"""Keeping a state and restoring it."""

from __future__ import annotations

import asyncio
import gc
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from coag.awareness import AwarenessEngine, ConversationAdapter, SqliteStateStore, load_state

from ._langgraph import savers
from ._talk import BUDGET, TURNS, talked, turn
from ._timing import WARM_UP, Row, medians, timed


def checkpoints(rounds: int) -> tuple[int, dict[str, Row]]:
    """Bytes of the state of 50 turns; and each way of keeping and restoring it."""
    engine = talked(TURNS)
    text = engine.state.model_dump_json()
    plain = engine.state.model_dump(mode="json")
    restored: list[AwarenessEngine] = []
    said = engine.observe(turn(TURNS))

    gc.freeze()

    def restore() -> None:
        restored[:] = [AwarenessEngine(ConversationAdapter(), state=load_state(text))]

    with tempfile.TemporaryDirectory() as place, asyncio.Runner() as runner:
        store = SqliteStateStore(Path(place) / "states.sqlite")
        work: dict[str, Callable[[], object]] = {
            "coag: state to JSON bytes": lambda: engine.state.model_dump_json().encode(),
            "coag: JSON bytes to state": restore,
            "coag: first update after it": lambda: restored[0].update(said),
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
