"""Chat agents on several processes or machines, over AutoGen's own gRPC runtime.

AgentChat's teams do not run over that runtime. So a team stays in one process, and its agents may
be elsewhere: a worker serves each as a `RoutedAgent` (`worker`, `serve_agent`), and a
`RemoteChatAgent` takes its place in any team, beside local agents.

A turn has an id, chosen by the client. The same id sent again is answered with the same result or
continues; it never runs twice, also where the worker ended in between: with `logs=` its replacement
takes the turn up by the agent's own trace, without them the turn ends in `RemoteAgentError`.
Waiting is bounded everywhere (`RemoteLimits`), so a dead worker is an error and never a hang.
"""

from __future__ import annotations

from coag._util.deprecation import renamed

from .places import AgentFactory, AgentPlace, build_again
from .processes import Processes, processes
from .protocol import RemoteLimits
from .remote import RemoteChatAgent, RemoteConnection, open_connection
from .runtime import connect, host, worker
from .service import serve_agent

__all__ = [
    "RemoteChatAgent",
    "RemoteConnection",
    "connect",
    "open_connection",
    "AgentPlace",
    "AgentFactory",
    "worker",
    "serve_agent",
    "host",
    "RemoteLimits",
    "Processes",
    "processes",
    "build_again",
]

__getattr__ = renamed(__name__, {"Connection": "RemoteConnection", "Limits": "RemoteLimits"})
