"""Standing rules: the numbered list in a procedure that the agent keeps for itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from coag.schema import Value

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
        rule = one_line(self.rule)
        if not rule:
            raise ValueError("The rule is empty; say in one sentence what to do.")
        if self.operation == "add":
            rules.append(rule)
        else:
            rules[self.number - 1] = rule
        return with_rules(text, rules)


def one_line(rule: str) -> str:
    """A rule as it stands in the list: on one line, without a marker of its own."""
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
            rules.append(one_line(line))
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
