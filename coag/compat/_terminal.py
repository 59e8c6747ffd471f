"""One question at a time at the terminal, withdrawn if nobody waits for its answer any more."""

from __future__ import annotations

import os
import sys
from threading import Event, Lock
from typing import TextIO

LOOK_SECONDS = 0.1
"""How often a waiting thread looks whether its question was withdrawn."""
WITHDRAWN = "\n(The question was withdrawn. What you type now counts for nothing.)\n"
_LINE_BYTES = 4_096
_ONE_AT_A_TIME = Lock()
"""A process has one terminal, whoever asks."""


class TerminalError(Exception):
    """There is no terminal to ask at, or no longer; says so in a sentence."""


def ask_at_terminal(source: TextIO, sink: TextIO, question: str, withdrawn: Event) -> str:
    """The line typed after the question; empty if it is withdrawn first. Blocks its thread.

    Waits until no other question is open. What was typed before is thrown away, and what other
    code has buffered of `source` is left alone.

    Raises:
        TerminalError: `source` is no terminal, or was closed.
    """
    with _ONE_AT_A_TIME:
        if withdrawn.is_set():
            return ""
        terminal = _terminal(source)
        try:
            _forget_what_was_typed(terminal)
            _write(sink, question)
            while not withdrawn.is_set():
                if _is_line_there(terminal) and not withdrawn.is_set():
                    return _line(terminal)
            _write(sink, WITHDRAWN)
        except (OSError, ValueError) as error:
            raise TerminalError("the terminal was closed") from error
    return ""


def _terminal(source: TextIO) -> int:
    try:
        descriptor = source.fileno()
        if os.isatty(descriptor):
            return descriptor
    except (OSError, ValueError, AttributeError) as error:  # no file, closed, or None
        raise TerminalError("there is no terminal to ask at") from error
    raise TerminalError("there is no terminal to ask at")


def _write(sink: TextIO, text: str) -> None:
    encoding = getattr(sink, "encoding", None) or "utf-8"
    sink.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sink.flush()


def _line(terminal: int) -> str:
    line = os.read(terminal, _LINE_BYTES)
    if not line:
        raise TerminalError("the terminal was closed")
    return line.decode(errors="replace")


if sys.platform == "win32":  # pragma: no cover - the branch of another system
    import msvcrt
    import time

    def _is_line_there(terminal: int) -> bool:
        """Whether a key was pressed; the line is then read to its end."""
        if msvcrt.kbhit():
            return True
        time.sleep(LOOK_SECONDS)
        return False

    def _forget_what_was_typed(terminal: int) -> None:
        while msvcrt.kbhit():
            msvcrt.getwch()
else:
    import select
    import termios

    def _is_line_there(terminal: int) -> bool:
        """Whether a whole line was typed, or the terminal was closed."""
        return bool(select.select([terminal], [], [], LOOK_SECONDS)[0])

    def _forget_what_was_typed(terminal: int) -> None:
        try:
            termios.tcflush(terminal, termios.TCIFLUSH)
        except termios.error as error:
            raise TerminalError("the terminal was closed") from error
