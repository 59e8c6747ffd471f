"""`case-study run --show`: where to look, and when to begin."""

from __future__ import annotations

import os
import secrets
import socket

import click
import typer

from case_study.runner import CONTROL_TOKEN, CaseRequest, Showing
from case_study.temperaments import is_scripted
from coag.errors import ConfigurationError

HOST = "127.0.0.1"
SCRIPTED_PACE = 1.0
"""Seconds between two phases of a scripted model, which thinks faster than anybody looks."""


def shown(
    request: CaseRequest, *, show: bool, pace: float | None, port: int | None
) -> Showing | None:
    """How a case is shown, told on stderr; None where nobody asked for it.

    Raises:
        ConfigurationError: An option was given that would have no effect.
    """
    refuse_without_show(show=show, pace=pace, port=port, world=request.world)
    if not show:
        return None
    scripted = is_scripted(request.model)
    seconds = pace if pace is not None else SCRIPTED_PACE if scripted else 0.0
    token = os.environ.get(CONTROL_TOKEN) or secrets.token_urlsafe(24)
    if request.world is not None:
        _tell(request.world.rstrip("/"), None)
        return Showing(pace=seconds)
    chosen = port or _free_port()
    _tell(f"http://{HOST}:{chosen}", None if CONTROL_TOKEN in os.environ else token)
    return Showing(pace=seconds, port=chosen, control_token=token)


def refuse_without_show(
    *, show: bool, pace: float | None, port: int | None, world: str | None
) -> None:
    """Options that would have no effect, unnoticed.

    Raises:
        ConfigurationError: There is one.
    """
    if not show:
        refuse({"--pace": pace is not None, "--port": port is not None}, "only with --show")
    elif world is not None:
        refuse({"--port": port is not None}, "the world is served elsewhere: --world")


def refuse(given: dict[str, bool], reason: str) -> None:
    """Options that would have no effect, unnoticed.

    Raises:
        ConfigurationError: One of them is given.
    """
    named = ", ".join(name for name, is_given in given.items() if is_given)
    if named:
        raise ConfigurationError(f"{named}: {reason}. Leave it out.")


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as listening:
        return listening.getsockname()[1]


def _tell(url: str, token: str | None) -> None:
    """Says where to look; where somebody sits at the terminal, the run waits for them."""
    typer.echo(f"live page: {url}/", err=True)
    typer.echo(f"control token: {token or f'the one in {CONTROL_TOKEN}'}", err=True)
    click.pause("Open the page and press any key here to begin.", err=True)
