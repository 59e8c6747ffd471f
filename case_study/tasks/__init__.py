"""What the agents are asked to do, in words that a seed varies.

Both kinds of agent get the same text, as the user's message: goal, grid, coordinates, charger,
prices, the first reading of the sensors, and in `phantom-object` the report. What a scenario
hides is not in it.
"""

from .wording import CONTINUE, message_text, task_text, wordings

__all__ = ["task_text", "message_text", "wordings", "CONTINUE"]
