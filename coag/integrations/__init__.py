"""Parts of `coag` for agents of other frameworks.

Each framework has a room of its own here, imported by its name only: `agent_framework` is
Microsoft's, and needs its package. `ConstraintInterceptor` serves any host of the agent-hooks
contract, and needs none.
"""

from .agent_hooks import ConstraintInterceptor

__all__ = ["ConstraintInterceptor"]
