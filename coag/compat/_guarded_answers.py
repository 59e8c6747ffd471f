"""What a plain agent is told of a guarded call."""

from __future__ import annotations

from autogen_core.tools import TextResultContent, ToolResult

from coag.cycle import Ran
from coag.schema import ActionResult, Candidate, Evaluation, Verdict

NOTHING_DONE = "Nothing was done."
UNKNOWN = "Its outcome is unknown. Find out what it did before you call it again."
SHOWN = 300
"""Characters of arguments that a note shows."""


class GuardedResult(ToolResult):
    """What a guarded call came to."""

    may_have_happened: bool = False
    """Whether an error leaves open what the tool did: it was late, lost or cancelled."""


def said(name: str, text: str, *, is_error: bool = True, unknown: bool = False) -> GuardedResult:
    """A text as the result of a call."""
    content = TextResultContent(content=text)
    return GuardedResult(name=name, result=[content], is_error=is_error, may_have_happened=unknown)


def answer_of(ran: Ran) -> GuardedResult:
    """What came of a call."""
    name = ran.executed.action
    if ran.refused_by is not None:
        return refusal(name, ran.refused_by)
    returned = ran.returned or ActionResult(content=ran.executed.result, is_error=True)
    if returned.outcome_unknown:
        return said(name, f"{returned.content} {UNKNOWN}", unknown=True)
    return said(name, returned.content, is_error=returned.is_error)


def refusal(name: str, verdict: Verdict) -> GuardedResult:
    """That a call was not run, and what forbids it."""
    reason = verdict.reason.strip().rstrip(".") or "it gives no reason"
    text = f"{name} was not run. The rule {verdict.constraint!r} forbids it: {reason}."
    return said(name, f"{text} {NOTHING_DONE}")


def broken(name: str, problem: str, *, begun: bool) -> GuardedResult:
    """That a call could not be judged or written down: nobody acts unjudged or unrecorded."""
    if begun:
        return said(name, f"{name} was run, and then: {problem} {UNKNOWN}", unknown=True)
    return said(name, f"{name} was not run. {problem} {NOTHING_DONE}")


def verdicts_text(candidate: Candidate, judged: Evaluation) -> str:
    """What the rules said of a call, in one sentence."""
    call = f"{candidate.action}({_short(candidate.raw_arguments)})"
    died_of = judged.died_of
    if died_of is not None:
        return f"{call} is forbidden by {died_of.constraint}: {died_of.reason}"
    return f"{call} passed {', '.join(verdict.constraint for verdict in judged.verdicts)}"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
