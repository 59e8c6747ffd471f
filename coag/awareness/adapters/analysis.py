"""What the analyses of both domains have in common, and how it becomes an observation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator

from coag.awareness.fields import Foreign, ForeignText, Share
from coag.awareness.goals import GoalSource, GoalStatus
from coag.awareness.observation import GoalChange, ObservedGoal, ParsedValue
from coag.schema import Value

STATED_PRIORITY = 0.7
"""Of a goal that somebody states, by default (listing 1)."""
QUESTION_PRIORITY = 0.6
"""Of the goal to answer a question (listing 1)."""

ForeignNames = tuple[Foreign, ...]


def from_text(field: str) -> BeforeValidator:
    """Takes a mere text as an object with that text in this field."""
    return BeforeValidator(lambda given: {field: given} if isinstance(given, str) else given)


class StatedGoal(Value):
    """A goal that somebody stated."""

    description: Foreign
    priority: Share = STATED_PRIORITY
    parent: Foreign | None = None
    """The goal that it serves, by its description or id."""
    depends_on: ForeignNames = ()
    """Goals that must be completed first, by description or id."""
    completion_criteria: Foreign | None = None
    """How one can see that it is reached."""


class Analysis(ParsedValue):
    """The analysis of one input, made by hand or by a model."""

    message: ForeignText = ""
    """The input, word for word; it is not kept in the state."""
    goals: tuple[Annotated[StatedGoal, from_text("description")], ...] = ()
    """Goals that were stated; a mere text is a goal of that description."""
    questions: ForeignNames = ()
    """Questions that were asked; each becomes a goal to answer it."""
    answered: ForeignNames = ()
    """Earlier questions that have their answer now, as they were asked."""
    completed: ForeignNames = ()
    """Goals that are reached, by description or id."""
    abandoned: ForeignNames = ()
    """Goals that were given up, by description or id."""
    assumptions: ForeignNames = ()
    """What is assumed without being known."""
    unknowns: ForeignNames = ()
    """What would have to be known and is not."""
    resolved: ForeignNames = ()
    """Earlier assumptions and unknowns that are settled now."""

    def observed_goals(self) -> tuple[ObservedGoal, ...]:
        """The goals that were stated, and those to answer what was asked."""
        stated = (
            ObservedGoal(
                source=GoalSource.SPAWNED if goal.parent else GoalSource.EXPLICIT,
                **goal.model_dump(),
            )
            for goal in self.goals
        )
        questions = (
            ObservedGoal(
                description=f"Answer: {question}",
                source=GoalSource.INFERRED,
                priority=QUESTION_PRIORITY,
            )
            for question in self.questions
        )
        return (*stated, *questions)

    def common_parts(self) -> dict[str, Any]:
        """The parts of an observation that are the same in every domain."""
        done = (*self.completed, *(f"Answer: {question}" for question in self.answered))
        return {
            "goals": self.observed_goals(),
            "goal_changes": (
                *(GoalChange(goal=goal, status=GoalStatus.COMPLETED) for goal in done),
                *(GoalChange(goal=goal, status=GoalStatus.ABANDONED) for goal in self.abandoned),
            ),
            "assumptions": self.assumptions,
            "unknowns": self.unknowns,
            "resolved": self.resolved,
        }


def as_set(names: Iterable[str]) -> str:
    """The names in the paper's notation: `{'cooking', 'pasta carbonara'}`."""
    return "{" + ", ".join(repr(name) for name in names) + "}"
