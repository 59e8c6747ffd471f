"""Scripted models for agents: what to propose, cycle by cycle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from coag.models import ScriptedModel, ScriptedReply, ScriptedRequest

Proposal = tuple[str, str]
"""An action and its arguments as a JSON object in a string."""


def brain(
    *cycles: Proposal | Sequence[Proposal],
    situation: str = "All is calm.",
    before: Callable[[ScriptedRequest], object] = bool,
) -> ScriptedModel:
    """A model that proposes these candidates in each cycle, the last ones for ever.

    `before` is called before each answer.
    """
    remaining: list[Sequence[Proposal]] = [
        [one] if isinstance(one[0], str) else one  # pyright: ignore[reportAssignmentType] - distinguished by its first item
        for one in cycles
    ]

    def candidates() -> list[dict[str, Any]]:
        now = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        return [{"action": name, "arguments": raw, "score": 0.5} for name, raw in now]

    def think(request: ScriptedRequest) -> ScriptedReply:
        before(request)
        reasoning: Mapping[str, Any] = {
            "situation": situation,
            "risks": ["a risk"],
            "goal_status": "open",
        }
        match request.schema_name:
            case "ReasoningAnswer":
                return reasoning
            case "ProposalAnswer":
                return {"candidates": candidates()}
            case "EvaluationAnswer":
                judged = [{"candidate": n, "reason": "so", "score": 0.5} for n in range(1, 5)]
                return {"evaluations": judged}
            case "SelectionAnswer":
                return {"reason": "because", "choice": 1}
            case "DeliberationAnswer":
                return {**reasoning, "candidates": candidates()}
            case other:
                raise AssertionError(f"Nothing asks for {other!r}.")

    return ScriptedModel(think)


def respond(text: str = "Done.") -> Proposal:
    """Proposes the answer."""
    return "respond", f'{{"text": "{text}"}}'
