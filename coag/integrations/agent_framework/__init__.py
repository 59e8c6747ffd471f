"""`coag` in the Microsoft Agent Framework: our agent, and parts of it for stock agents.

`MafCoagAgent` is a `CoagAgent` as an agent of that framework: over its chat clients and tools, in
its sessions, workflows and orchestrations.

`ConstrainedMiddleware` puts the guard through which `CoagAgent` acts around any agent of that
framework: rules in code judge each call, before a person is asked about it and right before it
runs. `MemoryProvider` and `AwarenessProvider` are our memory and our awareness as its context
providers, with their state in its session. `trust_of` and `set_label` read and write its security
labels as our trust.

Around a stock agent the framework keeps its own loop: what it does not show to middleware cannot
be judged. In a `MafCoagAgent` all of it can be.
"""

from coag.errors import ConfigurationError

try:
    import agent_framework as _  # noqa: F401 - the modules below import it, too
except ImportError as error:
    raise ConfigurationError(
        f"Agents of the Agent Framework need its package ({error}): "
        "pip install 'coag[agent-framework]'."
    ) from error

from .coag_agent import MafCoagAgent
from .constrained import ConstrainedMiddleware
from .labels import Confidentiality, label_of, set_label, trust_of
from .providers import AwarenessProvider, MemoryProvider

__all__ = [
    "MafCoagAgent",
    "ConstrainedMiddleware",
    "MemoryProvider",
    "AwarenessProvider",
    "trust_of",
    "label_of",
    "set_label",
    "Confidentiality",
]
