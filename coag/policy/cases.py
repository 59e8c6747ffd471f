"""The cases of a policy file: calls, and what its rules make of them, by the agent's own code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from coag._util.text import ellipsis
from coag.context import WorkingMemory
from coag.cycle import RESPOND, ConstraintSet
from coag.schema import ActionSpec, Candidate, Percept, PerceptKind, Trust, UnsettledAction

from .policy import Expected, Policy, PolicyCase

_SHOWN = 300


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case."""

    case: PolicyCase
    got: Expected
    by: str
    """The rule that forbade or asked; empty if the call is allowed."""
    reason: str

    @property
    def passed(self) -> bool:
        """Whether it is as the file expects."""
        return self.got == self.case.expect and self.case.by in (None, self.by)

    @property
    def text(self) -> str:
        """The case and its result, in a line."""
        case = self.case
        given = ", ".join(f"{name}={value!r}" for name, value in case.arguments.items())
        call = ellipsis(f"{case.tool}({given})", _SHOWN)
        by = f" by {self.by}: {self.reason}" if self.by else ""
        wanted = f", not {case.expect}" + (f" by {case.by}" if case.by else "")
        return f"line {case.line}: {call}: {self.got}{'' if self.passed else wanted}{by}"


def run_cases(policy: Policy) -> tuple[CaseResult, ...]:
    """What the rules of a policy make of its cases; nothing is called."""
    return tuple(result_of(policy, case) for case in policy.cases)


def result_of(policy: Policy, case: PolicyCase) -> CaseResult:
    """What the rules make of one call: the first that forbids it, or that asks about it."""
    asking = policy.approval
    rules = ConstraintSet(policy, approvals=asking)
    rules.pin()
    unsettled = tuple(
        UnsettledAction(intent_id=f"unsettled-{n}", action=name, arguments={}, cycle=1)
        for n, name in enumerate(case.unsettled)
    )
    candidate = Candidate(
        id="case", action=case.tool, arguments=case.arguments, unsettled=unsettled
    )
    verdicts = rules.judge(
        candidate, case.state, case.after, _memory_of(rules, case), _spec_of(policy, case)
    )
    no = next((one for one in verdicts if not one.allowed), None)
    if no is not None:
        return CaseResult(case, "forbid", no.constraint, no.reason)
    for rule in policy:
        if why := rule.why_asked(case.tool, case.arguments):
            return CaseResult(case, "ask", rule.name, why)
    return CaseResult(case, "allow", "", "")


def _memory_of(rules: ConstraintSet, case: PolicyCase) -> WorkingMemory:
    """A working memory in which the calls before have been perceived."""
    memory = WorkingMemory(activity="case", goal=case.said, counted=rules.counted())
    for n, call in enumerate(case.done):
        memory = memory.perceive(
            Percept(
                id=f"percept-{n}",
                at=datetime(2026, 1, 1, tzinfo=UTC),
                kind=PerceptKind.TOOL_RETURN,
                source=call.tool,
                trust=Trust.UNTRUSTED,
                content="",
                caused_by=f"intent-{n}",
                arguments=call.arguments,
                state_patch={},
            )
        )
    return memory


def _spec_of(policy: Policy, case: PolicyCase) -> ActionSpec:
    """The tool as far as a case shows it: it takes what is given and what rules look at."""
    if case.tool == RESPOND.name:
        return RESPOND
    trusted = (name for rule in policy for name in rule.only_trusted or ())
    fields: Mapping[str, Any] = {name: {} for name in (*case.arguments, *trusted)}
    parameters = {"type": "object", "properties": dict(fields)}
    return ActionSpec(name=case.tool, description="", parameters=parameters)
