"""What a change takes: files and lines, as a diff shows them."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff

from coag.schema import Value


class Effort(Value):
    """The size of a change to sources."""

    files: int
    """Files that differ."""
    added: int
    """Lines that are new; a changed line is a new one and one that is gone."""
    removed: int
    """Lines that are gone."""
    diff: str
    """The change itself, as a unified diff."""

    @property
    def lines(self) -> int:
        """Lines that are new or gone."""
        return self.added + self.removed


def effort_of(before: Mapping[str, str], after: Mapping[str, str]) -> Effort:
    """How much differs between two versions of the same sources.

    Args:
        before: Text by path.
        after: Text by path; a path that is in one of them only is a file that is new or gone.
    """
    diffs = [_diff(path, before, after) for path in sorted({*before, *after})]
    changed = [lines for lines in diffs if lines]
    body = [line for lines in changed for line in lines[2:]]
    return Effort(
        files=len(changed),
        added=sum(line.startswith("+") for line in body),
        removed=sum(line.startswith("-") for line in body),
        diff="".join(line for lines in changed for line in lines),
    )


def _diff(path: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    old, new = before.get(path, ""), after.get(path, "")
    found = unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return [line if line.endswith("\n") else f"{line}\n" for line in found]
