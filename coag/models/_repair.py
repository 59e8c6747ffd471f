"""Repairing broken JSON within a bound of time: `json-repair` takes minutes for some texts."""

from __future__ import annotations

import ctypes
from itertools import accumulate
from threading import Lock, Thread
from typing import Any, cast

import json_repair

_LONGEST = 50_000
"""Longest text, in characters, that repair is tried on."""
_DEEPEST = 100
"""How deeply brackets may nest there."""
_SECONDS = 0.5
"""How long repair may take; whoever asked waits for it."""


class _OutOfTime(BaseException):
    """Ends the thread that repairs. It is no `Exception`, so that no handler there takes it."""


def repaired_object(text: str) -> dict[str, Any] | None:
    """What `json-repair` makes of a text; None if that is no object, or would take too long."""
    if len(text) > _LONGEST or _depth(text) > _DEEPEST:
        return None
    repair = _Repair(text)
    repair.start()
    repair.join(_SECONDS)
    while repair.is_alive():
        repair.stop()
        repair.join(_SECONDS)
    value = repair.value
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


class _Repair(Thread):
    """Repairs a text in a thread, since only a thread can be stopped from without."""

    def __init__(self, text: str) -> None:
        super().__init__(name="coag-repair", daemon=True)
        self.value: Any = None
        self._text: str | None = text
        self._lock = Lock()
        self._ended = False

    def run(self) -> None:
        """Repairs once; whatever stops that, the thread ends without an error."""
        while not self._ended:
            try:
                text, self._text = self._text, None
                if text is not None:
                    self.value = json_repair.loads(text)
                with self._lock:
                    self._ended = True
            except (ValueError, RecursionError, _OutOfTime):
                continue

    def stop(self) -> None:
        """Raises `_OutOfTime` at the thread's next step, unless it has ended by itself."""
        with self._lock:
            if not self._ended:
                ident = ctypes.c_ulong(self.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(_OutOfTime))


def _depth(text: str) -> int:
    """How deeply brackets nest, those within strings counted too."""
    steps = (1 if c in "{[" else -1 if c in "}]" else 0 for c in text)
    return max(accumulate(steps), default=0)
