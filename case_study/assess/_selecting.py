"""Reading what a command line asks for: contenders, scenarios and seeds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from coag.errors import ConfigurationError, UnknownNameError

HEADLINE = (
    "random",
    "rules",
    "oracle",
    "plain",
    "plain-iterations",
    "plain-memory",
    "plain-guarded",
    "coag-compact",
    "coag-full",
)
"""What is compared before anything is left out or added."""
ABLATIONS = (
    "coag-full",
    "coag-without-retrieval",
    "coag-without-reasoning",
    "coag-without-evaluation",
    "coag-without-constraints",
    "coag-without-rewriting",
    "coag-without-conduct",
    "coag-without-value",
    "coag-without-masking",
    "coag-without-enumeration",
)
"""The whole, and the whole without each of its parts."""
_SEEDS = re.compile(r"(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_LETTERS = re.compile(r"(?P<first>[A-Z])(?:-(?P<last>[A-Z]))?")
MOST_SEEDS = 100_000
"""More would be a slip of the hand."""


def contenders_named(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The contenders that a text asks for: names by comma, `all`, `headline` or `ablations`.

    In a domain whose contenders are arms, such as `coag-full:kept`, the name before the colon asks
    for all of its arms.

    Raises:
        UnknownNameError: There is no such contender; lists what exists.
    """
    groups = {"headline": HEADLINE, "ablations": ABLATIONS}
    known_groups = {
        name: tuple(one for one in known if _whose(one) in members)
        for name, members in groups.items()
    }
    for one in known:
        if _whose(one) != one:
            arms = tuple(other for other in known if _whose(other) == _whose(one))
            known_groups[_whose(one)] = arms
    return _named("contender", text, known, known_groups)


def _whose(contender: str) -> str:
    """The contender of which this is an arm, or itself."""
    return contender.partition(":")[0]


def scenarios_named(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The scenarios that a text asks for: names by comma, letters such as `A-D`, or `all`.

    A is the first scenario of the domain. The beginning of several names, such as `open-world`,
    asks for all of them.

    Raises:
        UnknownNameError: There is no such scenario; lists what exists.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for part in text.split(","):
        name = part.strip()
        letters = _LETTERS.fullmatch(name)
        begun = tuple(one for one in known if one.startswith(f"{name}-"))
        if letters is not None:
            first = ord(letters["first"]) - ord("A")
            last = ord(letters["last"] or letters["first"]) - ord("A")
            if first <= last < len(known):
                groups[name] = tuple(known[first : last + 1])
        elif name and begun:
            groups[name] = begun
    return _named("scenario", text, known, groups)


def _named(
    what: str, text: str, known: Sequence[str], groups: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """The names and groups of a text, each name once, in the order of what exists."""
    asked: set[str] = set()
    for part in text.split(","):
        name = part.strip()
        if name == "all":
            asked.update(known)
        elif groups.get(name):
            asked.update(groups[name])
        elif name in known:
            asked.add(name)
        else:
            raise UnknownNameError(what, name, (*known, *groups, "all"))
    return tuple(name for name in known if name in asked)


def seeds_named(text: str) -> tuple[int, ...]:
    """The seeds that a text asks for: `N` for the first N from 0 on, or `FIRST-LAST`.

    Raises:
        ConfigurationError: It is neither, or asks for none.
    """
    found = _SEEDS.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(
            f"--seeds {text!r} says no seeds: give how many, such as 6, or which, such as 6-11."
        )
    first, last = int(found["first"]), found["last"]
    seeds = range(first) if last is None else range(first, int(last) + 1)
    if not seeds:
        raise ConfigurationError(
            f"--seeds {text!r} asks for no seed at all: give at least one, such as 6 or 6-11."
        )
    if len(seeds) > MOST_SEEDS:
        raise ConfigurationError(
            f"--seeds {text!r} asks for {len(seeds):,} seeds: give {MOST_SEEDS:,} at most."
        )
    return tuple(seeds)


def fewer_seeds_named(texts: Sequence[str], contenders: Sequence[str]) -> dict[str, int]:
    """Contenders that play fewer seeds, each as `NAME=N`.

    Raises:
        ConfigurationError: A text is not of that form.
        UnknownNameError: It names a contender that was not asked for.
    """
    found: dict[str, int] = {}
    for text in texts:
        name, sign, count = text.partition("=")
        if not sign or not count.isdecimal() or int(count) < 1:
            raise ConfigurationError(
                f"--fewer-seeds {text!r}: write a contender and how many, such as coag-full=3."
            )
        if name not in contenders:
            raise UnknownNameError("contender in this assessment", name, contenders)
        found[name] = int(count)
    return found
