"""Change requests, and how each is worked into the sources of each agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from coag.errors import ConfigurationError, UnknownNameError

_CONSTRAINTS = "case_study/robot/_constraints.py"
_UTILITY = "case_study/robot/prompts/utility.md"
_SELECTION = "case_study/robot/procedures/selection.md"
_PROCEDURES = tuple(
    f"case_study/robot/procedures/{name}.md"
    for name in ("proposal", "evaluation", "selection", "deliberation")
)
_LAST_RULE = '        "no_move_into_known_obstacle": no_move_into_known_obstacle,\n'
_CLASS = "@dataclass(frozen=True, slots=True)\nclass ForbidCleaning:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRequest:
    """What somebody wants to be otherwise from now on."""

    name: str
    """How it is asked for."""
    sentence: str
    """The request in words, as it is written into prompts."""
    rule: str
    """Name of the function that is the request in code."""
    code: str
    """That function."""
    scenario: str
    """Where it is tried out."""


_FORBID = '''
def no_cleaning_of_2_1(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """Cell (2, 1) must not be cleaned."""
    if candidate.action != CLEAN or state.position != (2, 1):
        return Verdict.allow()
    return Verdict.forbid("cleaning cell (2, 1) is forbidden")
'''

_RESERVE = '''
def reserve_of_40_for_cleaning(
    candidate: Candidate, state: VacuumState, projection: VacuumState | None
) -> Verdict:
    """No cleaning may leave less than 40 battery."""
    if candidate.action != CLEAN or projection is None or projection.battery >= 40:
        return Verdict.allow()
    return Verdict.forbid(f"afterwards the battery would hold {projection.battery}, not 40")
'''

CHANGES: Mapping[str, ChangeRequest] = MappingProxyType(
    {
        change.name: change
        for change in (
            ChangeRequest(
                name="forbidden-cell",
                sentence="From now on, cleaning cell (2, 1) is forbidden.",
                rule="no_cleaning_of_2_1",
                code=_FORBID,
                scenario="phantom-object",
            ),
            ChangeRequest(
                name="reserve",
                sentence="From now on, no cleaning may leave less than 40 battery in reserve.",
                rule="reserve_of_40_for_cleaning",
                code=_RESERVE,
                scenario="phantom-object",
            ),
        )
    }
)
"""The change requests by name; the first is the paper's scenario D."""

CELL, RESERVE = (2, 1), 40
"""What the two requests are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to meet a request: where it is written, and which agent is to heed it."""

    name: str
    """How it is called."""
    agent: str
    """The contender whose sources are changed."""
    summary: str
    """What is done, in a sentence."""
    prompts: tuple[str, ...] = ()
    """Prompts that get the sentence as a further line."""
    constrains: bool = False
    """Whether the rule is written as a constraint in code."""


WAYS: Mapping[str, Way] = MappingProxyType(
    {
        way.name: way
        for way in (
            Way(
                name="plain-prompt",
                agent="plain",
                summary="a line in the one prompt of the plain agent",
                prompts=(_UTILITY,),
            ),
            Way(
                name="plain-constraint",
                agent="plain-guarded",
                summary="a constraint that guards the plain agent's tools",
                constrains=True,
            ),
            Way(
                name="coag-selection",
                agent="coag-full",
                summary="a line in CoAG's Selection procedure, as the paper did",
                prompts=(_SELECTION,),
            ),
            Way(
                name="coag-procedures",
                agent="coag-full",
                summary="a line in each procedure by which CoAG chooses",
                prompts=_PROCEDURES,
            ),
            Way(
                name="coag-constraint",
                agent="coag-full",
                summary="a constraint of CoAG",
                constrains=True,
            ),
        )
    }
)
"""The ways by name; the same constraint serves both kinds of agents."""


def change_named(name: str) -> ChangeRequest:
    """The change request of this name.

    Raises:
        UnknownNameError: There is none; the message lists those that exist.
    """
    if name not in CHANGES:
        raise UnknownNameError("change request", name, CHANGES)
    return CHANGES[name]


def edited(change: ChangeRequest, way: Way, sources: Mapping[str, str]) -> dict[str, str]:
    """The files that a way changes, as they are afterwards.

    Args:
        change: What is wanted.
        way: How it is done.
        sources: The text of each file of `files_of(way)`.

    Raises:
        ConfigurationError: A source is not as the edit expects it.
    """
    after = {path: _with_line(sources[path], change.sentence) for path in way.prompts}
    if way.constrains:
        after[_CONSTRAINTS] = _with_rule(sources[_CONSTRAINTS], change)
    return after


def files_of(way: Way) -> tuple[str, ...]:
    """The files that a way touches, relative to where the packages lie."""
    return (*way.prompts, *((_CONSTRAINTS,) if way.constrains else ()))


def _with_line(text: str, sentence: str) -> str:
    marker = "- " if "\n- " in text else ""
    return f"{text.rstrip()}\n{marker}{sentence}\n"


def _with_rule(text: str, change: ChangeRequest) -> str:
    if text.count(_LAST_RULE) != 1 or text.count(_CLASS) != 1:
        raise ConfigurationError(
            f"{_CONSTRAINTS} is not as it was when the change {change.name!r} was written: "
            "write `case_study/maintainability/_change.py` anew for it."
        )
    listed = f'        "{change.rule}": {change.rule},\n'
    written = text.replace(_CLASS, f"{change.code.lstrip()}\n\n{_CLASS}")
    return written.replace(_LAST_RULE, _LAST_RULE + listed)
