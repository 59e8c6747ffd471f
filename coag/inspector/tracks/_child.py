"""The process that checks runs, for the one that shows them."""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any, TextIO

from coag.errors import CoagError
from coag.proof import Domain
from coag.tracing import RunFolder

from ._found import check

_NICE = 10
"""How far it stands behind for whatever else the machine has to do."""


def order(folder: Path, domain: Domain | None) -> bytes:
    """What the process is told, as a line for its standard input.

    Raises:
        TypeError, AttributeError, pickle.PicklingError: The domain cannot be told to a process.
    """
    told = base64.b64encode(pickle.dumps(domain)).decode()
    return json.dumps({"folder": str(folder), "domain": told}).encode() + b"\n"


def main() -> None:
    """Checks the runs that the lines of the standard input name, one after the other.

    What it finds is told line by line, as JSON. It ends when its standard input does, so that it
    outlives nobody.
    """
    os.nice(_NICE)
    orders: Queue[bytes] = Queue()
    Thread(target=_take, args=(sys.stdin.fileno(), orders), daemon=True).start()
    while True:
        run(orders.get(), sys.stdout)


def run(line: bytes, out: TextIO) -> None:
    """Does what a line of `order` says, and tells of it.

    The line is the parent's own: nothing in it comes out of a log but the folder's name.
    """
    told = json.loads(line)
    tell = _teller(out)
    try:
        check(RunFolder(Path(told["folder"])), pickle.loads(base64.b64decode(told["domain"])), tell)
    except CoagError as error:
        tell({"trouble": str(error), "done": True})


def _teller(out: TextIO) -> Callable[[dict[str, Any]], None]:
    def tell(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    return tell


def _take(stream: int, orders: Queue[bytes]) -> None:
    """Takes orders in, and ends this process when whoever gives them is gone."""
    rest = b""
    while piece := os.read(stream, 1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            orders.put(line)
    os._exit(0)
