"""The commands of `coag`, and how they are loaded.

`coag --help` must be quick, and what the commands need (pydantic, AutoGen, Chroma) takes long to
import. So a group knows of each command its name and a line of help, and imports its module when
the command is called. To add one, write a function with its options in a module of its own, and
add a line to `_COMMANDS`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from importlib.metadata import version as version_of
from typing import Annotated, Any, ClassVar, get_args

import typer
from typer.core import TyperGroup

from .quick import declared_words


class LazyGroup(TyperGroup):
    """A group of commands that are imported when they are called."""

    lazy: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """For each command, in the order of the help: where it is (`module:name`), and a line of
    help, the first of its docstring."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return list(self.lazy)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What the help needs to know of a command."""
        return (
            _made(cmd_name, lambda: None, self.lazy[cmd_name][1]) if cmd_name in self.lazy else None
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the arguments name, imported, and the arguments behind its name."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is None or name is None or name not in self.lazy:
            return name, command, rest
        module, attribute = self.lazy[name][0].split(":")
        declared = getattr(importlib.import_module(module), attribute)
        if isinstance(declared, typer.Typer):
            return name, typer.main.get_command(declared), rest
        paragraphs = (declared.__doc__ or "").split("\n\n")
        text = "\n\n".join(" ".join(part.split()) for part in paragraphs)
        return name, _made(name, declared, text), rest


def _made(name: str, function: Callable[..., None], text: str) -> Any:
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name=name, help=text)(_with_typer(function))
    return typer.main.get_command(alone)


def _with_typer(command: Callable[..., None]) -> Callable[..., None]:
    """A command as typer wants it declared, where its words are declared as `Word`."""
    words = declared_words(command)
    if not words:
        return command

    @wraps(command)
    def made(**values: Any) -> None:
        command(**values)

    parameters = inspect.signature(command, eval_str=True).parameters
    annotations: dict[str, Any] = {}
    for name, (_, word) in words.items():
        said: dict[str, Any] = {"help": word.help, "metavar": word.metavar}
        how = typer.Argument(**said)
        if word.flag:
            how = typer.Option(word.flag, envvar=word.variable, **said)
        annotations[name] = Annotated[get_args(parameters[name].annotation)[0], how]
    new = [one.replace(annotation=annotations[name]) for name, one in parameters.items()]
    made.__annotations__ = annotations
    made.__signature__ = inspect.Signature(new)  # pyright: ignore[reportAttributeAccessIssue]
    return made


class _Commands(LazyGroup):
    lazy: ClassVar[Mapping[str, tuple[str, str]]] = {
        "chat": (
            "coag.cli.chat:chat",
            "Talks with an agent that deliberates; shows the phases as they happen.",
        ),
        "log": (
            "coag.cli.log:log",
            "Shows a run: what was recalled, proposed, rejected and why, chosen, done.",
        ),
        "verify": (
            "coag.cli.verify:verify",
            "Checks that a run obeyed its cycle and that nobody changed its trace.",
        ),
        "seal": (
            "coag.cli.verify:seal",
            "Signs runs with the key of COAG_SEAL_KEY, or appends their state to a witness file.",
        ),
        "fork": (
            "coag.cli.fork:fork",
            "Continues from a phase of a run with something changed; shows both side by side.",
        ),
        "why": (
            "coag.cli.why:why",
            "Shows what a decision depended on: percepts, memory, procedures, constraints.",
        ),
        "doctor": (
            "coag.cli.doctor:doctor",
            "Examines a model server, or without SPEC what is installed; says what to do.",
        ),
        "diagnose": (
            "coag.cli.diagnose:diagnose",
            "Names the cause of every failure of a run, with the records that show it.",
        ),
        "replay": (
            "coag.cli.replay:replay",
            "Runs a run again with no model and no world; says where it first differs.",
        ),
        "otel": (
            "coag.cli.otel:otel",
            "Sends a run to a tracing tool, as OpenTelemetry's spans over OTLP/HTTP.",
        ),
        "inspect": (
            "coag.cli.inspect:inspect",
            "Shows runs in the browser: cycles, prompts, verdicts, beliefs, causes, live.",
        ),
        "report": (
            "coag.cli.inspect:report",
            "Writes runs into one HTML file that opens anywhere, e.g. to be sent by mail.",
        ),
        "top": (
            "coag.cli.top:top",
            "Shows runs live: phase, tokens, cost, last decision, vetoes.",
        ),
        "rules": (
            "coag.cli.rules:app",
            "Checks, explains and tries policy files: hard rules without programming.",
        ),
        "memory": ("coag.cli.memory:app", "Reads and corrects what an agent remembers."),
        "judgment": (
            "coag.cli.judgment_group:app",
            "Keeps what an agent learned about how to go about its work, across runs and contexts.",
        ),
        "run": (
            "coag.cli.run:run",
            "Runs a situated agent until it is stopped.",
        ),
        "activities": (
            "coag.cli.activities:app",
            "Shows and steers what a situated agent pursues, while it runs or not.",
        ),
    }


app = typer.Typer(
    name="coag",
    cls=_Commands,
    help="AutoGen agents with a mind that can be inspected.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coag {version_of('coag')}")
        raise typer.Exit


@app.callback()
def coag(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """AutoGen agents with a mind that can be inspected."""
