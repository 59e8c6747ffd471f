"""What a plain run's recipe makes, as something that can be driven turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from coag.compat import Recorder, stock_run
from coag.errors import ResumeError
from coag.schema import ModelCall, TraceRecord, TurnStart
from coag.tracing import RunFolder

from ._sink import CheckingSink

_WRITTEN_BY_DOUBLES = ("model_call", "actions")
"""Records that are written by what is put around a model client and around tools."""


def driven(
    made: object,
    run: RunFolder,
    recorder: Recorder,
    records: Callable[[], Iterable[TraceRecord]],
) -> Any:
    """What the recipe's function made, as a `PlainRun`; any chat agent of AutoGen becomes one.

    Raises:
        ResumeError: It is neither, or the run was written down without turns.
    """
    if callable(getattr(made, "say", None)) and callable(getattr(made, "repeat", None)):
        return made
    agent = stock_run(made, recorder, records)
    if agent is None:
        raise ResumeError(
            f"The recipe of {run.path} makes a {type(made).__name__}. Its function of a client, a "
            "workbench and a recorder must make a chat agent of AutoGen, or something with the "
            "methods say(text) and repeat(about, text)."
        )
    if not any(isinstance(record, TurnStart) for record in records()):
        raise ResumeError(
            f"{run.path} was written down without turns, so its agent cannot be driven. Make it a "
            "RecordedAgent when you record; or drive your program yourself with "
            "ReplayingClient(run) and ReplayingWorkbench(run)."
        )
    return agent


def check_written(
    sink: CheckingSink, run: RunFolder, records: Callable[[], Iterable[TraceRecord]]
) -> None:
    """Refuses an agent that does not write all down, with which nothing can be compared.

    Raises:
        ResumeError: The replay left the tape before its first model call came or as it was due,
            where a client or a workbench would have written.
    """
    found = sink.parting
    if found is None or found.difference.field != "record":
        return
    first = next((n for n, one in enumerate(records()) if isinstance(one, ModelCall)), -1)
    if found.seq <= first and found.kind in _WRITTEN_BY_DOUBLES:
        raise ResumeError(
            f"The agent that the recipe of {run.path} makes does not write down what it asks its "
            "model, or which tools it lists. "
            "The function must make it over RecordingClient(client, recorder) and "
            "RecordingWorkbench(workbench, recorder), as when it was recorded."
        )
