"""What the analyses of the two domains have in common, and how it becomes an observation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Self

from pydantic import BeforeValidator, ValidationError

from coag.awareness.observation import GoalChange, ObservedGoal, where_wrong
from coag.awareness.state import GoalSource, GoalStatus, Heard, HeardText, Share
from coag.errors import ObservationError
from coag.schema import Value

STATED_PRIORITY = 0.7
"""Of a goal that somebody states, unless they say otherwise (listing 1)."""
QUESTION_PRIORITY = 0.6
"""Of the goal to answer a question (listing 1)."""


HeardNames = tuple[Heard, ...]


class StatedGoal(Value):
    """A goal that somebody stated."""

    description: Heard
    priority: Share = STATED_PRIORITY
    parent: Heard | None = None
    """The goal that it serves, by its description or id."""
    depends_on: HeardNames = ()
    """Goals that come first, by description or id."""
    completion_criteria: Heard | None = None
    """How one can tell that it is reached."""


def _from_text(given: object) -> object:
    return {"description": given} if isinstance(given, str) else given


StatedGoals = tuple[Annotated[StatedGoal, BeforeValidator(_from_text)], ...]
"""Goals; a mere text is a goal of that description."""


class Analysis(Value):
    """What was made of one input: by hand, or by a model."""

    message: HeardText = ""
    """What came in, word for word; it is not kept in the state."""
    goals: StatedGoals = ()
    """Goals that were stated."""
    questions: HeardNames = ()
    """Questions that were asked; each becomes a goal to answer it."""
    answered: HeardNames = ()
    """Earlier questions that have their answer now, as they were asked."""
    completed: HeardNames = ()
    """Goals that are reached, by description or id."""
    abandoned: HeardNames = ()
    """Goals that were given up, by description or id."""
    assumptions: HeardNames = ()
    """What is taken for granted without being known."""
    unknowns: HeardNames = ()
    """What would have to be known and is not."""
    resolved: HeardNames = ()
    """Earlier assumptions and unknowns that are settled now."""

    @classmethod
    def parse(cls, raw: Mapping[str, object]) -> Self:
        """The analysis that this mapping says.

        Raises:
            ObservationError: It breaks the schema; the error names the place.
        """
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            path, problem = where_wrong(error)
            raise ObservationError(path, problem) from error

    def observed_goals(self) -> tuple[ObservedGoal, ...]:
        """The goals that were stated, and those to answer what was asked."""
        stated = (
            ObservedGoal(
                description=goal.description,
                source=GoalSource.SPAWNED if goal.parent else GoalSource.EXPLICIT,
                priority=goal.priority,
                parent=goal.parent,
                depends_on=goal.depends_on,
                completion_criteria=goal.completion_criteria,
            )
            for goal in self.goals
        )
        asked = (
            ObservedGoal(
                description=_to_answer(question),
                source=GoalSource.INFERRED,
                priority=QUESTION_PRIORITY,
            )
            for question in self.questions
        )
        return (*stated, *asked)

    def goal_changes(self) -> tuple[GoalChange, ...]:
        """What became of earlier goals."""
        done = (*self.completed, *map(_to_answer, self.answered))
        return (
            *(GoalChange(goal=goal, status=GoalStatus.COMPLETED) for goal in done),
            *(GoalChange(goal=goal, status=GoalStatus.ABANDONED) for goal in self.abandoned),
        )


def _to_answer(question: str) -> str:
    return f"Answer: {question}"


def as_set(names: Iterable[str]) -> str:
    """The names as the paper writes them: `{'cooking', 'pasta carbonara'}`."""
    return "{" + ", ".join(repr(name) for name in names) + "}"
