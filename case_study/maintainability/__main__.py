"""`python -m case_study.maintainability`: what change requests take, and whether they hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from pydantic import TypeAdapter

from case_study.maintainability import Maintained, maintain, replaced, table
from coag.errors import CoagError


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Instances per change request.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Results as JSON, diffs too.")] = False,
    write: Annotated[Path | None, typer.Option(help="Page whose tables are replaced.")] = None,
) -> None:
    """Works the same change requests into both agents, and plays them with scripted models.

    Takes a few minutes: every change is played in a temporary copy of the packages.
    """
    try:
        results = maintain(seeds=seeds)
    except CoagError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(1) from error
    if as_json:
        typer.echo(TypeAdapter(list[Maintained]).dump_json(results, indent=2).decode())
    else:
        typer.echo(table(results))
    if write is not None:
        page = write.read_text(encoding="utf-8")
        write.write_text(replaced(page, table(results)), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
