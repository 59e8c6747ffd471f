"""Cycles: in a timeline, and one as its six phases.

Texts of rows are short. All others are as they stand in the log, however long, so that a page must
clip what it shows of them (`coag.inspector.reading.clip`): prompts and answers, results, states,
percepts, written records, notes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from coag.schema import (
    Candidate,
    Evaluation,
    Intent,
    ModelCall,
    Note,
    Outcome,
    Percept,
    Phase,
    Receipt,
    TokenUsage,
    Trust,
    TurnEnd,
    Written,
)

from ._changes import Change
from ._findings import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A candidate that did not live."""

    action: str
    """With its arguments, on one line."""
    constraint: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleRow:
    """One cycle in a timeline; of a plain run one turn."""

    number: int
    at: datetime | None
    """When it began."""
    seconds: float | None = None
    """From its first to its last record."""
    situation: str = ""
    """How Reasoning understood it, on one line."""
    action: str = ""
    """What was done, with arguments, on one line; empty for none."""
    internal: bool = False
    status: str = ""
    """`done`, `failed`, `refused`, `none` (an impasse), or empty while it goes on."""
    result: str = ""
    """What came back, on one line."""
    decided_by: str = ""
    """`model`, `rank` or `only_survivor`."""
    candidates: int = 0
    rejected: tuple[Rejected, ...] = ()
    impasse: bool = False
    phases: tuple[Phase, ...] = ()
    """The phases that were committed; six in a whole cycle, none in a plain turn."""
    usage: TokenUsage = field(default_factory=TokenUsage)
    recalled: int = 0
    notes: int = 0
    ended: str = ""
    """Why the turn ended after it; empty where it went on."""
    findings: tuple[Finding, ...] = ()
    """Violations and causes found in it, where the checks have run."""


class PartKind(StrEnum):
    """What a piece of a prompt is."""

    INSTRUCTION = "instruction"
    """The developer's or a procedure's words: they may instruct."""
    DATA = "data"
    """Between data delimiters: information that instructs nobody."""
    ANSWER = "answer"
    """What the model itself said before."""
    PLAIN = "plain"
    """Prompts of other agents have no delimiters: what a piece is cannot be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPart:
    """A piece of a prompt, exactly as sent."""

    kind: PartKind
    title: str
    """The heading over it; empty for none."""
    text: str
    """The piece itself, byte for byte, headings and delimiters included: all pieces of a message
    one after the other are the message."""
    source: str = ""
    trust: Trust | None = None
    tokens: int = 0
    """Estimated."""
    same: int = 0
    """Characters at its beginning that are part of the prefix which this request shares with the
    one before it: what a server's cache can serve."""
    stood: str = ""
    """In one file: where the same text stands already, which is then not repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """One message of a prompt."""

    role: str
    parts: tuple[PromptPart, ...]
    tokens: int = 0
    """Estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    """One request to a model, and what came of it."""

    call: ModelCall
    messages: tuple[MessageView, ...]
    same_tokens: int = 0
    """Estimated tokens of the prefix that is the same as in the request before it."""
    answer: Any = None
    """The raw answer as JSON, where it is that."""
    seq: int | None = None
    """Number of the call's record, so that a page can lead to the whole of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateView:
    """A candidate with everything that was found out about it."""

    candidate: Candidate
    evaluation: Evaluation | None = None
    chosen: bool = False
    projected: tuple[Change, ...] = ()
    """What it was predicted to change in the perceptual state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseView:
    """One phase of one cycle."""

    phase: Phase
    outcome: Outcome | None
    """None where it was not committed: the run broke off, or is just at it."""
    inherited: bool = False
    """True where it was committed in the run that this one was forked from."""
    at: datetime | None = None
    seconds: float | None = None
    """From the end of the phase before it, as the records' times tell."""
    calls: tuple[CallView, ...] = ()
    notes: tuple[Note, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleView:
    """One cycle with all that happened in it; of a plain run one turn, which has no phases."""

    run: str
    """Key of the run."""
    row: CycleRow
    phases: tuple[PhaseView, ...]
    """Six, in order; empty for a plain turn."""
    calls: tuple[CallView, ...] = ()
    """Requests that no phase made: of a plain turn all."""
    candidates: tuple[CandidateView, ...] = ()
    """In the order proposed."""
    goal: str = ""
    percepts: tuple[Percept, ...] = ()
    """What had arrived when it began."""
    brought: tuple[Percept, ...] = ()
    """What was perceived after it: what its action brought back."""
    effects: tuple[tuple[Intent, Receipt | None], ...] = ()
    """Its external actions."""
    written: tuple[Written, ...] = ()
    notes: tuple[Note, ...] = ()
    """Those of no phase."""
    turn_end: TurnEnd | None = None
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """The perceptual state at its beginning."""
    changed: tuple[Change, ...] = ()
    """What percepts changed in the perceptual state since the cycle before."""
    environment: Any = None
    """What the environment was in truth at its beginning, where it tells."""
    before: int | None = None
    """Number of the cycle before; None for the first."""
    after: int | None = None
    findings: tuple[Finding, ...] = ()
    """Those of no phase."""
    unreadable: tuple[str, ...] = ()
    """Lines of it that cannot be read, each with why."""
