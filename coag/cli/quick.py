"""Commands that start at once: argparse and typer take long to import for what these do.

Such a command says in its annotations what its words are, as `Annotated[TYPE, Word(...)]`, and in
its docstring what it does.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, NoReturn, get_args

from coag.errors import ConfigurationError, UnknownNameError

_HELP = ("--help", "-h")


@dataclass(frozen=True, slots=True)
class Word:
    """What a command is given: an argument, or an option with a flag."""

    help: str
    flag: str = ""
    """The option's flag, e.g. `--state`; empty for an argument."""
    variable: str = ""
    """Variable of the environment that is read where the option is not given."""
    metavar: str = ""


def called(
    name: str, about: str, commands: Iterable[Callable[..., None]], words: Sequence[str]
) -> None:
    """Runs the command that words name, or prints the help that they ask for and exits.

    Args:
        name: What was typed before the words, e.g. `coag judgment`.
        about: The help on all commands.
        commands: Functions whose parameters are annotated with `Word`.
        words: What was typed behind the name.

    Raises:
        ConfigurationError: The words are wrong.
    """
    by_name = {one.__name__: one for one in commands}
    first = words[0] if words else _HELP[0]
    if first in by_name:
        command, rest = by_name[first], words[1:]
        if not set(_HELP).isdisjoint(rest):
            _leave(_described(f"{name} {first}", command))
        command(**_given(f"{name} {first}", command, rest))
    elif first in _HELP:
        lines = (f"  {one:12}{_about(each).splitlines()[0]}" for one, each in by_name.items())
        _leave((f"Usage: {name} COMMAND [OPTIONS]", "", about, *lines))
    else:
        raise UnknownNameError(f"command of {name}", first, by_name)


def _given(name: str, command: Callable[..., None], words: Sequence[str]) -> dict[str, Any]:
    """What a command is called with."""
    declared, given = _declared(command), dict[str, Any]()
    typed = _by_parameter(name, declared, words)
    for one, parameter in inspect.signature(command).parameters.items():
        kind, word = declared[one]
        values = typed.get(one) or [*filter(None, [os.environ.get(word.variable)])]
        if values:
            try:
                given[one] = values if kind == list[str] else kind(values[-1])
            except ValueError as error:
                shown = _shown(one, word)
                raise ConfigurationError(f"{shown} is no number: {values[-1]!r}.") from error
        elif parameter.default is inspect.Parameter.empty:
            raise ConfigurationError(f"{_shown(one, word)} is missing; see {name} --help.")
    return given


def _by_parameter(
    name: str, declared: Mapping[str, tuple[Any, Word]], words: Sequence[str]
) -> dict[str, list[str]]:
    flags = {word.flag: one for one, (_, word) in declared.items() if word.flag}
    places = iter([one for one, (_, word) in declared.items() if not word.flag])
    typed: dict[str, list[str]] = {}
    rest, options = iter(words), True
    for word in rest:
        if word == "--" and options:
            options = False
            continue
        if word.startswith("-") and word != "-" and options:
            flag, equals, value = word.partition("=")
            one = flags.get(flag, "")
            if not one or (equals and declared[one][0] is bool):
                raise UnknownNameError(f"option of {name}", word, flags)
            if not equals:
                value = "yes" if declared[one][0] is bool else next(rest, "")
        else:
            one, value = next(places, ""), word
        if not one or not value:
            raise ConfigurationError(f"{word!r} is too much, or lacks a value; see {name} --help.")
        typed.setdefault(one, []).append(value)
    return typed


def _declared(command: Callable[..., None]) -> dict[str, tuple[Any, Word]]:
    """For each parameter of a command the type of one value, and the word."""
    made: dict[str, tuple[Any, Word]] = {}
    for name, one in inspect.signature(command, eval_str=True).parameters.items():
        kind, word = get_args(one.annotation)
        made[name] = next(each for each in get_args(kind) or (kind,) if each is not NoneType), word
    return made


def _described(name: str, command: Callable[..., None]) -> Iterator[str]:
    words = [(_shown(one, word), word) for one, (_, word) in _declared(command).items()]
    yield " ".join(
        ("Usage:", name, *(shown for shown, word in words if not word.flag), "[OPTIONS]")
    )
    yield f"\n{_about(command)}\n"
    for shown, word in words:
        yield f"  {shown:16}{word.help}"


def _about(command: Callable[..., None]) -> str:
    return inspect.cleandoc(command.__doc__ or "")


def _shown(name: str, word: Word) -> str:
    return word.flag or word.metavar or name.upper()


def _leave(lines: Iterable[str]) -> NoReturn:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.exit()
