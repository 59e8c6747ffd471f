"""The text of a policy file as a tree; every part has its line and column.

The one module that imports a library of YAML. No anchor, alias, tag or second key of one name is
let through, so that a file means what it shows, and plain texts keep the letters they are written
in (`no` is no truth value, `1_000` no number).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coag._util.text import cleaned
from coag.errors import ConfigurationError

SIZE = 256_000
"""Bytes that a file may have."""
PARTS = 20_000
"""Texts, lists and mappings that a file may have."""
DEEPEST = 20
"""Levels of lists and mappings."""
PROBLEMS = 100
"""Problems of one file that are reported."""
NOT_INSTALLED = "Policy files need packages that are not installed: pip install 'coag[policy]'."
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_PLAIN = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True, slots=True)
class PolicyProblem:
    """One thing that is wrong with a policy file."""

    line: int
    """From 1; 0 where it is the whole file."""
    column: int
    text: str
    """What is wrong, with which value, and what to do."""

    def at(self, file: str) -> str:
        """The problem with its place, as compilers write it."""
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        return f"{place}: {self.text}"


class PolicyError(ConfigurationError):
    """A policy file cannot be used; lists all its problems.

    Args:
        file: The file's name, or what else the text is called.
        problems: What is wrong, at least one thing.
    """

    def __init__(self, file: str, problems: Sequence[PolicyProblem]) -> None:
        self.file = file
        self.problems = tuple(sorted(problems, key=lambda one: (one.line, one.column)))
        lines = [one.at(file) for one in self.problems[:PROBLEMS]]
        if len(self.problems) > PROBLEMS:
            lines.append(f"and {len(self.problems) - PROBLEMS} more")
        super().__init__("\n".join(lines))


@dataclass(slots=True)
class YamlPart:
    """A part of a file: a text, a list or a mapping, and where it begins."""

    line: int
    column: int
    text: str | None = None
    """None for a list or a mapping."""
    plain: bool = False
    """Whether it is a text without quotes in one line, so that places in it can be counted."""
    items: list[YamlPart] = field(default_factory=list["YamlPart"])
    fields: dict[str, tuple[YamlPart, YamlPart]] | None = None
    """For a mapping: each key and value, by the key's text."""

    @property
    def value(self) -> Any:
        """Texts as they are written, in lists and mappings; an empty one is None."""
        if self.fields is not None:
            return {name: held.value for name, (_, held) in self.fields.items()}
        if self.text is None:
            return [one.value for one in self.items]
        return None if self.plain and not self.text else self.text

    @property
    def json(self) -> Any:
        """Its value as JSON: numbers, true, false, null; all else is text."""
        if self.fields is not None:
            return {name: held.json for name, (_, held) in self.fields.items()}
        if self.text is None:
            return [one.json for one in self.items]
        if not self.plain:
            return self.text
        if self.text in _PLAIN:
            return _PLAIN[self.text]
        return json.loads(self.text) if NUMBER.fullmatch(self.text) else self.text

    def problem(self, text: str, offset: int = 0) -> PolicyProblem:
        """Something that is wrong here."""
        return PolicyProblem(self.line, self.column + (offset if self.plain else 0), text)

    def found(self, path: Sequence[int | str]) -> tuple[YamlPart, YamlPart | None]:
        """The part at a path, or the last one that exists on it, and its key."""
        part, key = self, None
        for step in path:
            if part.fields is not None and isinstance(step, str) and step in part.fields:
                key, part = part.fields[step]
            elif part.fields is None and isinstance(step, int) and step < len(part.items):
                key, part = None, part.items[step]
        return part, key


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        PolicyError: There is none, or it is no text of a size that is read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(SIZE + 1)
        if len(data) <= SIZE:
            return data.decode("utf-8-sig")
        problem = f"it has more than {SIZE:,} bytes"
    except OSError as error:
        problem = f"it cannot be read: {error.strerror or error}"
    except UnicodeDecodeError as error:
        line = bytes(error.object[: error.start]).count(b"\n") + 1
        problem = f"line {line} is no UTF-8 text: save the file as UTF-8"
    except ValueError as error:  # a name that no file can have
        problem = f"it cannot be read: {error}"
    raise PolicyError(cleaned(str(path)), [PolicyProblem(0, 0, problem)])


def parsed(text: str, problems: list[PolicyProblem]) -> YamlPart | None:
    """The tree of a text, None if there is none; what is wrong goes into `problems`.

    Raises:
        ConfigurationError: The extra is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise ConfigurationError(NOT_INSTALLED) from error
    if len(text.encode(errors="surrogatepass")) > SIZE:
        problems.append(PolicyProblem(0, 0, f"it has more than {SIZE:,} bytes"))
        return None
    try:
        untyped: Any = yaml
        return _Tree(untyped.parse(text, Loader=yaml.SafeLoader), problems).read()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(filter(None, (error.context, error.problem)))
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        problems.append(PolicyProblem(line, column, f"this is no YAML: {said}"))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        shown = f"U+{error.character:04X}" if isinstance(error.character, int) else "a byte"
        problems.append(PolicyProblem(line, 1, f"{shown} cannot stand in a file: delete it"))
    except (ValueError, IndexError, OverflowError) as error:  # escapes of no character
        problems.append(PolicyProblem(0, 0, f"this is no YAML: {error}"))
    return None


class _Tree:
    """Builds the tree of one document from YAML's events."""

    def __init__(self, events: Iterator[Any], problems: list[PolicyProblem]) -> None:
        self._events = events
        self._problems = problems
        self._parts = 0

    def read(self) -> YamlPart | None:
        """The first document, if it is a good one."""
        root: YamlPart | None = None
        for event in self._events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent" and root is not None:
                self._refuse(event, "a second document begins: a policy is one, without ---")
                break
            if kind not in ("StreamStartEvent", "StreamEndEvent") and "Document" not in kind:
                root = self._part(event, 0)
        return root

    def _refuse(self, event: Any, text: str) -> None:
        mark = event.start_mark
        self._problems.append(PolicyProblem(mark.line + 1, mark.column + 1, text))

    def _part(self, event: Any, depth: int) -> YamlPart:
        mark, kind = event.start_mark, type(event).__name__
        part = YamlPart(mark.line + 1, mark.column + 1)
        self._parts += 1
        if kind == "AliasEvent" or event.anchor is not None:
            self._refuse(event, f"{event.anchor!r}: write it out, & and * are not used here")
        elif event.tag is not None:
            self._refuse(event, f"{event.tag!r}: tags (!) are not used here")
        if kind in ("AliasEvent", "ScalarEvent"):
            part.text = getattr(event, "value", "")
            part.plain = not getattr(event, "style", None) and mark.line == event.end_mark.line
            return part
        if depth >= DEEPEST or self._parts > PARTS:
            self._refuse(event, f"more than {DEEPEST} levels or {PARTS:,} parts are not read")
            self._skip()
        elif kind == "SequenceStartEvent":
            part.items = [self._part(one, depth + 1) for one in self._until("SequenceEndEvent")]
        else:
            part.fields = {}
            for key in self._until("MappingEndEvent"):
                name = self._part(key, depth + 1)
                held = self._part(next(self._events), depth + 1)
                self._add(part.fields, name, held)
        return part

    def _add(
        self, fields: dict[str, tuple[YamlPart, YamlPart]], name: YamlPart, held: YamlPart
    ) -> None:
        if name.text is None:
            self._problems.append(name.problem("a key must be a word, no list or mapping"))
        elif name.text in fields:
            first = fields[name.text][0].line
            text = f"{name.text!r} is here for the second time, first in line {first}: keep one"
            self._problems.append(name.problem(text))
        else:
            fields[name.text] = (name, held)

    def _until(self, end: str) -> Iterator[Any]:
        while type(event := next(self._events)).__name__ != end:
            yield event

    def _skip(self) -> None:
        depth = 1
        while depth:
            kind = type(next(self._events)).__name__
            depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")


def as_mapping(part: YamlPart) -> Mapping[str, tuple[YamlPart, YamlPart]]:
    """The fields of a part; empty if it is no mapping."""
    return part.fields or {}
