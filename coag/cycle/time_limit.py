"""How long a rule may take: one that is late is interrupted, and forbids.

Rules run in the event loop's own thread, as all of a cycle does, so that what they read is not
changed meanwhile. While one runs, nothing else does: no time-out, no cancellation. So a thread
watches the clock, and raises an exception in a rule that is late.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread, get_ident
from typing import TypeVar

ResultT = TypeVar("ResultT")
RULE_SECONDS = 2.0
"""Time that a rule, or a domain's projection, may take unless another is set."""
_TICK = 0.25
"""Seconds between two looks at the clock."""
_STEPS = 3
"""Rounds of a loop, each of which raises what is on its way."""
_IDLE = 20
"""Looks after which the thread sleeps, if there was nothing to watch."""


class TooSlowError(Exception):
    """A rule took longer than it may."""


class RuleInterrupt(BaseException):
    """Raised in a rule that is late. It is no `Exception`, so that no handler there takes it."""


@dataclass(slots=True, eq=False)
class WatchedCall:
    """A call of a rule that must end in time."""

    thread: int
    deadline: float
    stopped: bool = False
    watchers: set[int] = field(default_factory=set[int])
    """Threads that are about to raise in it."""


_TRACERS = frozenset({"coverage", "debugpy", "pydevd", "_pydevd_bundle"})
"""Packages in which a thread is not interrupted."""


class RuleWatchdog:
    """Raises `RuleInterrupt` in calls that are late, from a thread that runs while there are any.

    An exception may come anywhere in the watched thread, also between the acquiring of a lock and
    the code that would release it. So that thread takes no lock here: what both threads share are
    sets and a queue, each step of which is one step of the interpreter.
    """

    def __init__(self) -> None:
        self._calls: set[WatchedCall] = set()
        self._thread: Thread | None = None
        self._asleep = False
        self._wake: SimpleQueue[None] = SimpleQueue()

    def add(self, call: WatchedCall) -> None:
        """Watches a call from now on."""
        if self._thread is None:  # two that come at once may start one each, which does no harm
            self._thread = Thread(target=self._look, name="coag-rules", daemon=True)
            self._thread.start()
        self._calls.add(call)
        if self._asleep:
            self._wake.put(None)

    def remove(self, call: WatchedCall) -> None:
        """Nothing is raised for the call from here on, nor still on its way.

        What is on its way is raised here. It is not taken back: CPython 3.11 then keeps looking
        for it, and never gets past the beginning of a function that is traced, as by coverage or
        a debugger.
        """
        self._calls.discard(call)
        while call.watchers:
            time.sleep(0)
        if call.stopped:
            for _ in range(_STEPS):
                pass

    def _look(self) -> None:
        me, idle = get_ident(), 0
        while True:
            with suppress(Empty):
                self._wake.get(timeout=_TICK)
            idle = 0 if self._calls else idle + 1
            if idle >= _IDLE:
                idle = 0
                self._sleep()
            now = time.monotonic()
            for call in tuple(self._calls):
                # Again at each look: a rule may catch everything.
                if now > call.deadline and not _is_traced_now(call.thread):
                    call.watchers.add(me)
                    if call in self._calls:  # who removes it now waits until it is raised
                        call.stopped = True
                        _raise_in(call.thread, RuleInterrupt)
                    call.watchers.discard(me)

    def _sleep(self) -> None:
        self._asleep = True
        if not self._calls:  # one that was added before this line saw nobody asleep
            self._wake.get()
        self._asleep = False


_WATCH = RuleWatchdog()
if hasattr(os, "register_at_fork"):  # threads do not live on in the child
    os.register_at_fork(after_in_child=_WATCH.__init__)


def _is_traced_now(thread: int) -> bool:
    """Whether a thread is in a tracer, as of coverage or a debugger, which any line may enter.

    Tracers take locks of their own, which an exception there would leave taken for ever.
    """
    frame = sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage] - documented
    module = "" if frame is None else str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] in _TRACERS


def _raise_in(thread: int, error: type[BaseException]) -> None:
    raised = ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)


def limited(call: Callable[[], ResultT], seconds: float | None) -> ResultT:
    """What the call gives.

    Raises:
        TooSlowError: It took longer than `seconds`. One that runs Python code on and on is
            stopped; one that waits in a library or the operating system comes back by itself.
    """
    if seconds is None:
        return call()
    started = time.monotonic()
    watched = WatchedCall(get_ident(), started + seconds)
    late, result = False, list[ResultT]()
    try:
        try:
            _WATCH.add(watched)
            result.append(call())
        finally:
            _WATCH.remove(watched)
    except RuleInterrupt:
        late = True
    while late:
        try:
            _WATCH.remove(watched)
            break
        except RuleInterrupt:
            continue
    took = time.monotonic() - started
    if late and not watched.stopped:  # it was meant for a call around this one
        raise RuleInterrupt
    if late or took > seconds:
        raise TooSlowError(f"it took {took:.1f} s; it may take {seconds:g} s, and must not wait")
    return result[0]
