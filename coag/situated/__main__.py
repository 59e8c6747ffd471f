"""Serves a workspace: `python -m coag.situated MODULE:FUNCTION [--http PORT]`.

The function, plain or async, returns the `Workspace`. Without `--http`, it is served to the process
that starts this one, over standard input and output.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import sys
from importlib import import_module
from typing import Any

from coag.errors import CoagError, ConfigurationError

from .serving import serve_http, serve_stdio
from .workspace import Workspace


async def made(place: str) -> Workspace:
    """The workspace that a function returns."""
    module, colon, function = place.partition(":")
    if not (module and colon and function):
        raise ConfigurationError(f"{place!r} names no function; one looks like 'plant:workspace'.")
    try:
        made: Any = getattr(import_module(module), function)()
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(f"{place!r} cannot be found: {error}.") from error
    workspace: Any = await made if inspect.isawaitable(made) else made
    if not isinstance(workspace, Workspace):
        raise ConfigurationError(f"{place!r} returned {workspace!r}, which is no Workspace.")
    return workspace


async def _serve(options: argparse.Namespace) -> None:
    workspace = await made(options.function)
    try:
        if options.http is None:
            await serve_stdio(workspace, name=options.function)
            return
        async with serve_http(
            workspace,
            name=options.function,
            host=options.host,
            port=options.http,
            hosts=options.allow,
        ) as address:
            sys.stdout.write(f"{address}\n")
            sys.stdout.flush()
            await asyncio.Event().wait()
    finally:
        await workspace.close()


def main() -> int:
    """Runs the command; 2 if it cannot."""
    parser = argparse.ArgumentParser(prog="python -m coag.situated", description=__doc__)
    parser.add_argument("function", help="MODULE:FUNCTION that returns the workspace")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve by HTTP; 0: a free port")
    parser.add_argument("--host", default="127.0.0.1", help="the address that is listened on")
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="NAME:PORT",
        help="a name that requests may use; needed with --host",
    )
    sys.path.insert(0, "")
    try:
        asyncio.run(_serve(parser.parse_args()))
    except KeyboardInterrupt:
        return 0
    except CoagError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
