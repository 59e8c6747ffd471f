"""What can be a constraint at all, and how long a rule may take.

Rules run in the event loop's own thread, as all of a cycle does, so that what they read is not
changed meanwhile. While one runs, nothing else does: no time-out, no cancellation. So a thread
watches the clock, and raises an exception in a rule that is late.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread, get_ident
from typing import TypeVar

from coag.errors import ConfigurationError

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


class _Stopped(BaseException):
    """Raised in a rule that is late. It is no `Exception`, so that no handler there takes it."""


@dataclass(slots=True, eq=False)
class _Watched:
    thread: int
    deadline: float
    stopped: bool = False
    watchers: set[int] = field(default_factory=set[int])
    """Threads that are about to raise in it."""


class _Watch:
    """Raises `_Stopped` in calls that are late, from a thread that runs while there are any.

    An exception may come anywhere in the watched thread, also between the acquiring of a lock and
    the code that would release it. So that thread takes no lock here: what both threads share are
    sets and a queue, each step of which is one step of the interpreter.
    """

    def __init__(self) -> None:
        self._calls: set[_Watched] = set()
        self._thread: Thread | None = None
        self._asleep = False
        self._wake: SimpleQueue[None] = SimpleQueue()

    def add(self, call: _Watched) -> None:
        if self._thread is None:  # two that come at once may start one each, which does no harm
            self._thread = Thread(target=self._look, name="coag-rules", daemon=True)
            self._thread.start()
        self._calls.add(call)
        if self._asleep:
            self._wake.put(None)

    def remove(self, call: _Watched) -> None:
        """Nothing is raised for the call from here on, nor still on its way.

        What is on its way is raised here. It is not taken back: CPython 3.11 then goes on looking
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
                if now > call.deadline:  # again at each look: a rule may catch everything
                    call.watchers.add(me)
                    if call in self._calls:  # who removes it now waits until it is raised
                        call.stopped = True
                        _raise_in(call.thread, _Stopped)
                    call.watchers.discard(me)

    def _sleep(self) -> None:
        """Waits until there is a call again."""
        self._asleep = True
        if not self._calls:  # one that was added before this line saw nobody asleep
            self._wake.get()
        self._asleep = False


_WATCH = _Watch()
if hasattr(os, "register_at_fork"):  # threads do not live on in the child
    os.register_at_fork(after_in_child=_WATCH.__init__)


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Raises an exception at a thread's next step."""
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
    begun = time.monotonic()
    watched = _Watched(get_ident(), begun + seconds)
    late, found = False, list[ResultT]()
    try:
        try:
            _WATCH.add(watched)
            found.append(call())
        finally:
            _WATCH.remove(watched)
    except _Stopped:
        late = True
    while late:
        try:
            _WATCH.remove(watched)
            break
        except _Stopped:
            continue
    took = time.monotonic() - begun
    if late and not watched.stopped:  # it was meant for a call around this one
        raise _Stopped
    if late or took > seconds:
        raise TooSlowError(f"it took {took:.1f} s; it may take {seconds:g} s, and must not wait")
    return found[0]


def check_rule(rule: object) -> None:
    """Refuses what cannot be called as a constraint is: it would forbid every action.

    Raises:
        ConfigurationError: It is no function of three arguments, nor an object that is called so.
    """
    if isinstance(rule, type) or not callable(rule):
        raise _no_constraint(rule)
    try:
        inspect.signature(rule).bind(None, None, None)
    except TypeError as error:
        raise _no_constraint(rule) from error
    except ValueError:  # a function that Python cannot look into; whoever calls it will see
        pass


def _no_constraint(rule: object) -> ConfigurationError:
    return ConfigurationError(
        f"{_shown(rule)} is no constraint. Write a function (candidate, state, projection) that "
        "returns Verdict.allow() or Verdict.forbid(reason), or an object that is called so."
    )


def _shown(value: object) -> str:
    name = getattr(value, "__qualname__", None)
    return repr(value)[:80] if name is None else repr(name)
