"""The world over HTTP, on the loopback interface by default.

Robots join, act and sense with their own bearer tokens; the experimenter looks, lets time pass,
intervenes, snapshots and restores with the control token. A change is kept on disk (where a
state file is given) before it counts and before it is answered, so a killed server comes back
as it was. `WorldServer` serves from a background thread; `vacuum-world serve` from a process of
its own. Nothing is sent anywhere.
"""

from ._app import create_app
from ._gate import Gate
from ._hub import WorldHub
from ._messages import Happened, Joined, ProblemBody, StrandedBody
from ._openapi import openapi
from ._running import WorldServer, listen, open_world, serve_until_stopped, url_of
from ._statefile import KeptWorld, StateFile
from ._table import ENDPOINTS, Endpoint
from ._tokens import Tokens
from ._views import Change, Reported, Scene, WorldView

__all__ = [
    "WorldServer",
    "WorldHub",
    "Gate",
    "create_app",
    "open_world",
    "listen",
    "url_of",
    "serve_until_stopped",
    "openapi",
    "ENDPOINTS",
    "Endpoint",
    "KeptWorld",
    "StateFile",
    "Tokens",
    "Joined",
    "Happened",
    "ProblemBody",
    "StrandedBody",
    "WorldView",
    "Change",
    "Scene",
    "Reported",
]
