"""What an explanation of a decision consists of."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from coag.proof.forking import Choice
from coag.schema import HtmlTable, Percept, RecalledRecord, Value, Verdict, html_card


class ProcedureUsed(Value):
    """A procedure by which a model was asked in the cycle, in the version that was pinned."""

    name: str
    version: int
    author: str = ""
    """Who wrote this version; `seed` for a developer's file, empty where the trace lacks it."""
    reason: str = ""
    """Why it was written."""
    text: str = ""


class Considered(Value):
    """A candidate, and everything that was found out about it."""

    id: str
    choice: Choice
    because: str = ""
    """Why it was proposed."""
    expected_effect: str = ""
    verdicts: tuple[Verdict, ...] = ()
    """What each check and constraint said, in order; the first that forbids ends the list."""
    died_of: Verdict | None = None
    """The verdict that ended it; None for a survivor."""
    projection: dict[str, Any] | None = None
    """The state that the domain's forward model predicted."""
    score: float | None = None
    judged: str = ""
    """The model's judgement in words."""
    chosen: bool = False


class Explanation(Value):
    """What the decision of one cycle rested on, as far as its trace tells."""

    run: str
    """The run's id."""
    kind: str
    """`coag` or `plain`."""
    cycle: int
    """The cycle; of a plain run the turn, which may hold several actions."""
    goal: str = ""
    state: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The perceptual state that the decision rested on, as JSON; empty where there is none."""
    percepts: tuple[Percept, ...] = ()
    """What had arrived since the last action."""
    query: str = ""
    """What long-term memory was asked."""
    recalled: tuple[RecalledRecord, ...] = ()
    """What it brought back, best first, with scores and provenance."""
    left_out: tuple[str, ...] = ()
    """Ids of what it brought back too and for which the prompt had no room, best first."""
    procedures: tuple[ProcedureUsed, ...] = ()
    """In the order in which models were asked by them."""
    constraints: tuple[str, ...] = ()
    """Those in force, in the order in which they are asked."""
    models: tuple[str, ...] = ()
    """The models that were asked."""
    situation: str = ""
    """How Reasoning understood the situation."""
    risks: tuple[str, ...] = ()
    considered: tuple[Considered, ...] = ()
    """Every candidate; of a plain run every action that was begun."""
    decided_by: str | None = None
    """`model`, `rank` or `only_survivor`; None for an impasse, or if nothing was decided yet."""
    reason: str = ""
    """Why it was chosen, in the words of who decided."""
    status: str | None = None
    """How Execution ended; None if it was not reached, and for plain runs."""
    result: str = ""
    """What was brought back, or the answer."""
    notes: tuple[str, ...] = ()
    """What did not go as it should: fallbacks, repairs, parts left out."""

    @property
    def chosen(self) -> tuple[Choice, ...]:
        """What was decided on; empty for an impasse."""
        return tuple(one.choice for one in self.considered if one.chosen)

    def _repr_html_(self) -> str:
        rows = [
            (
                "chosen" if one.chosen else "",
                str(one.choice),
                one.score,
                one.died_of and f"{one.died_of.constraint}: {one.died_of.reason}",
                one.because,
            )
            for one in self.considered
        ]
        return html_card(
            f"Cycle {self.cycle} of {self.run}",
            facts=[
                ("goal", self.goal or None),
                ("situation", self.situation or None),
                ("recalled", len(self.recalled) or None),
                ("no room in the prompt for", len(self.left_out) or None),
                ("constraints", ", ".join(self.constraints) or None),
                ("decided by", self.decided_by),
                ("reason", self.reason or None),
                ("status", self.status),
                ("result", self.result or None),
            ],
            lines=self.notes,
            table=HtmlTable(
                columns=("", "candidate", "score", "died of", "why proposed"), rows=rows
            ),
        )
