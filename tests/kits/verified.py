"""Verifies what tests leave in RAM; run folders are verified by `coag.proof.pytest_plugin`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from coag.proof import verify
from coag.proof.pytest_plugin import BrokenTraceError, exempt
from coag.tracing import MemoryTrace

_made: list[MemoryTrace] = []


def _note_all(patch: pytest.MonkeyPatch) -> None:
    """Notes every trace in RAM that is made from now on."""
    make = MemoryTrace.__init__

    def noted(self: MemoryTrace, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        _made.append(self)

    patch.setattr(MemoryTrace, "__init__", noted)


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    with pytest.MonkeyPatch.context() as patch:
        _note_all(patch)
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    _made.clear()
    result = yield
    traces = [] if exempt(pyfuncitem) else _made[:]
    _made.clear()
    problems = [problem for trace in traces for problem in _problems(trace)]
    if problems:
        raise BrokenTraceError("\n".join(("The traces of this test do not hold:", *problems)))
    return result


def _problems(trace: MemoryTrace) -> list[str]:
    """What is violated. Minds that tests drive in parts leave no runs: they open none."""
    entries = trace.entries
    opened = bool(entries) and entries[0].body.record == "snapshot"
    return [str(one) for one in verify(entries)] if opened else []
