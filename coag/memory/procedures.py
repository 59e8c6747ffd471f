"""Procedures: their texts, standing rules and versions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from coag.errors import ConfigurationError
from coag.schema import Moment, Value, Written

_FENCE = "+++"
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


class _FrontMatter(Value):
    description: str = ""
    placeholders: tuple[str, ...] = ()


class Procedure(Value):
    """A named prompt as its developer wrote it: the seed of its first version."""

    name: str = Field(min_length=1)
    text: str = Field(min_length=1)
    placeholders: tuple[str, ...] = ()
    """Names in braces in the text; every version must keep them."""
    description: str = ""
    """What it is for, in one sentence."""


class ProcedureVersion(Value):
    """A procedure as it was from one change to the next."""

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
    """Ids of the records of long-term memory on which the change depends, and `source:NAME` for
    each source of untrusted text that had been shown."""
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


History = tuple[ProcedureVersion, ...]
"""Versions of one procedure from 1 without gaps; never empty."""


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
            placeholder is not in it.
    """
    head, text = "", source
    lines = source.lstrip("\ufeff").splitlines()
    if lines and lines[0].strip() == _FENCE:
        ends = (i for i, line in enumerate(lines[1:], start=1) if line.strip() == _FENCE)
        end = next(ends, None)
        if end is None:
            raise ConfigurationError(
                f"Procedure {name!r}: its front matter has no closing {_FENCE}."
            )
        head, text = "\n".join(lines[1:end]), "\n".join(lines[end + 1 :])
    try:
        procedure = Procedure(
            name=name,
            text=text.strip(),
            **_FrontMatter.model_validate(tomllib.loads(head)).model_dump(),
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
    """Which of the procedure's placeholders are not in the text."""
    used = set(_PLACEHOLDER.findall(text))
    return [name for name in procedure.placeholders if name not in used]


def fill(procedure: Procedure, text: str, values: Mapping[str, str]) -> str:
    """The text with the procedure's placeholders replaced; other braces stay as they are.

    Values are put in as they are: braces in a value are not placeholders.
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


def next_version(name: str, history: History, text: str, **of: Any) -> ProcedureVersion:
    """The version that follows a history; what else is known of it by the names of its fields."""
    diff = ""
    if history:
        lines = history[-1].text.splitlines(), text.splitlines()
        diff = "\n".join(unified_diff(*lines, name, name, lineterm="", n=1))
    return ProcedureVersion(version=len(history) + 1, text=text, diff=diff, **of)


def seed_procedures() -> dict[str, Procedure]:
    """The procedures that come with `coag`, by name: one per phase that asks the model."""
    return dict(_seeds())


def is_seed(name: str, text: str) -> bool:
    """Whether a text is the one that comes with `coag` under this name."""
    return name in _seeds() and _seeds()[name].text == text


@cache
def _seeds() -> Mapping[str, Procedure]:
    return load_procedures(Path(__file__).with_name("procedures"))


def load_procedures(folder: Path) -> dict[str, Procedure]:
    """The procedures in a folder's Markdown files, by name; to be merged over the seeds.

    Raises:
        ConfigurationError: If there is none, or one cannot be read.
    """
    paths = sorted(folder.glob("*.md"))
    if not paths:
        raise ConfigurationError(f"There are no procedures (*.md) in {str(folder)!r}.")
    return {path.stem: parse_procedure(path.stem, path.read_text("utf-8")) for path in paths}


# ---- Standing rules: the numbered list in a procedure that the agent keeps for itself ----


_HEADING = "## Standing rules"
_IS_HEADING = re.compile(r"#{1,6}\s*standing rules\s*", re.IGNORECASE)
_ANY_HEADING = re.compile(r"#{1,6}\s")
_MARKER = re.compile(r"(?:\d+[.)]|[-*]|#{1,6})(?:\s+|$)")


class RuleChange(Value):
    """A change to one standing rule of a procedure."""

    operation: Literal["add", "replace", "remove"]
    rule: str = ""
    """The rule's text; for `add` and `replace`."""
    number: int = 0
    """Which rule, counted from 1; for `replace` and `remove`."""

    def apply(self, text: str) -> str:
        """The procedure's text with the rule changed.

        Raises:
            ValueError: If there is no such rule, or the new one is empty.
        """
        rules = list(rules_of(text))
        if self.operation != "add" and not 1 <= self.number <= len(rules):
            raise ValueError(f"There is no standing rule {self.number}; there are {len(rules)}.")
        if self.operation == "remove":
            del rules[self.number - 1]
            return with_rules(text, rules)
        rule = rule_line(self.rule)
        if not rule:
            raise ValueError("The rule is empty; say in one sentence what to do.")
        place = len(rules) if self.operation == "add" else self.number - 1
        rules[place : place + 1] = [rule]
        return with_rules(text, rules)


def rule_line(rule: str) -> str:
    """A rule as it is in the list: on one line, without a marker of its own."""
    line = " ".join(rule.split())
    while marker := _MARKER.match(line):
        line = line[marker.end() :]
    return line


def rules_of(text: str) -> tuple[str, ...]:
    """The standing rules of a procedure, in order."""
    lines = text.splitlines()
    start, end = _section(lines)
    rules: list[str] = []
    for line in filter(None, map(str.strip, lines[start + 1 : end])):
        if _MARKER.match(line) or not rules:
            rules.append(rule_line(line))
        else:
            rules[-1] = f"{rules[-1]} {line}"
    return tuple(rule for rule in rules if rule)


def with_rules(text: str, rules: Sequence[str]) -> str:
    """The procedure with these standing rules in the place of those it has."""
    lines = text.splitlines()
    start, end = _section(lines)
    numbered = [f"{number}. {rule}" for number, rule in enumerate(rules, start=1)]
    section = [_HEADING, *numbered] if rules else []
    parts = [lines[:start], section, lines[end:]]
    blocks = ["\n".join(part).strip("\n") for part in parts]
    return "\n\n".join(block for block in blocks if block)


def _section(lines: Sequence[str]) -> tuple[int, int]:
    """First line of the section of standing rules and the line after it; at the end if none."""
    count = len(lines)
    start = next((i for i, line in enumerate(lines) if _IS_HEADING.fullmatch(line)), count)
    after = (i for i in range(start + 1, count) if _ANY_HEADING.match(lines[i]))
    return start, next(after, count)
