"""Who approves: a person at the terminal, or a function."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Event, Lock
from typing import TextIO

from coag._util.json_diff import diff_patch
from coag._util.text import visible
from coag._util.timeouts import in_thread, outcome_of
from coag.cycle import ApprovalAnswer, ApprovalRequest

LOOK_SECONDS = 0.1
"""How often a waiting thread looks whether its question was withdrawn."""
WITHDRAWN = "\n(The question was withdrawn. What you type now counts for nothing.)\n"
_LINE_BYTES = 4_096
_ONE_AT_A_TIME = Lock()
"""A process has one terminal for all requests."""


class TerminalError(Exception):
    """There is no terminal to ask at, or no longer; says so in a sentence."""


def ask_at_terminal(source: TextIO, sink: TextIO, question: str, withdrawn: Event) -> str:
    """The line typed after the question; empty if it is withdrawn first. Blocks its thread.

    Waits until no other question is open. What was typed before is thrown away, and what other
    code has buffered of `source` is left alone.
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
    with suppress(OSError, ValueError, AttributeError):  # no file, closed, or None
        if os.isatty(descriptor := source.fileno()):
            return descriptor
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


# ---- Approvers that ask nobody, or a person at a terminal ----


SHOWN = 4_000
"""Characters of each part that are shown at the terminal."""
_HOW = "Type yes or y to approve. Anything else denies it; the agent reads what you type."

ScriptedAnswer = bool | str | Exception | Callable[[ApprovalRequest], ApprovalAnswer | bool]
"""True, False, the reason of a denial, an error to raise, or a function of the request."""


class ScriptedApprover:
    """A fake approver: gives prepared answers in order and keeps what it was asked.

    One that has run out of answers raises, which is a denial.

    Args:
        answers: One per request.
        by: The name under which it answers.
    """

    def __init__(self, answers: Iterable[ScriptedAnswer], by: str = "script") -> None:
        self.name = by
        self.requests: list[ApprovalRequest] = []
        """What it was asked, in order."""
        self._answers = iter(answers)

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer | bool:
        """The next answer.

        Raises:
            LookupError: There is none left.
        """
        self.requests.append(request)
        match next(self._answers, None):
            case None:
                raise LookupError(
                    f"No answer is left for request {len(self.requests)}; script one more."
                )
            case Exception() as error:
                raise error
            case bool(granted):
                return request.grant(self.name) if granted else request.deny(self.name)
            case str(reason):
                return request.deny(self.name, reason)
            case answer:
                return answer(request)


class ConsoleApprover:
    """Asks at the terminal, one request at a time, while the event loop keeps running.

    Only `yes` (or `y`) approves. What was typed before a question is thrown away, so that no
    answer is taken for another question's. Where there is no terminal, or it is closed, the
    action is denied with that reason. The time that a request may wait runs while it queues.

    Args:
        by: The name under which the person answers.
        source: What the answer is read from; the standard input by default. A terminal.
        sink: What the question is written to; the standard error by default, so that it
            does not mix with what a program prints.
    """

    def __init__(
        self, by: str = "operator", *, source: TextIO | None = None, sink: TextIO | None = None
    ) -> None:
        self.name = by
        self._source = source
        self._sink = sink

    async def __call__(self, request: ApprovalRequest) -> ApprovalAnswer:
        """The person's answer; waits until earlier questions have been answered."""
        source, sink = self._source or sys.stdin, self._sink or sys.stderr
        text, withdrawn = _question(request), Event()
        try:
            line = await outcome_of(
                in_thread(lambda: ask_at_terminal(source, sink, text, withdrawn), "coag-console")
            )
        except TerminalError as error:
            return request.deny("", str(error))
        finally:
            withdrawn.set()
        if line.strip().lower() in ("y", "yes"):
            return request.grant(self.name)
        return request.deny(self.name, line.strip())


# ---- A request as a person reads it: nothing in it moves the cursor or hides a part ----


def arguments_of(request: ApprovalRequest, limit: int) -> str:
    """The arguments as indented JSON, up to `limit` characters."""
    return visible(
        json.dumps(request.arguments, indent=2, ensure_ascii=False, sort_keys=True), limit
    )


def facts_of(request: ApprovalRequest, limit: int) -> dict[str, str]:
    """What else a person decides by, each up to `limit` characters; what is empty is left out."""
    predicted = request.projection
    change = None if predicted is None else diff_patch(request.state, predicted)
    facts = {
        "State": json.dumps(request.state, ensure_ascii=False) if request.state else "",
        "Predicted change": json.dumps(change, ensure_ascii=False) if change else "",
        "Why asked": request.reason,
        "Risk": request.risk,
        "Goal": request.goal,
        "Agent says": request.wish,
        "Expected effect": request.expected_effect,
        "Asked again": request.changed,
        "How long": f"for this one action, as the agent sees things now. Yes holds for "
        f"{request.approval_seconds:g} s; without an answer it is denied at "
        f"{request.expires_at:%Y-%m-%d %H:%M:%S} UTC.",
    }
    if predicted is not None and not change:
        facts["Predicted change"] = "nothing"
    return {label: visible(text.strip(), limit) for label, text in facts.items() if text}


def _question(request: ApprovalRequest) -> str:
    agent, action = (visible(one).replace("\n", "\\n") for one in (request.agent, request.action))
    facts = {"arguments": arguments_of(request, SHOWN), **facts_of(request, SHOWN)}
    parts = [f"Approval needed: {agent} wants to run {action}."]
    for label, text in facts.items():
        first, *more = text.splitlines() or [""]
        shown = f" {first}" if not more else "".join(f"\n    {line}" for line in (first, *more))
        parts.append(f"  {label.lower()}:{shown}")
    return "\n".join([*parts, _HOW]) + "\n> "
