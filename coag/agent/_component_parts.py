"""What stands in an agent's component by import name: rules, modules, functions, types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from autogen_agentchat.messages import StructuredMessageFactory
from autogen_core import ComponentLoader, ComponentModel
from pydantic import BaseModel, ConfigDict

from coag.context import check_public, nested_component
from coag.cycle import ConstraintSet, NamedConstraint
from coag.errors import ConfigurationError
from coag.schema import (
    Candidate,
    Constraint,
    Imported,
    Verdict,
    from_import_name,
    import_name,
)

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
        return from_import_name(part)
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


def _own_name(rule: Constraint) -> str:
    constraints = ConstraintSet()
    return constraints.add(rule)


def from_constraint_config(config: ConstraintConfig | Part) -> Any:
    """The constraint that `constraint_config` was given."""
    if isinstance(config, ConstraintConfig):
        return RuleUnderName(config.name, get_part(config.rule))
    return get_part(config)


def output_fields(kind: type[BaseModel] | None) -> dict[str, Any]:
    """The fields of a component that tell the type of answers.

    By import name where it has one; else as AutoGen does it, from which a like type is made.

    Raises:
        ConfigurationError: It cannot be imported, nor made again from its JSON Schema.
    """
    if kind is None:
        return {}
    try:
        name = import_name(kind)
    except ConfigurationError:
        name = "__main__:"
    if not name.startswith("__main__:"):
        return {"output_content_type": name}
    try:
        once = StructuredMessageFactory(input_model=kind).dump_component()
        # What AutoGen makes of a schema has a schema that differs a little; the next is the same.
        again = StructuredMessageFactory(input_model=_made(once)).dump_component()
    except Exception as error:  # AutoGen's own errors here derive from nothing narrower
        raise ConfigurationError(
            f"output_content_type= {kind.__name__} cannot be written down: {error}. Move it to "
            "the top level of a module."
        ) from error
    return {"structured_message_factory": again}


def load_output_type(name: str | None, factory: ComponentModel | None) -> dict[str, Any]:
    """The arguments that `output_fields` was given; with AutoGen's own format, where it has one."""
    if name is not None:
        return {"output_content_type": from_import_name(name)}
    if factory is None:
        return {}
    given: dict[str, Any] = {"output_content_type": _made(factory)}
    text = factory.config.get("format_string")
    return given if text is None else {**given, "output_content_type_format": text}


def _made(factory: ComponentModel) -> type[BaseModel]:
    made = StructuredMessageFactory.load_component(factory).ContentModel
    # AutoGen loses the description, which models read.
    made.__doc__ = factory.config["json_schema"].get("description")
    return made
