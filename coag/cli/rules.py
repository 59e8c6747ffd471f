"""`coag rules`: policy files for people who do not program: checked, explained, tried on cases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.text import Text

from coag._util.text import counted, one_line
from coag.compat import as_tool
from coag.errors import ConfigurationError
from coag.policy import Policy, PolicyError, load_policy, problems_with_tools, run_cases
from coag.schema import check_trusted, from_users_name
from coag.tracing import read_trace

from .commands import lazy_group
from .options import AsJson, Logs, Trust
from .output import DIM, say, show, write_json
from .runs import found_run

_FAILED, _WRONG = 1, 2
_LONGEST = 600
"""Characters of a line that are printed."""

File = Annotated[Path, typer.Argument(help="The policy file.")]


app = lazy_group(
    "rules",
    "Checks, explains and tries policy files: hard rules without programming.",
    {
        "rules": {
            "check": "Finds what is wrong with a policy file, with line and column.",
            "explain": "Says what the rules of a policy file are, a line each.",
            "test": "Judges the cases of a policy file; nothing is called.",
        }
    },
)


def check(
    file: File,
    tools: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME|RUN",
            help="The agent's tools: a list of functions or tools in Python (with --trust), or a "
            "run, whose recorded actions are taken.",
        ),
    ] = None,
    trust: Trust = None,
    logs: Logs = Path("logs"),
    as_json: AsJson = False,
) -> None:
    """Finds what is wrong with a policy file, with line and column.

    With --tools also rules that name no tool, or an argument that a tool does not take.

    Exit code 0: all is well; 1: something is wrong; 2: wrongly called.
    """
    schemas = None if tools is None else _schemas(tools, trust or (), logs)
    policy = _read(file, as_json=as_json)
    problems = [] if schemas is None else problems_with_tools(policy, schemas)
    if as_json:
        found = [{"line": 0, "column": 0, "text": one} for one in problems]
        write_json({"rules": len(policy), "cases": len(policy.cases), "problems": found})
    else:
        show(Text(one_line(f"{file}: {one}", _LONGEST), style="red") for one in problems)
        rules, cases = counted(len(policy), "rule"), counted(len(policy.cases), "case")
        say(f"{file}: {rules}, {cases}, {counted(len(problems), 'problem')}")
    raise typer.Exit(_FAILED if problems else 0)


def explain(
    file: File,
    tool: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the rules that judge this tool.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Says what the rules of a policy file are, a line each.

    Exit code 0: the file was read; 1: something is wrong with it; 2: wrongly called.
    """
    policy = _read(file, as_json=as_json)
    chosen = [one for one in policy if tool is None or one.applies(tool)]
    if as_json:
        write_json(
            {
                "policy": policy.name,
                "rules": [
                    {"name": one.name, "kind": one.kind, "tools": one.tools, "text": one.sentence}
                    for one in chosen
                ],
            }
        )
        return
    if not chosen and tool is not None:
        say(f"No rule judges {one_line(tool)!r}: every call of it is allowed.")
    show(one_line(f"{one.name}: {one.sentence}", _LONGEST) for one in chosen)


def test(
    file: File,
    cases: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take the cases (tests:) of this file instead."),
    ] = None,  # noqa: PT028 - it is a command, no test
    as_json: AsJson = False,  # noqa: PT028
) -> None:
    """Judges the cases of a policy file; nothing is called.

    Exit code 0: all are as expected; 1: one is not, or something is wrong with a file; 2: wrongly
    called, or there are no cases.
    """
    policy = _read(file, as_json=as_json, cases=cases)
    if not policy.cases:
        raise ConfigurationError(
            f"{str(cases or file)!r} has no cases: write tests: and below it a list, each with "
            "tool, arguments and expect (allow, forbid or ask)."
        )
    results = run_cases(policy)
    failed = [one for one in results if not one.passed]
    if as_json:
        judged = [
            {
                "line": one.case.line,
                "tool": one.case.tool,
                "expected": one.case.expect,
                "got": one.got,
                "by": one.by,
                "reason": one.reason,
                "passed": one.passed,
            }
            for one in results
        ]
        write_json({"cases": judged, "failed": len(failed)})
    else:
        styles = ((one, DIM if one.passed else "bold red") for one in results)
        show(Text(one_line(one.text, _LONGEST), style=style) for one, style in styles)
        say(f"{counted(len(results), 'case')}, {len(failed)} not as expected")
    raise typer.Exit(_FAILED if failed else 0)


def _read(file: Path, *, as_json: bool, cases: Path | None = None) -> Policy:
    """The policy of a file; what is wrong with it is printed, and the command ends with 1."""
    try:
        return load_policy(file, cases=cases)
    except PolicyError as error:
        if as_json:
            found = [
                {"line": one.line, "column": one.column, "text": one.text} for one in error.problems
            ]
            write_json({"file": error.file, "problems": found})
        else:
            show(Text(one_line(one, _LONGEST), style="red") for one in str(error).splitlines())
            say(f"{counted(len(error.problems), 'problem')}")
        raise typer.Exit(_FAILED) from error


def _schemas(tools: str, trust: list[str] | tuple[str, ...], logs: Path) -> dict[str, Any]:
    """The JSON Schemas of tools by name, of Python or of a run."""
    if ":" not in tools:
        return _recorded(tools, logs)
    check_trusted(tools, trust)
    given: object = from_users_name(tools)
    if callable(given) and not hasattr(given, "schema"):
        given = [given]
    if not isinstance(given, list | tuple):
        raise ConfigurationError(f"{tools!r} is no list of tools, but a {type(given).__name__}.")
    made = [as_tool(cast("Any", one)) for one in cast("list[object]", given)]
    return {one.name: one.schema.get("parameters", {}) for one in made}


def _recorded(run: str, logs: Path) -> dict[str, Any]:
    """The actions that a run had last."""
    found: Mapping[str, Any] = {}
    for entry in read_trace(found_run(run, logs).trace_path, lambda problem: None):
        if entry.body.record == "actions":
            found = {spec.name: spec.parameters for spec in entry.body.specs}
    if not found:
        raise ConfigurationError(f"The run {run!r} recorded no tools.")
    return dict(found)
