"""The story of a CoAG run: pictures of its phases, from its trace alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from coag.schema import (
    Candidate,
    Evaluation,
    EvaluationOutcome,
    ExecutionOutcome,
    ExecutionStatus,
    Outcome,
    Percept,
    Phase,
    ProposalOutcome,
    ReasoningOutcome,
    RetrievalOutcome,
    SelectionOutcome,
    Snapshot,
    TraceRecord,
    merge_patch,
    parsed_arguments,
)
from vacuum_world.world import Cell, last_state_line

from ._boards import Board, believed_board, world_board
from ._scenes import Chapter, Mark, Option, Scene, call_text, said, way_of

_PATH_KEPT = 400
_SCENES_KEPT = 12
"""A cycle has six phases; a trace that says otherwise makes no longer chapter."""
_OPTIONS_KEPT = 8


class Deliberation:
    """Takes the records of a run in order, and gives a chapter when its cycle is over.

    Args:
        name: The run's robot.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._state: Any = {}
        self._truth: Board | None = None
        self._belief: Board | None = None
        self._path: deque[Cell] = deque(maxlen=_PATH_KEPT)
        self._scenes: list[Scene] = []
        self._options: tuple[Option, ...] = ()
        self._ids: tuple[str, ...] = ()
        self._executed: ExecutionOutcome | None = None
        self._snapped = False

    def take(self, record: TraceRecord) -> Iterator[Chapter]:
        """Takes in the next record; gives the cycle before it, if one is over now."""
        match record:
            case Snapshot():
                self._snapshot(record)
            case Percept():
                self._perceive(record)
            case RetrievalOutcome():
                yield from self.end()
                self._outcome(record)
            case _ if record.record == "outcome":
                self._outcome(record)
            case _:
                pass

    def end(self) -> Iterator[Chapter]:
        """The cycle that was going on, if there was one."""
        if self._executed is not None:
            self._settle(self._executed)
        if self._scenes:
            yield Chapter(cycle=self._scenes[0].cycle, scenes=tuple(self._scenes))
        self._scenes, self._options, self._ids, self._executed = [], (), (), None

    def _snapshot(self, record: Snapshot) -> None:
        self._believe(record.working_memory.get("perceptual_state"))
        if record.environment is not None:
            self._truth = world_board(record.environment, self._name)
            self._snapped = True
        self._go()

    def _perceive(self, record: Percept) -> None:
        if record.state_patch:
            self._believe(merge_patch(self._state, record.state_patch))

    def _believe(self, state: Any) -> None:
        self._state = state if isinstance(state, dict) else {}
        self._belief = believed_board(self._state)

    def _go(self) -> None:
        """Notes where the robot is, if it is elsewhere than before."""
        board = self._truth or self._belief
        if board and board.robot and (not self._path or self._path[-1] != board.robot):
            self._path.append(board.robot)

    def _outcome(self, outcome: Outcome) -> None:
        match outcome:
            case RetrievalOutcome():
                if outcome.records:
                    count = len(outcome.records)
                    first = said(outcome.records[0].record.text, 160)
                    self._show(outcome, f"Recalled {count}: {first}", lasting=1.2)
                self._go()
            case ReasoningOutcome():
                self._show(outcome, said(outcome.situation) or "It says nothing.", lasting=1.2)
            case ProposalOutcome():
                self._propose(outcome)
            case EvaluationOutcome():
                self._evaluate(outcome)
            case SelectionOutcome():
                self._select(outcome)
            case ExecutionOutcome():
                self._executed, self._snapped = outcome, False

    def _propose(self, outcome: ProposalOutcome) -> None:
        kept = outcome.candidates[:_OPTIONS_KEPT]
        self._ids = tuple(one.id for one in kept)
        self._options = tuple(map(_proposed, kept))
        count = len(outcome.candidates)
        plural = "candidate" if count == 1 else "candidates"
        self._show(outcome, f"{count} {plural}, nothing done yet." if count else "No candidate.")

    def _evaluate(self, outcome: EvaluationOutcome) -> None:
        found = {one.candidate_id: one for one in outcome.evaluations}
        self._options = tuple(
            _judged(option, found.get(identity))
            for identity, option in zip(self._ids, self._options, strict=True)
        )
        dead = sum(not one.survived for one in outcome.evaluations)
        live = len(outcome.evaluations) - dead
        about = f"All {live} are allowed." if live else "There is nothing to judge."
        if dead:
            reasons = (one.reason for one in self._options if one.mark is Mark.REJECTED)
            about = f"{dead} of {dead + live} rejected by code: {next(reasons, '')}"
        self._show(outcome, about, lasting=1.6 if dead else 1.0)

    def _select(self, outcome: SelectionOutcome) -> None:
        chosen = set(outcome.chosen)
        self._options = tuple(
            replace(option, mark=Mark.CHOSEN) if identity in chosen else option
            for identity, option in zip(self._ids, self._options, strict=True)
        )
        if outcome.impasse:
            self._show(outcome, "An impasse: no candidate survived.", lasting=1.6)
            return
        who = {"model": "the model", "rank": "the ranking"}.get(str(outcome.decided_by), "")
        how = f"Chosen by {who}." if who else "The only one left."
        self._show(outcome, f"{how} {said(outcome.reason, 160)}".strip())

    def _settle(self, outcome: ExecutionOutcome) -> None:
        """Shows what came of an execution, when all that it brought is known."""
        reading = last_state_line(outcome.result)
        by_return = not self._snapped and self._truth is not None and reading is not None
        if by_return and self._truth and reading:
            self._truth = self._truth.after(reading)
        self._go()
        self._show(outcome, _result(outcome), lasting=1.2, by_return=by_return)

    def _show(
        self, outcome: Outcome, about: str, *, lasting: float = 1.0, by_return: bool = False
    ) -> None:
        if len(self._scenes) >= _SCENES_KEPT:
            return
        self._scenes.append(
            Scene(
                cycle=outcome.cycle,
                phase=Phase(outcome.phase).value,
                about=about,
                options=self._options,
                truth=self._truth,
                belief=self._belief,
                path=tuple(self._path),
                by_return=by_return,
                lasting=lasting,
            )
        )


def _proposed(candidate: Candidate) -> Option:
    arguments = candidate.arguments or parsed_arguments(candidate.raw_arguments)
    return Option(
        text=call_text(candidate.action, arguments),
        mark=Mark.PROPOSED,
        reason=said(candidate.reason, 120),
        way=way_of(candidate.action, arguments),
    )


def _judged(option: Option, evaluation: Evaluation | None) -> Option:
    if evaluation is None:
        return option
    dead = evaluation.died_of
    if dead is None:
        return replace(option, mark=Mark.ALLOWED, score=evaluation.score)
    died_of, reason = said(dead.constraint, 60), said(dead.reason, 160)
    return replace(option, mark=Mark.REJECTED, died_of=died_of, reason=reason)


def _result(outcome: ExecutionOutcome) -> str:
    if outcome.status is ExecutionStatus.NONE:
        return "Nothing was done."
    done = call_text(outcome.action or "", outcome.arguments)
    if outcome.response is not None:
        return f"Answers: {said(outcome.response, 200)}"
    return f"{done}: {outcome_words(outcome.status.value, outcome.result)}"


def outcome_words(status: str, result: str) -> str:
    """How an action ended, in the world's words where it gave any."""
    reading = last_state_line(result)
    if reading is None:
        return f"{status}. {said(result, 160)}".strip()
    x, y = reading.position
    failed = parsed_arguments(said(result.partition("\n")[0], 600)).get("reason")
    why = f" {said(failed, 120)}" if isinstance(failed, str) and failed else ""
    stranded = " Stranded." if reading.stranded else ""
    return f"{status}.{why} Now at ({x}, {y}) with battery {reading.battery}.{stranded}"
