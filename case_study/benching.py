"""The command `bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, cast

import typer
from typer import Argument, Option

from case_study.assessing import INTERRUPTED, ProgressBar
from case_study.bench import (
    ARMS,
    BENCHMARKS,
    Arm,
    as_json,
    as_markdown,
    open_benchmark,
    play,
)
from case_study.pages import replace_in
from coag.errors import ConfigurationError, UnknownNameError

_Name = Annotated[str, Argument(metavar="BENCHMARK", help=f"One of: {', '.join(BENCHMARKS)}.")]
_Agents = Annotated[
    str, Option("--agent", metavar="NAMES", help=f"By comma, of: {', '.join(ARMS)}.")
]
_ALL = ",".join(ARMS)
_Policy = Annotated[
    str, Option(metavar="POLICY", help="A scripted policy of the benchmark, or a model spec.")
]
_Suites = Annotated[str, Option(metavar="NAMES", help="By comma; all if not given.")]
_Limit = Annotated[
    int | None,
    Option(min=1, metavar="N", help="At most N cases of each suite and kind, spread evenly."),
]
_Seeds = Annotated[int, Option(min=1, metavar="N", help="How often each case is played.")]
_Options = Annotated[
    list[str] | None,
    Option(
        "--option",
        metavar="NAME=VALUE",
        help="A setting of the benchmark, e.g. rules=only_trusted; may be repeated.",
    ),
]
_Output = Annotated[
    Path | None,
    Option(*("--output", "-o"), metavar="DIR", help="Where results are kept and continued."),
]
_Write = Annotated[
    Path | None,
    Option(metavar="PAGE", help="A page whose tables are replaced by these."),
]
_Mark = Annotated[str, Option(metavar="NAME", help="The name of the tables' place in --write.")]
_Json = Annotated[bool, Option("--json", help="Print the result as JSON.")]


def bench(  # noqa: PLR0913 - options of a command
    benchmark: _Name,
    *,
    agent: _Agents = _ALL,
    policy: _Policy = "",
    suites: _Suites = "",
    limit: _Limit = None,
    seeds: _Seeds = 1,
    option: _Options = None,
    output: _Output = None,
    write: _Write = None,
    mark: _Mark = "bench",
    json_output: _Json = False,
) -> None:
    """Play a public benchmark with several agents; run again, it plays what is missing."""
    arms = _named(agent)
    for arm in arms:
        if arm not in ARMS:
            raise UnknownNameError("agent", arm, ARMS)
    opened = open_benchmark(benchmark, _settings(option or []))
    policy = policy or opened.policies[0]
    parts = (benchmark, policy, *opened.settings.values())
    folder = output or Path("logs") / "bench" / "-".join(map(_plain, parts))
    with ProgressBar() as bar:
        results = play(
            opened,
            [cast("Arm", arm) for arm in arms],
            policy,
            folder,
            suites=_named(suites),
            limit=limit,
            seeds=seeds,
            progress=bar,
        )
    if bar.stopped:
        raise typer.Exit(INTERRUPTED)
    if write is not None:
        replace_in(write, as_markdown(opened, results, arms), mark)
    if json_output:
        typer.echo(json.dumps(as_json(opened, policy, results, arms), indent=2))
    else:
        typer.echo(as_markdown(opened, results, arms))


def _named(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _plain(text: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "._" else "_" for sign in text)


def _settings(given: list[str]) -> dict[str, str]:
    settings: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise ConfigurationError(f"--option takes NAME=VALUE, e.g. version=v1, not {one!r}.")
        settings[name] = value
    return settings
