"""What a fork does otherwise than the run it comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from pydantic import Field, JsonValue

from coag.errors import ConfigurationError
from coag.memory import parse_procedure
from coag.models import ModelSpec
from coag.schema import Value

_FENCE, _YAML_FENCE = "+++", "---"
"""The line before and after front matter, and that of other programs' files."""


class Changes(Value):
    """The changes of a fork; none of them by default."""

    model: str | None = None
    """A model spec that takes the place of the run's model, in every phase."""
    without_records: tuple[str, ...] = ()
    """Ids, or short ids, of records of long-term memory that are as if never written."""
    without_constraints: tuple[str, ...] = ()
    """Names of constraints that are not in force, whoever brings them."""
    procedures: dict[str, str] = Field(default_factory=dict)
    """New texts of procedures, by name."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Values by their path in the perceptual state, e.g. `battery`, or in working memory, e.g.
    `goal` or `perceptual_state.battery`; None takes away what may be absent."""

    @classmethod
    def of(
        cls,
        *,
        model: str | None = None,
        without_records: Iterable[str] = (),
        without_constraints: Iterable[str] = (),
        procedures: Iterable[str] = (),
        settings: Iterable[str] = (),
    ) -> Self:
        """Reads changes as they are written on a command line.

        Args:
            model: A model spec.
            without_records: Ids or short ids.
            without_constraints: Names.
            procedures: `NAME=FILE`, a procedure's text with or without front matter.
            settings: `PATH=VALUE`, the value as JSON.

        Raises:
            ConfigurationError: One of them is not of its form, or a file cannot be read.
        """
        return cls(
            model=model,
            without_records=tuple(without_records),
            without_constraints=tuple(without_constraints),
            procedures=dict(_procedure(text) for text in procedures),
            settings=dict(_setting(text) for text in settings),
        )

    def inheriting(self, listed: Iterable[str]) -> Self:
        """These changes on top of a parent's, which its recipe does not know of.

        What a parent was to do without records, procedures and values is in its memory and its
        state already; its model and its constraints are made by the recipe.

        Args:
            listed: The parent's changes, as `listed` gave them.

        Raises:
            ConfigurationError: The parent's model is a component file, which names code; such a
                one is loaded only if it is given again.
        """
        told = [text.partition(" ")[::2] for text in listed]
        models = [value for option, value in told if option == "--model"]
        if self.model is None and models and models[0].endswith(".json"):
            raise ConfigurationError(
                f"The run went on with the model of the component file {models[0]!r}, which is not "
                f"loaded unasked: add --model {models[0]} if you trust it."
            )
        rules = [value for option, value in told if option == "--without-constraint"]
        return self.model_copy(
            update={
                "model": self.model or next(iter(models), None),
                "without_constraints": tuple(dict.fromkeys([*rules, *self.without_constraints])),
            }
        )

    def listed(self) -> tuple[str, ...]:
        """Each change as it is written on the command line; texts of procedures are left out."""
        model = () if self.model is None else (f"--model {_public(self.model)}",)
        return (
            *model,
            *(f"--without-record {name}" for name in self.without_records),
            *(f"--without-constraint {name}" for name in self.without_constraints),
            *(f"--procedure {name}" for name in self.procedures),
            *(f"--set {path}={json.dumps(value)}" for path, value in self.settings.items()),
        )


def _public(spec: str) -> str:
    """A model spec as it may stand in a log; one that a factory reads is shown as it is."""
    try:
        return ModelSpec.parse(spec).public
    except ConfigurationError:
        return spec


def _procedure(text: str) -> tuple[str, str]:
    name, equals, file = text.partition("=")
    if not (name and equals and file):
        raise ConfigurationError(f"{text!r} names no procedure and file: write NAME=FILE.")
    try:
        source = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"Procedure {name!r} cannot be read: {error}") from error
    if not source.strip():
        raise ConfigurationError(f"{file!r} is empty, and procedure {name!r} needs a text.")
    procedure = parse_procedure(name, source)
    _check_fences(procedure.text, file)
    return name, procedure.text


def _check_fences(text: str, file: str) -> None:
    """Front matter that is not read as such would be told to the model.

    Raises:
        ConfigurationError: The text holds what was meant as front matter.
    """
    lines = [line.strip() for line in text.splitlines()]
    meant = [line for line in lines if line == _FENCE]
    meant += [lines[0]] if lines[0].startswith(_FENCE) or lines[0] == _YAML_FENCE else []
    if meant:
        raise ConfigurationError(
            f"{file!r} has a line {meant[0]!r} in its text: front matter is TOML between two lines "
            f"{_FENCE!r}, of which the first is the file's first line. Mend it, or leave it out."
        )


def _setting(text: str) -> tuple[str, JsonValue]:
    path, equals, value = text.partition("=")
    if not (path and equals):
        raise ConfigurationError(f"{text!r} sets nothing: write PATH=VALUE, e.g. battery=30.")
    try:
        parsed: Any = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"The value of {path!r} is no JSON: {value!r}. A text needs quotes: "
            f"--set '{path}=\"...\"'."
        ) from error
    return path, parsed
