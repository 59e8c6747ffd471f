"""`vacuum-world`: the world's command line."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from vacuum_world.errors import WorldError
from vacuum_world.scenarios import SCENARIOS, build_scenario
from vacuum_world.server import listen, open_world, serve_until_stopped, url_of
from vacuum_world.world import TickMode, WorldState, create_world

CONTROL_TOKEN = "VACUUM_WORLD_CONTROL_TOKEN"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vacuum-world (coag {version('coag')})")
        raise typer.Exit


@app.callback(help="The Dynamic Vacuum World: robots, dirt, obstacles, over HTTP.")
def _commands(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Keep `serve` a command of its own, though it is the only one."""


@app.command()
def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="Port to serve; 0 takes a free one.")
    ] = 8765,
    host: Annotated[str, typer.Option(help="Address to serve.")] = "127.0.0.1",
    seed: Annotated[
        int | None, typer.Option(help="What the world is made from; 0 if not given.")
    ] = None,
    scenario: Annotated[
        str | None,
        typer.Option(help=f"Begin as in a scenario: {', '.join(SCENARIOS)}."),
    ] = None,
    ticks: Annotated[
        TickMode, typer.Option(help="When time passes: per action, by hand, or by the clock.")
    ] = "action",
    interval: Annotated[
        float, typer.Option(min=0.01, help="Seconds between ticks with --ticks clock.")
    ] = 1.0,
    size: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=50,
            metavar="N",
            help="Cells along each side, 5 if not given (not with --scenario).",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(help="Keep the world in this file; one that is there is continued."),
    ] = None,
) -> None:
    """Serve a world until interrupted.

    The first line printed is `serving URL`. The experimenter's token is taken from
    VACUUM_WORLD_CONTROL_TOKEN, or made and printed once.
    """
    try:
        if scenario is not None and size is not None:
            raise ValueError("--scenario has a grid of its own: leave out --size")
        world = _world(scenario, seed or 0, ticks, size or 5)
        existed = state is not None and state.exists()
        hub, token = open_world(world, os.environ.get(CONTROL_TOKEN), state)
        listening = listen(host, port)
    except (WorldError, ValueError, OSError) as error:
        typer.echo(f"vacuum-world: {error}", err=True)
        raise typer.Exit(2) from error
    if existed:
        options = {"--scenario": scenario, "--seed": seed, "--size": size}
        unused = ", ".join(name for name, value in options.items() if value is not None)
        without = f"; without effect on it: {unused}" if unused else ""
        typer.echo(f"vacuum-world: continuing the world saved in {state}{without}", err=True)
    url = url_of(listening)
    typer.echo(f"serving {url}")
    typer.echo(f"live page: {url}/")
    typer.echo(f"control token: {_described(token)}")
    serve_until_stopped(hub, listening, host, interval)


def _world(scenario: str | None, seed: int, ticks: TickMode, size: int) -> WorldState:
    if scenario is None:
        return create_world(seed, grid=(size, size), ticks=ticks)
    world = build_scenario(scenario, seed).world
    return world.model_copy(update={"ticks": ticks})


def _described(token: str | None) -> str:
    if CONTROL_TOKEN in os.environ:
        return f"the one in {CONTROL_TOKEN}"
    return token or "the one that was printed when this world was first served"


def main() -> None:
    """Run the command line."""
    app()


if __name__ == "__main__":
    main()
