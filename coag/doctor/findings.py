"""What an examination finds, what follows from it, and how much it may ask."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from coag.schema import OutputMode, TokenUsage, Value


class Probe(StrEnum):
    """One question about a model server; see `docs/doctor.md` for how each is asked."""

    LISTED = "listed"
    """Is the server there, and does it list the model?"""
    ANSWER = "answer"
    """Does a plain question without a system message get an answer?"""
    SYSTEM = "system"
    """Does a system message reach the model?"""
    SYSTEMS = "systems"
    """Do several, scattered system messages?"""
    STREAM = "stream"
    """Does an answer come in pieces?"""
    STREAM_USAGE = "stream_usage"
    """Are tokens counted in a stream?"""
    LIMIT = "limit"
    """Does a completion end at its token limit?"""
    SCHEMA = "schema"
    """Does the server enforce a JSON schema against what the prompt asks for?"""
    JSON_MODE = "json_mode"
    """Does the server enforce JSON?"""
    TYPED = "typed"
    """Does a typed answer come, as agents ask for it: in one output mode after the other?"""
    TOOLS = "tools"
    """Do tool calls come back as tool calls?"""
    PARALLEL = "parallel"
    """Do several tool calls come in one answer?"""
    REQUIRED = "required"
    """Is `tool_choice="required"` honoured?"""
    NONE = "none"
    """Is `tool_choice="none"` honoured?"""
    TOOLS_WITH_SCHEMA = "tools_with_schema"
    """May one request have tools and a schema?"""
    CONTEXT = "context"
    """Does the beginning of a long prompt reach the model?"""
    CACHE = "cache"
    """Are cached tokens counted for a prompt that was sent twice?"""
    SPEED = "speed"
    """How many tokens a second?"""


class ProbeOutcome(StrEnum):
    """A finding in one word."""

    YES = "yes"
    NO = "no"
    ENFORCED = "enforced"
    """The server holds the model to it."""
    IGNORED = "ignored"
    """The server answers as if it had not been asked for."""
    REFUSED = "refused"
    """The server or the client says that it cannot."""
    AS_TEXT = "as_text"
    """Tool calls come as text."""
    INVALID = "invalid"
    """Tool calls come, but their arguments do not fit."""
    CUT = "cut"
    """The server counted fewer tokens than were sent, and said nothing."""
    FAILED = "failed"
    """An error came instead of an answer."""
    LATE = "late"
    """No answer came in time, which may be as slow a server as one that hangs."""
    UNCLEAR = "unclear"
    """The answer does not show it."""
    SKIPPED = "skipped"
    """Not asked, because of an earlier finding."""


class Grade(StrEnum):
    """What a finding means for agents."""

    GOOD = "good"
    POOR = "poor"
    """Agents work, with less; there is a way around it."""
    BAD = "bad"
    """Agents cannot work with this."""
    UNKNOWN = "unknown"


class ProbeFinding(Value):
    """What one probe found."""

    probe: Probe
    found: ProbeOutcome
    grade: Grade
    text: str
    """One sentence on what was seen; may quote the server."""
    advice: str = ""
    """What to do; empty if there is nothing to do."""
    figures: Mapping[str, float] = {}
    """Numbers that were measured, by name; units are in the names (`..._seconds`)."""
    seconds: float = 0.0
    """How long the requests for it took; findings of one request share it."""


def finding(
    probe: Probe,
    found: ProbeOutcome,
    text: str,
    advice: str = "",
    *,
    grade: Grade | None = None,
    figures: Mapping[str, float] | None = None,
) -> ProbeFinding:
    """A finding; its grade follows from whether it is clear and whether there is advice."""
    if grade is None:
        unclear = found in (ProbeOutcome.UNCLEAR, ProbeOutcome.SKIPPED)
        grade = Grade.UNKNOWN if unclear else Grade.POOR if advice else Grade.GOOD
    return ProbeFinding(
        probe=probe, found=found, grade=grade, text=text, advice=advice, figures=figures or {}
    )


class Recommendation(Value):
    """What to set, by the findings."""

    rung: OutputMode
    """The strictest output mode that works."""
    proposal: Literal["native", "json"]
    """For `CoagAgent(proposal=...)`."""
    parallel: bool
    """True if batches of tool calls come, each call with an id of its own."""
    model_info: Mapping[str, bool | str]
    """For the client's `model_info`: what it should claim."""
    context_tokens: int
    """The longest prompt that was seen to arrive whole, in the server's tokens; 0 if none was."""


class Report(Value):
    """An examination."""

    model: str
    usable: bool
    """True if an agent can work with this model: it answers, and a typed answer came."""
    findings: tuple[ProbeFinding, ...]
    """In the order of the probes."""
    claimed: Mapping[str, Any]
    """The client's `model_info` as it is now."""
    recommendation: Recommendation
    usage: TokenUsage
    """What the examination itself used."""

    def finding(self, probe: Probe) -> ProbeFinding:
        """What a probe found.

        Raises:
            KeyError: The report is none of `examine`: it lacks the probe.
        """
        for one in self.findings:
            if one.probe is probe:
                return one
        raise KeyError(f"The report has no finding of the probe {probe.value!r}.")


class ProbeLimits(Value):
    """The bounds of an examination."""

    context: int = Field(default=4_096, ge=256)
    """Longest prompt that is tried, in tokens as we estimate them."""
    max_tokens: int = Field(default=256, ge=1)
    """Longest completion, in tokens. Models that think first may need more."""
    seconds: float = Field(default=60.0, gt=0)
    """Seconds until one request is given up."""
