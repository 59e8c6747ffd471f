"""The Dynamic Vacuum World of the CoAG paper: rules, scenarios, server, client and tools.

The world knows nothing of agents. `vacuum_world.world` holds the rules, `.scenarios` the four
adversarial set-ups with their ground truth, `.server` the HTTP world with its live page,
`.client` the typed way to it, and `.tools` the same as AutoGen tools.
"""

from vacuum_world.world import Reading, last_state_line, state_line

__all__ = ["Reading", "last_state_line", "state_line"]
