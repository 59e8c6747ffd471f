"""Commands that start without typer, which takes longer to import than they take to run.

Such a command says in its annotations what its words are, as `Annotated[TYPE, Word(...)]`. A line
that is complete and right is read here. For all else, help and errors, typer is given the same
words (`commands`), so that the two cannot differ.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
Declared = Mapping[str, tuple[Any, "Word"]]
"""For each parameter of a command the type of one value, and the word."""


@dataclass(frozen=True, slots=True)
class Word:
    """What a command is given: an argument, or an option with a flag."""

    help: str
    flag: str = ""
    """The option's flag, e.g. `--state`; empty for an argument."""
    variable: str | None = None
    """Variable of the environment that is read where the option is not given."""
    metavar: str | None = None


def declared_words(command: Callable[..., None]) -> Declared:
    """What a command is given; empty where it declares its words otherwise."""
    made: dict[str, tuple[Any, Word]] = {}
    for name, one in inspect.signature(command, eval_str=True).parameters.items():
        kind, word = (*get_args(one.annotation), None, None)[:2]
        if isinstance(word, Word):
            some = [each for each in get_args(kind) if each is not NoneType]
            made[name] = some[0] if NoneType in get_args(kind) else kind, word
    return made


def called(command: Callable[..., None], words: Sequence[str]) -> Callable[[], None] | None:
    """The call that a command line asks for; None for what typer is to explain or to refuse.

    Args:
        command: A function whose parameters are annotated with `Word`.
        words: What was typed behind its name.
    """
    declared = declared_words(command)
    typed = _by_parameter(declared, words)
    if typed is None:
        return None
    given: dict[str, Any] = {}
    for name, one in inspect.signature(command).parameters.items():
        kind, word = declared[name]
        value = typed.get(name) or [os.environ.get(word.variable or "", "")]
        if not value[-1]:
            if one.default is inspect.Parameter.empty:
                return None
        elif kind is float and not _NUMBER.fullmatch(value[-1]):
            return None
        else:
            given[name] = value if kind == list[str] else kind(value[-1])
    return lambda: command(**given)


def _by_parameter(declared: Declared, words: Sequence[str]) -> dict[str, list[str]] | None:
    """What was typed for each parameter; None where a word has no place or is like a flag."""
    flags = {word.flag: name for name, (_, word) in declared.items() if word.flag}
    places = iter([name for name, (_, word) in declared.items() if not word.flag])
    typed: dict[str, list[str]] = {}
    rest = iter(words)
    for word in rest:
        if not _is_flag(word):
            name, value = next(places, ""), word
        else:
            flag, equals, value = word.partition("=")
            name = flags.get(flag, "")
            if name and declared[name][0] is bool:
                value = "" if equals else "yes"
            elif not equals:
                value = next(rest, "")
        if not name or not value or _is_flag(value):
            return None
        typed.setdefault(name, []).append(value)
    return typed


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word != "-"
