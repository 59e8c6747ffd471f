"""Causes of failures, and what is known of a domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from coag._util.html_cards import HtmlTable, html_card
from coag.schema import Phase, Record

# ---- The causes that a failure can have, one per part of the architecture ----


class Cause(StrEnum):
    """The part of the architecture that a failure comes from."""

    MISPERCEPTION = "misperception"
    """A sensor or a tool's return was wrong."""
    MISSED_RETRIEVAL = "missed retrieval"
    """Memory holds a record that fits, and it was not recalled."""
    WRONG_FACT = "wrong recalled fact"
    """What was recalled is not so."""
    FAULTY_REASONING = "faulty reasoning"
    """The situation as it was worked out contradicts what was perceived."""
    INVALID_PROPOSAL = "invalid proposal"
    """What was proposed cannot or must not be done."""
    FAULTY_EVALUATION = "faulty evaluation"
    """The scores contradict what the candidates are predicted to bring."""
    BAD_SELECTION = "bad selection"
    """A worse candidate was chosen than the scores say."""
    FAILED_EXECUTION = "failed execution"
    """A sound action did not work: a tool raised, gave no answer, or did nothing."""
    CHANGED_ENVIRONMENT = "changed environment"
    """The world changed, and the agent had no part in it."""
    UNUSABLE_ANSWER = "model answer unusable"
    """A model gave nothing that could be read, or none could be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One record that supports a diagnosis."""

    seq: int
    """Number of the record, from 0."""
    cycle: int
    phase: Phase | None
    """The phase it belongs to; None for what was perceived, and in plain runs."""
    text: str
    """What it shows, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One failure and where it comes from."""

    cycle: int
    """The cycle in which it can first be seen; of a plain run the turn."""
    failure: str
    """What went wrong, as a sentence."""
    cause: Cause | None
    """The one part of the architecture that it comes from; None if the trace does not show it."""
    reason: str
    """Why this is the cause, as a sentence."""
    evidence: tuple[Evidence, ...]
    """The records that show it, the earliest first; never empty."""
    fact: str = ""
    """The fact of which a wrong value was perceived in this very cycle; empty for none."""
    follows: int | None = None
    """An earlier cycle in whose misperception it may have its only ground; None for none."""

    def __str__(self) -> str:
        cause = self.cause or "not attributable"
        return f"cycle {self.cycle}: {cause}: {self.failure} {self.reason}"

    def _repr_html_(self) -> str:
        rows = [(one.seq, one.cycle, one.phase, one.text) for one in self.evidence]
        return html_card(
            f"Cycle {self.cycle}: {self.cause or 'not attributable'}",
            facts=[("failure", self.failure), ("why", self.reason)],
            table=HtmlTable(columns=("record", "cycle", "phase", "evidence"), rows=rows),
        )


# ---- Foreign text in a diagnosis: cut at a word, and never with two ends to a sentence ----


_SENTENCE = 600
"""Characters of a sentence, about."""
_QUOTED = 160
_ENDS = (".", "!", "?", "…")
_CLOSING = "'\")]}"


def short(text: str, limit: int = _SENTENCE) -> str:
    """The beginning of a text on one line, cut at a word; an ellipsis says that it was cut."""
    line = " ".join(text[: limit * 4].split())
    if len(line) <= limit and len(text) <= limit * 4:
        return line
    head = line[: limit + 1]
    word = head.rfind(" ")
    cut = head[:word] if word > limit // 2 else head[:limit]
    return f"{cut.rstrip(' ,;:')}…"


def quoted(text: str, limit: int = _QUOTED) -> str:
    """The beginning of a text in quotation marks."""
    return repr(short(text, limit))


def shown(value: object) -> str:
    """The beginning of a fact's value."""
    return short(repr(value), _QUOTED)


def ended(text: str) -> str:
    """A sentence with its full stop, if it does not end by itself or was cut."""
    return text if text.rstrip(_CLOSING).endswith(_ENDS) else f"{text}."


# ---- What a domain says about its states and its language ----


Facts = Mapping[str, Any]
"""Named things that are the case, as JSON values: `{"battery": 40, "dirty (2, 1)": true}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a text says is the case."""

    fact: str
    """The name of a fact, as `DomainKnowledge.facts` uses it, or a further one of the domain."""
    value: Any = True
    """What the text says of it."""
    text: str = ""
    """Where it says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known when a claim is judged or a way to the goal is looked for."""

    state: Mapping[str, Any]
    """The perceptual state as JSON."""
    goal: str = ""
    """The goal in the words in which it was set."""
    constraints: tuple[str, ...] = ()
    """Names of the constraints in force."""
    recalled: tuple[Claim, ...] = ()
    """What the recalled records say."""
    observed: Facts = field(default_factory=dict[str, Any])
    """The latest observation of every fact so far in this run."""


class DomainKnowledge:
    """What is known of a domain; by default, nothing but what JSON shows.

    Subclass it where a domain knows more, and give it to `diagnose`. Every method has a default
    that serves any domain: facts are the scalars of the state, texts say nothing that could be
    compared, and the distance to the goal is unknown.
    """

    complete: bool = False
    """Whether a fact that a projection leaves as it is stays so, unless the world changes. Where
    it is False, only what a projection predicts is compared with what is perceived."""

    def facts(self, state: Mapping[str, Any]) -> Facts:
        """What a state says was perceived now; what is only remembered in it is not included."""
        return dict(flat(dict(state)))

    def expected(self, before: Mapping[str, Any], projection: Mapping[str, Any]) -> Facts:
        """The facts that a projection says an action brings about."""
        now = self.facts(before)
        return {
            name: value for name, value in self.facts(projection).items() if value != now.get(name)
        }

    def goal_facts(self, goal: str) -> Facts:
        """Facts that the goal says are the case at the start."""
        return {}

    def may_change(self, fact: str, old: Any, new: Any, achieved: bool) -> bool:
        """Whether the environment may change a fact so, without the agent.

        Args:
            fact: Its name.
            old: What it was.
            new: What it is said to be now.
            achieved: Whether the agent's own action had changed it before.
        """
        return True

    def claims(self, text: str) -> Sequence[Claim]:
        """What a text says is the case, as far as it can be read."""
        return ()

    def record_claims(self, record: Record) -> Sequence[Claim]:
        """What a record of long-term memory says."""
        return self.claims(record.text)

    def holds(self, claim: Claim, now: Circumstances, *, remembered: bool) -> bool | None:
        """Whether a claim is so; None where that is not known.

        Args:
            claim: What is said.
            now: What is known.
            remembered: Whether a record says so, or the agent's reasoning, which has no source
                but what it was shown.
        """
        known = self.facts(now.state)
        return known[claim.fact] == claim.value if claim.fact in known else None

    def remaining(self, now: Circumstances) -> float | None:
        """The least number of actions to the goal, the recalled claims taken for true.

        Infinite where there is no way; None where the domain does not know it.
        """
        return None


def flat(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """The scalars in a JSON value, each with its dotted path; lists are kept as they are."""
    if not isinstance(value, dict):
        return [(name, value)]
    items: list[tuple[str, Any]] = []
    for key, item in cast("dict[str, Any]", value).items():
        items += flat(item, f"{name}.{key}" if name else key)
    return items
