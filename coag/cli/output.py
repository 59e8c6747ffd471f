"""What commands print: lines for a person, JSON for a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from coag._util.text import escaped_json

DIM = "bright_black"


def screen(*, errors: bool = False) -> Console:
    """Where a command prints; nothing in a text is markup."""
    return Console(stderr=errors, highlight=False, markup=False, emoji=False)


def say(text: str, style: str = "") -> None:
    """A line for a person on standard error, beside what a program reads."""
    screen(errors=True).print(Text(text, style=style), soft_wrap=True)


def show(lines: Iterable[Text | str]) -> None:
    """Prints lines on standard output, each as soon as it is known; long ones are not broken."""
    console = screen()
    for line in lines:
        console.print(Text(line) if isinstance(line, str) else line, soft_wrap=True)


def head(title: str) -> Text:
    """The title of a part."""
    return Text(title, style="bold")


def part(title: str, lines: Iterable[Text]) -> Iterator[Text]:
    """A part with its title, if it has any lines."""
    for number, line in enumerate(lines):
        if number == 0:
            yield head(title)
        yield line


def write_json(*values: Any) -> None:
    """Prints values as JSON, one a line; texts are taken for JSON.

    No character in it can steer a terminal.
    """
    for value in values:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        sys.stdout.write(escaped_json(text) + "\n")


def as_json(value: object) -> str:
    """A value as JSON, its letters as they are."""
    return json.dumps(value, ensure_ascii=False)
