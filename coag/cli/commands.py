"""The commands of `coag`, and how they are loaded.

`coag --help` must be quick, and what the commands need (pydantic, AutoGen, Chroma) takes long to
import. So a group knows of each command its name and a line of help, and imports its module when
the command is called. To add one, write a function of its name with its options in a module, which
may be `async`, and add a line to `_COMMANDS`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from importlib.metadata import version as version_of
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup


class LazyGroup(TyperGroup):
    """A group of commands that are imported when they are called."""

    lazy: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """For each command, in the order of the help: its module, and a line of help, the first of its
    docstring."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands."""
        return list(self.lazy)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What the help needs to know of a command."""
        if cmd_name not in self.lazy:
            return None
        return _made(cmd_name, lambda: None, self.lazy[cmd_name][1])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the arguments name, imported, and the arguments behind its name.

        It is the function of that name (`import_` for `import`), or else its module's `app`.
        """
        name, command, rest = super().resolve_command(ctx, args)
        if command is None or name is None or name not in self.lazy:
            return name, command, rest
        home = importlib.import_module(self.lazy[name][0])
        named = (getattr(home, one, None) for one in (name, f"{name}_", "app"))
        declared = next(filter(None, named))
        if isinstance(declared, typer.Typer):
            return name, typer.main.get_command(declared), rest
        if name == "judgment":  # it reads its words itself, without typer
            declared(rest)
            ctx.exit()
        paragraphs = (declared.__doc__ or "").split("\n\n")
        text = "\n\n".join(" ".join(part.split()) for part in paragraphs)
        return name, _made(name, declared, text), rest


def _made(name: str, function: Callable[..., Any], text: str) -> Any:
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    awaited = _awaited(function) if inspect.iscoroutinefunction(function) else function
    alone.command(name=name, help=text)(awaited)
    return typer.main.get_command(alone)


def _awaited(function: Callable[..., Any]) -> Callable[..., None]:
    @wraps(function)
    def command(**given: Any) -> None:
        import asyncio

        asyncio.run(function(**given))

    return command


def lazy_group(
    name: str,
    text: str,
    commands: Mapping[str, Mapping[str, str]],
    *,
    package: str = "coag.cli",
) -> typer.Typer:
    """A group with its help: by module of the package each command with its line of help."""
    every = commands.items()
    lazy = {one: (f"{package}.{home}", line) for home, some in every for one, line in some.items()}
    group = typer.Typer(
        name=name,
        cls=type("_Group", (LazyGroup,), {"lazy": lazy}),
        help=text,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    group.callback()(lambda: None)
    return group


_COMMANDS = {
    "chat": {"chat": "Talks with an agent that deliberates; shows the phases as they happen."},
    "log": {"log": "Shows a run: what was recalled, proposed, rejected and why, chosen, done."},
    "verify": {
        "verify": "Checks that a run obeyed its cycle and that nobody changed its trace.",
        "seal": "Signs runs with the key of COAG_SEAL_KEY, or appends their state to a witness "
        "file.",
    },
    "fork": {
        "fork": "Continues from a phase of a run with something changed; shows both side by side."
    },
    "why": {"why": "Shows what a decision depended on: percepts, memory, procedures, constraints."},
    "doctor": {
        "doctor": "Examines a model server, or without SPEC what is installed; says what to do."
    },
    "diagnose": {
        "diagnose": "Names the cause of every failure of a run, with the records that show it."
    },
    "replay": {
        "replay": "Runs a run again with no model and no world; says where it first differs."
    },
    "otel": {"otel": "Sends a run to a tracing tool, as OpenTelemetry's spans over OTLP/HTTP."},
    "inspect": {
        "inspect": "Shows runs in the browser: cycles, prompts, verdicts, beliefs, causes, live.",
        "report": "Writes runs into one HTML file that opens anywhere, e.g. to be sent by mail.",
    },
    "top": {"top": "Shows runs live: phase, tokens, cost, last decision, vetoes."},
    "rules": {"rules": "Checks, explains and tries policy files: hard rules without programming."},
    "memory": {"memory": "Reads and corrects what an agent remembers."},
    "judgment": {
        "judgment": "Keeps what an agent learned about how to go about its work, across runs and "
        "contexts."
    },
    "run": {"run": "Runs a situated agent until it is stopped."},
    "activities": {
        "activities": "Shows and steers what a situated agent pursues, while it runs or not."
    },
}
app = lazy_group("coag", "AutoGen agents with a mind that can be inspected.", _COMMANDS)


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
