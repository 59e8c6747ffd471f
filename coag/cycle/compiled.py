"""Compiled procedures: calls that succeeded again and again in one situation (Soar's chunking).

A call that succeeded `after` times in the same situation, with no failure between, is compiled.
From then on `depth="auto"` proposes it there without asking the model. It only proposes: Evaluation
judges it as anything else, and Execution has it approved and recorded as anything else. A procedure
that fails twice is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import Field

from coag.schema import (
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Percept,
    Phase,
    ReasoningOutcome,
    Section,
    SelectionOutcome,
    Situation,
    Value,
    content_id,
    one_line,
)

MOST_PROCEDURES = 100
"""Compiled procedures that are kept; the one that was made first goes first."""
MOST_TALLIES = 100
"""Situations whose successes are counted; the one that was met longest ago goes first."""
MOST_FAILURES = 2
"""Failures after which a procedure is dropped."""


class CompiledProcedure(Value):
    """What to call in one situation, learned from repeated success."""

    situation: str
    """Digest of the goal and the state for which it holds."""
    action: str
    arguments: dict[str, Any]
    author: str
    """The agent that compiled it."""
    version: int = Field(ge=1)
    """Counts how often one was compiled for this situation."""
    cycle: int
    """The cycle in which it was compiled."""
    hits: int = 0
    """Uses that succeeded."""
    failures: int = 0
    """Uses that failed, were forbidden, or changed nothing."""

    @property
    def hit_rate(self) -> float | None:
        """The share of its uses that succeeded; None before the first."""
        uses = self.hits + self.failures
        return self.hits / uses if uses else None

    @property
    def raw_arguments(self) -> str:
        """The arguments as a candidate has them."""
        return json.dumps(self.arguments, ensure_ascii=False)

    @property
    def line(self) -> str:
        """What it calls and how it has done, in one line."""
        uses = self.hits + self.failures
        by = f"version {self.version} by {self.author}, cycle {self.cycle}"
        call = one_line(_call(self.action, self.arguments), 120)
        return f"{call} ({by}; {self.hits} of {uses} uses succeeded)"


class _Attempt(Value):
    """A call of which it is yet to be seen whether it got anything done."""

    situation: str
    action: str
    arguments: dict[str, Any]
    reflex: bool
    """Whether a compiled procedure made it."""


class _State(Value):
    """Everything that is kept, as it is saved."""

    procedures: tuple[CompiledProcedure, ...] = ()
    tallies: dict[str, dict[str, int]] = Field(default_factory=dict)
    """By situation and digest of the call: successes in a row."""
    versions: dict[str, int] = Field(default_factory=dict)
    """By situation: how many were compiled, dropped ones too."""
    trail: str = ""
    """Digest of what was done and seen since the goal was set."""
    unasked: int = 0
    """Cycles in a row in which no model was asked."""
    situation: str = ""
    """That of the open cycle."""
    reflex: bool = False
    """Whether a compiled procedure proposes in the open cycle."""
    predictions: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """By candidate of the open cycle: its projection, empty where there is none."""
    predicted: dict[str, Any] | None = None
    """The projection of the last executed action."""
    acted_in: str = ""
    """The situation in which it was executed."""
    attempt: _Attempt | None = None


class CompiledProcedures:
    """Learns procedures from the outcomes of cycles; a cognitive module, and saved as one.

    A call succeeds if it ends the turn with an answer, or if the situation is another one when the
    next cycle reasons: what changes nothing would be repeated for ever.

    Args:
        author: The agent's name.
        after: Successes in a row that compile a procedure.
        objection: Says why the gate refuses a text; empty where it does not.
        note: Gets what was compiled, refused or dropped, in a sentence.
    """

    name = "compiled_procedures"

    def __init__(
        self,
        author: str,
        *,
        after: int = 3,
        objection: Callable[[str], str] = lambda text: "",
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._author, self._after = author, after
        self._objection, self._note = objection, note
        self._cycle = 0
        self._kept = _State()

    # ---- what a cycle asks ----

    @property
    def procedures(self) -> tuple[CompiledProcedure, ...]:
        """Those in force, the oldest first."""
        return self._kept.procedures

    @property
    def trail(self) -> str:
        """Digest of what was done and seen since the goal was set."""
        return self._kept.trail

    @property
    def unasked(self) -> int:
        """Cycles in a row, up to the last one, in which no model was asked."""
        return self._kept.unasked

    def find(self, situation: str) -> CompiledProcedure | None:
        """The procedure for a situation, if there is one."""
        return next((one for one in self.procedures if one.situation == situation), None)

    def unfulfilled(self, situation: str) -> Mapping[str, Any] | None:
        """What the last executed action should have led to, if the situation is still the same.

        None where there was no prediction, or something has changed: news that nobody foresaw does
        not tell against a prediction.
        """
        return self._kept.predicted if _same_state(situation, self._kept.acted_in) else None

    # ---- what it learns from: every outcome, in order ----

    async def observe(self, event: Percept | Outcome) -> None:
        """Takes in what happened."""
        if isinstance(event, Percept):
            if event.sets_goal:
                self._change(trail="")
            return
        self._cycle = event.cycle
        if isinstance(event, ReasoningOutcome):
            self._begin(event)
        elif isinstance(event, EvaluationOutcome):
            predictions = {one.candidate_id: one.projection or {} for one in event.evaluations}
            self._change(predictions=predictions)
        elif isinstance(event, SelectionOutcome):
            if event.impasse and self._kept.reflex and self._kept.predictions:
                known = self.find(self._kept.situation)
                if known is not None:  # what the procedure proposed was forbidden
                    self._count_use(known, success=False)
        elif isinstance(event, ExecutionOutcome):
            self._take_execution(event)

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """Nothing: what it knows is proposed, not shown."""
        return None

    def _change(self, **fields: Any) -> None:
        self._kept = self._kept.model_copy(update=fields)

    def _begin(self, outcome: ReasoningOutcome) -> None:
        """Another cycle reasons: what the attempt before it has changed is known now."""
        if outcome.depth is None:
            return
        evidence, attempt = outcome.depth.evidence, self._kept.attempt
        if attempt is not None:
            unchanged = _same_state(attempt.situation, evidence.situation)
            self._learn(attempt, success=not unchanged)
        reflex = outcome.depth.depth == "reflex" and bool(
            evidence.procedure and not evidence.only_call
        )
        unasked = self._kept.unasked + 1 if outcome.depth.depth == "reflex" else 0
        self._change(
            unasked=unasked,
            situation=evidence.situation,
            reflex=reflex,
            predictions={},
            predicted=None,
            attempt=None,
        )

    def _take_execution(self, outcome: ExecutionOutcome) -> None:
        kept = self._kept
        for done in outcome.executed:
            if not done.internal:
                call = _call(done.action, done.arguments or {})
                self._change(trail=content_id(self._kept.trail, call, done.result))
        single = len(outcome.executed) == 1 and outcome.action is not None
        if not single or not kept.situation or (outcome.internal and outcome.response is None):
            self._change(predictions={}, reflex=False)
            return
        attempt = _Attempt(
            situation=kept.situation,
            action=str(outcome.action),
            arguments=outcome.arguments or {},
            reflex=kept.reflex,
        )
        self._change(
            predictions={},
            reflex=False,
            predicted=kept.predictions.get(outcome.candidate_id or "") or None,
            acted_in=kept.situation,
        )
        if outcome.status is not ExecutionStatus.DONE:
            self._learn(attempt, success=False)
        elif outcome.response is not None:
            self._learn(attempt, success=True)
        else:
            self._change(attempt=attempt)

    # ---- counting, compiling, dropping ----

    def _learn(self, attempt: _Attempt, *, success: bool) -> None:
        situation, call = attempt.situation, _call(attempt.action, attempt.arguments)
        known = self.find(situation)
        if known is not None and attempt.reflex:
            self._count_use(known, success=success)
            return
        tallies = {name: dict(one) for name, one in self._kept.tallies.items()}
        counts = tallies.pop(situation, {})
        digest = content_id(call)
        counts[digest] = counts.get(digest, 0) + 1 if success else 0
        tallies[situation] = counts
        while len(tallies) > MOST_TALLIES:
            del tallies[next(iter(tallies))]
        self._change(tallies=tallies)
        if known is None and counts[digest] >= self._after:
            self._compile(attempt)

    def _compile(self, attempt: _Attempt) -> None:
        situation = attempt.situation
        text = f"Call {attempt.action} with {json.dumps(attempt.arguments, ensure_ascii=False)}"
        tallies = {name: one for name, one in self._kept.tallies.items() if name != situation}
        self._change(tallies=tallies)
        problem = self._objection(text)
        if problem:
            self._note(f"Not compiled: {one_line(text, 200)}. {problem}")
            return
        version = self._kept.versions.get(situation, 0) + 1
        made = CompiledProcedure(
            situation=situation,
            action=attempt.action,
            arguments=attempt.arguments,
            author=self._author,
            version=version,
            cycle=self._cycle,
        )
        procedures = (*self.procedures, made)[-MOST_PROCEDURES:]
        held = {one.situation for one in procedures} | set(tallies)
        versions = {name: n for name, n in self._kept.versions.items() if name in held}
        self._change(procedures=procedures, versions={**versions, situation: version})
        self._note(f"Compiled after {self._after} successes in a row: {made.line}")

    def _count_use(self, known: CompiledProcedure, *, success: bool) -> None:
        field = "hits" if success else "failures"
        used = known.model_copy(update={field: getattr(known, field) + 1})
        others = tuple(one for one in self.procedures if one.situation != known.situation)
        if used.failures >= MOST_FAILURES:
            self._change(procedures=others)
            self._note(f"Dropped, since it failed {used.failures} times: {used.line}")
            return
        same = tuple(used if one.situation == used.situation else one for one in self.procedures)
        self._change(procedures=same)

    # ---- saving ----

    def save_state(self) -> Mapping[str, Any]:
        """The procedures and all counts as JSON; only what there is."""
        return self._kept.model_dump(mode="json", exclude_defaults=True)

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state.

        Raises:
            pydantic.ValidationError: It is none.
        """
        self._kept = _State.model_validate(state)

    def reset_state(self) -> None:
        """Forgets every procedure and count."""
        self._kept = _State()


def _call(action: str, arguments: Mapping[str, Any]) -> str:
    """The same text for the same call."""
    return f"{action} {json.dumps(arguments, sort_keys=True, ensure_ascii=False)}"


def _same_state(one: str, other: str) -> bool:
    """Whether two situations differ at most in what was said."""
    return one.partition("-")[0] == other.partition("-")[0]
