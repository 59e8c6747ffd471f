"""The Dynamic Vacuum World of the CoAG paper: rules, scenarios, server, client and tools.

The world knows nothing of agents. `vacuum_world.world` holds the rules, `.scenarios` set-ups
with their ground truth, `.server` the HTTP world with its live page, `.client` the typed way to
it, `.tools` the same as AutoGen tools, and `.gym` the world as a Gymnasium environment.
"""

from vacuum_world.world import Reading, last_state_line, state_line

__all__ = ["Reading", "last_state_line", "state_line"]
