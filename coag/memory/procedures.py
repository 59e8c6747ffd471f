"""Procedures: their texts, standing rules and versions."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import unified_diff
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from coag.errors import ConfigurationError
from coag.schema import Moment, Value, Written

# ---- Procedures: named prompts with placeholders, and what a version of one is ----


_FENCE = "+++"
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


class _FrontMatter(Value):
    """What may be between the fences at the top of a procedure's file."""

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
    """Which of the procedure's placeholders are not in the text."""
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
    return "\n".join(lines[1:end]), "\n".join(lines[end + 1 :])


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
        if self.operation == "add":
            rules.append(rule)
        else:
            rules[self.number - 1] = rule
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
    for line in filter(None, (line.strip() for line in lines[start + 1 : end])):
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


# ---- Everything that procedural memory holds, as one value ----


SEED = "seed"
"""Author of versions that come from a developer's file."""

History = tuple[ProcedureVersion, ...]
"""Versions of one procedure from 1 without gaps; never empty."""


class Histories(Value):
    """The histories of all procedures, and the rewrites that wait."""

    format: Literal[1] = 1
    procedures: dict[str, History] = Field(default_factory=dict)
    pending: tuple[PendingRewrite, ...] = ()

    def with_version(self, name: str, version: ProcedureVersion) -> Histories:
        """With one more version of a procedure."""
        longer = (*self.procedures.get(name, ()), version)
        return self.model_copy(update={"procedures": {**self.procedures, name: longer}})

    def with_pending(self, pending: Iterable[PendingRewrite]) -> Histories:
        """With these waiting rewrites in the place of those before."""
        return self.model_copy(update={"pending": tuple(pending)})


def next_version(
    name: str,
    history: History,
    text: str,
    *,
    author: str,
    reason: str,
    cycle: int | None,
    at: datetime,
    origins: tuple[str, ...] = (),
) -> ProcedureVersion:
    """The version that follows a history."""
    return ProcedureVersion(
        version=len(history) + 1,
        text=text,
        author=author,
        reason=reason,
        cycle=cycle,
        at=at,
        diff=difference(name, history[-1].text, text) if history else "",
        origins=origins,
    )


def seeded(histories: Histories, procedures: Mapping[str, Procedure], at: datetime) -> Histories:
    """Histories that begin with, or follow, the developers' files.

    A file that changed since becomes a new version, unless the agent has rewritten the procedure
    in the meantime; then the agent's version is kept, as long as it has all placeholders.
    """
    for name, procedure in procedures.items():
        history = histories.procedures.get(name, ())
        if not history or _outdated(history, procedure):
            version = next_version(
                name,
                history,
                procedure.text,
                author=SEED,
                reason="The developer's file changed." if history else "",
                cycle=None,
                at=at,
            )
            histories = histories.with_version(name, version)
    return histories


def merged(ours: Histories, theirs: Histories, where: str) -> Histories:
    """Both together: of each procedure the longer history, one being the other's beginning.

    Args:
        ours: What is held.
        theirs: What is found elsewhere; its waiting rewrites are the ones that count.
        where: Names the other place in the error.

    Raises:
        ConfigurationError: If the two differ.
    """
    together = dict(theirs.procedures)
    for name, history in ours.procedures.items():
        other = theirs.procedures.get(name, ())
        common = min(len(history), len(other))
        if [_essence(v) for v in history[:common]] != [_essence(v) for v in other[:common]]:
            raise ConfigurationError(
                f"{where} holds another history of procedure {name!r} than this memory; "
                "give each its own file."
            )
        together[name] = history if len(history) > len(other) else other
    return Histories(procedures=together, pending=theirs.pending)


def _outdated(history: History, procedure: Procedure) -> bool:
    latest = history[-1]
    if missing_placeholders(procedure, latest.text):
        return True
    return latest.author == SEED and latest.text != procedure.text


def _essence(version: ProcedureVersion) -> tuple[str, str, str]:
    """What makes a version the same in two processes, which may have seeded it apart."""
    return version.text, version.author, version.reason
