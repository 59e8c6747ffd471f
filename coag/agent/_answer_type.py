"""The type of an agent's answers in its component."""

from __future__ import annotations

from typing import Any

from autogen_agentchat.messages import StructuredMessageFactory
from autogen_core import ComponentModel
from pydantic import BaseModel

from coag.errors import ConfigurationError
from coag.schema import from_import_name, import_name


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
