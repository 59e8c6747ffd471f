"""Constraints, and what else goes by import name, within a component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autogen_core import ComponentLoader, ComponentModel
from pydantic import BaseModel, ConfigDict

from coag.context import check_public, nested_component
from coag.cycle import BoundRule, ConstraintSet, JudgedBy, NamedConstraint, check_rule
from coag.errors import ConfigurationError
from coag.schema import Candidate, Constraint, Imported, Verdict, check_own_code, from_import_name

Part = str | Imported | ComponentModel
"""An import name, a class with arguments, or an AutoGen component."""


class ConstraintConfig(BaseModel):
    """A constraint under a name that is not its own."""

    model_config = ConfigDict(extra="forbid")

    name: str
    """The name by which logs and errors call it."""
    rule: Part


@dataclass(frozen=True, slots=True)
class RuleUnderName:
    """A loaded constraint under a name that is not its own."""

    name: str
    rule: Constraint

    def __call__(self, candidate: Candidate, state: Any, projection: Any | None, /) -> Verdict:
        """The rule's verdict."""
        return self.rule(candidate, state, projection)

    def within(self, known: JudgedBy) -> Constraint:
        """The rule as it judges by what was said, where it asks for that."""
        return self.rule.within(known) if isinstance(self.rule, BoundRule) else self


def part_of(value: object, where: str) -> Part:
    """How to get a value again.

    Raises:
        ConfigurationError: It cannot be had again; names where it was given.
    """
    if hasattr(value, "dump_component") and not isinstance(value, type):
        return nested_component(value, where)
    try:
        found = Imported.of(value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    check_public(found.arguments, f"{where}: {found.name}")
    return found.name if found.arguments is None else found


def get_part(part: Part) -> Any:
    """The value that `part_of` was given.

    Raises:
        ConfigurationError: There is no such thing any more.
    """
    if isinstance(part, str):
        found = from_import_name(part)
        check_own_code(found, part)
        return found
    if isinstance(part, Imported):
        return part.get()
    return ComponentLoader.load_component(part, expected=object)


def constraint_config(rule: object) -> ConstraintConfig | Part:
    """How to get a constraint again, under its own name or the one that it was given."""
    if isinstance(rule, RuleUnderName):
        return ConstraintConfig(name=rule.name, rule=part_of(rule.rule, "constraints="))
    if not isinstance(rule, NamedConstraint):
        return part_of(rule, "constraints=")
    own = constraint_config(rule.judge)
    if isinstance(own, ConstraintConfig):
        return own.model_copy(update={"name": rule.name})
    if _own_name(rule.judge) == rule.name:
        return own
    return ConstraintConfig(name=rule.name, rule=own)


def asks_what_was_said(rule: object) -> bool:
    """Whether a constraint judges by the dialogue."""
    return isinstance(rule.rule if isinstance(rule, RuleUnderName) else rule, BoundRule)


def _own_name(rule: Constraint) -> str:
    constraints = ConstraintSet()
    return constraints.add(rule)


def from_constraint_config(config: ConstraintConfig | Part) -> Any:
    """The constraint that `constraint_config` was given.

    Raises:
        ConfigurationError: There is no such thing any more, or it is no rule.
    """
    if isinstance(config, ConstraintConfig):
        return RuleUnderName(config.name, from_constraint_config(config.rule))
    rule = get_part(config)
    check_rule(rule)
    return rule
