"""The world over HTTP, on the loopback interface by default.

Robots join, act and sense with their own bearer tokens; the experimenter looks, lets time pass,
intervenes, snapshots and restores with the control token. A change is kept on disk (where a
state file is given) before it counts and before it is answered, so a killed server comes back
as it was. `WorldServer` serves from a background thread; `vacuum-world serve` from a process of
its own. Nothing is sent anywhere.
"""

from .app import create_app
from .gate import Gate
from .hub import KeptWorld, StateFile, WorldHub
from .messages import Happened, Joined, ProblemBody, StrandedBody
from .running import WorldServer, listen, open_world, serve_until_stopped, url_of
from .tokens import Tokens
from .views import Change, Reported, Scene, WorldView

__all__ = [
    "WorldServer",
    "WorldHub",
    "Gate",
    "create_app",
    "open_world",
    "listen",
    "url_of",
    "serve_until_stopped",
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
