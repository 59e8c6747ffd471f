"""`DepthModule`: how deeply to deliberate, as a decision that is routed like any other.

With `depth="auto"` code chooses the depth of a cycle. Where its evidence leaves that open, this
module advises one call or the full six phases: it draws by what has paid after the action before.
What came of the cycle is its reward. It is never asked where something is at stake.
"""

from __future__ import annotations

import random
from asyncio import to_thread
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coag._util.validation import module_state
from coag.schema import (
    DepthAdvice,
    DepthEvidence,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Percept,
    Phase,
    ReasoningOutcome,
    Section,
    Situation,
    Value,
)

from .bridge import Consultation, Judgment
from .graph import START, Capability
from .routing import choose

_CALL = 0.05
"""What a model call costs, of a reward of 1."""
_USUAL = 0.6
"""Reward of a cycle that did what it was to do and brought the goal no nearer. Less one call it is
above 0.5: below that a weight falls with each use, and what is used less would look better."""
_DEPTHS = {
    "one_call": Capability(name="one_call", summary="one model call", cost=0.1),
    "full": Capability(name="full", summary="a model call a phase", cost=0.4),
}
_MOST_SAVED = 10_000_000
"""Characters of what was learned that are saved: all of it, there are two edges an action."""


class _DepthState(Value):
    """What the module keeps of its run."""

    current: str = START
    draws: int = 0
    learned: Mapping[str, Any] | None = None


class DepthModule:
    """Learns after which action it pays to deliberate in full; for `depth="auto"`.

    Give it as `CoagAgent(..., depth="auto", modules=[DepthModule("depth.json")])`. In a run it
    advises by what was known when the run began and by what the run itself reports, so that a
    replay draws the same, whatever other runs write into the file meanwhile.

    The reward of a cycle is 0 where its action failed or was refused, or no candidate survived;
    else 0.6 and 0.4 of the gain that the domain foresees of it, or 1 where it foresees none. Each
    model call costs 0.05. A cycle that ends the turn teaches nothing: whether an answer is
    right is not known here. What was chosen, with its probability, is in the trace
    (`ReasoningOutcome.depth`), and for off-policy estimates in `judgment.choices()`.

    Args:
        path: The file of a judgment on depths alone; None keeps it in RAM.
        name: The module's name in logs.
    """

    def __init__(self, path: str | Path | None = None, *, name: str = "depth") -> None:
        self.name = name
        self.judgment = Judgment(path)
        """What runs have reported."""
        self._detached = False
        self._begun: Judgment | None = None
        self._draws = 0
        self.reset_state()

    @property
    def _known(self) -> Judgment:
        """What this run advises by."""
        if self._begun is None:
            self._begun = _copy(self.judgment.learned(_MOST_SAVED))
        return self._begun

    async def advise_depth(self, evidence: DepthEvidence) -> DepthAdvice | None:
        """Draws a depth by what has paid after the action before.

        Raises:
            JudgmentError: The state cannot be read.
        """
        del evidence
        known = self._known
        known.discover({**_DEPTHS, **self._place()})
        advised = known.consult("", current=self._current, among=tuple(_DEPTHS))
        reports = known.status()["advice"]["reports"]
        one = choose(advised.advice, random.Random(f"{self.name} {reports} {self._draws}"))
        self._draws += 1
        self._advised = advised
        depth = "full" if one.capability == "full" else "one_call"
        return DepthAdvice(depth=depth, probability=one.probability, why=one.why, source=self.name)

    def _place(self) -> dict[str, str]:
        return {} if self._current == START else {self._current: "what was done before"}

    async def observe(self, event: Percept | Outcome) -> None:
        """Follows a cycle; its execution is what its depth is judged by.

        Raises:
            JudgmentError: The state cannot be written; the turn continues without.
        """
        if isinstance(event, Percept):
            return
        self._calls += event.usage.calls
        if isinstance(event, ReasoningOutcome):
            chosen = event.depth
            advice = None if chosen is None else chosen.evidence.advice
            self._chosen = "" if advice is None or advice.source != self.name else advice.depth
            self._calls, self._gains = event.usage.calls, {}
        elif isinstance(event, EvaluationOutcome):
            self._gains = {one.candidate_id: one.gain for one in event.evaluations}
        elif isinstance(event, ExecutionOutcome):
            await to_thread(self._executed, event)

    def _executed(self, outcome: ExecutionOutcome) -> None:
        chosen, advised = self._chosen, self._advised
        self._chosen, self._advised = "", None
        reward = self._reward(outcome)
        if chosen and advised is not None and reward is not None:
            for one in (self._known,) if self._detached else (self._known, self.judgment):
                one.discover({**_DEPTHS, **self._place()})
                one.report(
                    chosen,
                    reward,
                    cost=min(1.0, _CALL * self._calls),
                    consultation=advised,
                    drawn=True,
                    source=self.name,
                    trust="developer",
                )
        if outcome.ended_by is not None:
            self._current = START
        elif outcome.action is not None:
            failed = outcome.status is not ExecutionStatus.DONE
            self._current = f"after {outcome.action}{', which failed' if failed else ''}"

    def _reward(self, outcome: ExecutionOutcome) -> float | None:
        """What a cycle brought, from 0 to 1; None where that is not known."""
        if outcome.ended_by is not None or (not outcome.executed and not self._gains):
            return None
        if outcome.status is not ExecutionStatus.DONE:
            return 0.0
        gain = self._gains.get(outcome.candidate_id or "")
        return 1.0 if gain is None else min(1.0, max(0.0, _USUAL + (1 - _USUAL) * gain))

    async def contribute(self, phase: Phase, situation: Situation, budget: int) -> Section | None:
        """Nothing: the model is not shown how deeply it is asked."""

    # ---- State ----

    def save_state(self) -> Mapping[str, Any]:
        """Where the run is, and what it advises by."""
        learned = self._known.learned(_MOST_SAVED)
        kept = _DepthState(current=self._current, draws=self._draws, learned=learned)
        return kept.model_dump(mode="json")

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state, and advises by what was known then.

        Raises:
            StateError: It is none.
        """
        loaded = module_state(_DepthState, state, self.name)
        self.reset_state()
        self._current, self._draws = loaded.current, loaded.draws
        self._begun = _copy(loaded.learned)

    def detach(self) -> None:
        """For a replay or a fork: what it learns does not reach the file."""
        self._detached = True

    def reset_state(self) -> None:
        """Forgets the activity; what was learned stays."""
        self._current, self._calls = START, 0
        self._advised: Consultation | None = None
        self._chosen = ""
        self._gains: dict[str, float | None] = {}


def _copy(learned: Mapping[str, Any] | None) -> Judgment:
    """What was learned, without the reports that led to it, as after a saved state."""
    made = Judgment()
    if learned is not None:
        made.put_back(learned)
    return made
