"""Procedures: named prompts with placeholders, and what a version of one is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import Field, ValidationError

from coag.errors import ConfigurationError
from coag.schema import Moment, Value, Written

_FENCE = "+++"
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


class _FrontMatter(Value):
    """What may stand between the fences at the top of a procedure's file."""

    description: str = ""
    placeholders: tuple[str, ...] = ()


class Procedure(Value):
    """A named prompt as its developer wrote it: the seed of its first version."""

    name: str = Field(min_length=1)
    text: str = Field(min_length=1)
    placeholders: tuple[str, ...] = ()
    """Names that stand in braces in the text; every version must keep them."""
    description: str = ""
    """What it is for, in one sentence."""


class ProcedureVersion(Value):
    """A procedure as it stood from one change to the next."""

    version: int = Field(ge=1)
    text: str
    author: str
    """Name of the agent or person who wrote it; `seed` for a developer's file."""
    reason: str
    cycle: int | None
    """The agent's cycle in which it was written; None outside of one."""
    at: Moment
    diff: str
    """What changed from the version before, as a unified diff; empty for the first."""
    origins: tuple[str, ...] = ()
    """Ids of the records of long-term memory on which the change rests, and `source:NAME` for each
    source of untrusted text that had been shown."""
    undoes: tuple[int, ...] = ()
    """Versions whose changes this one took back, since what they rested on was revoked."""

    def written(self, procedure: str) -> Written:
        """The line of the trace that says that this version was committed."""
        return Written(
            at=self.at,
            cycle=self.cycle or 0,
            what="procedure",
            id=f"{procedure}@{self.version}",
            content=self.model_dump(mode="json"),
        )


def source_origin(source: str) -> str:
    """How `ProcedureVersion.origins` names a source of untrusted text."""
    return f"source:{source}"


class PendingRewrite(Value):
    """A rewrite that passed the gate and waits for approval."""

    id: str
    procedure: str
    base: int
    """The version that it was made from."""
    text: str
    author: str
    reason: str
    cycle: int | None
    at: Moment
    diff: str
    origins: tuple[str, ...] = ()
    """See `ProcedureVersion.origins`."""


def parse_procedure(name: str, source: str) -> Procedure:
    """Reads a procedure's file: TOML front matter between `+++` lines, then the text.

    Raises:
        ConfigurationError: If the front matter is malformed, the text is empty, or a listed
            placeholder does not stand in it.
    """
    head, text = _split(name, source)
    try:
        matter = _FrontMatter.model_validate(tomllib.loads(head))
        procedure = Procedure(
            name=name,
            text=text.strip(),
            placeholders=matter.placeholders,
            description=matter.description,
        )
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise ConfigurationError(f"Procedure {name!r} cannot be read: {error}") from error
    missing = missing_placeholders(procedure, procedure.text)
    if missing:
        raise ConfigurationError(
            f"Procedure {name!r} lists placeholders that its text does not use: "
            f"{', '.join(missing)}. Write them in braces, or take them off the list."
        )
    return procedure


def missing_placeholders(procedure: Procedure, text: str) -> list[str]:
    """Which of the procedure's placeholders do not stand in the text."""
    used = set(_PLACEHOLDER.findall(text))
    return [name for name in procedure.placeholders if name not in used]


def fill(procedure: Procedure, text: str, values: Mapping[str, str]) -> str:
    """The text with the procedure's placeholders replaced; other braces stay as they are.

    Values are put in as they are: braces in a value are not placeholders.

    Raises:
        ConfigurationError: If a placeholder has no value.
    """
    missing = [name for name in procedure.placeholders if name not in values]
    if missing:
        raise ConfigurationError(
            f"Procedure {procedure.name!r} needs a value for: {', '.join(missing)}."
        )

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        return values[name] if name in procedure.placeholders else match.group(0)

    return _PLACEHOLDER.sub(value_of, text)


def difference(name: str, old: str, new: str) -> str:
    """A unified diff between two versions of a procedure."""
    lines = unified_diff(old.splitlines(), new.splitlines(), name, name, lineterm="", n=1)
    return "\n".join(lines)


def seed_procedures() -> dict[str, Procedure]:
    """The procedures that come with `coag`, by name: one per phase that asks the model."""
    return dict(_seeds())


def is_seed(name: str, text: str) -> bool:
    """Whether a text is the one that comes with `coag` under this name."""
    seed = _seeds().get(name)
    return seed is not None and seed.text == text


@cache
def _seeds() -> Mapping[str, Procedure]:
    folder = files("coag.memory") / "procedures"
    sources = {
        item.name.removesuffix(".md"): item.read_text(encoding="utf-8")
        for item in folder.iterdir()
        if item.name.endswith(".md")
    }
    return _parsed(sources)


def load_procedures(folder: Path) -> dict[str, Procedure]:
    """The procedures in a folder's Markdown files, by name; to be merged over the seeds.

    Raises:
        ConfigurationError: If there is none, or one cannot be read.
    """
    sources = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    if not sources:
        raise ConfigurationError(f"There are no procedures (*.md) in {str(folder)!r}.")
    return _parsed(sources)


def _parsed(sources: Mapping[str, str]) -> dict[str, Procedure]:
    return {name: parse_procedure(name, sources[name]) for name in sorted(sources)}


def _split(name: str, source: str) -> tuple[str, str]:
    lines = source.lstrip("\ufeff").splitlines()
    if not lines or lines[0].strip() != _FENCE:
        return "", source
    ends = (i for i, line in enumerate(lines[1:], start=1) if line.strip() == _FENCE)
    end = next(ends, None)
    if end is None:
        raise ConfigurationError(f"Procedure {name!r}: its front matter has no closing {_FENCE}.")
    return _joined(lines[1:end]), _joined(lines[end + 1 :])


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines)
