"""The pure generative baseline: AutoGen's `AssistantAgent` with a utility-maximising prompt.

It gets the same tools and the same messages as the CoAG agent, and leaves a trace of the same
format (`kind: plain`): model calls, intents, receipts. A change of requirements is a change of
its system prompt: a new agent that takes over the dialogue. It can be given more tool iterations
a turn, AutoGen's own Chroma memory (`open_recall`), or our rules around its tools (`Guard`).
"""

from .agent import Guard, PlainAgent, WorldWorkbench, open_recall

__all__ = ["PlainAgent", "WorldWorkbench", "Guard", "open_recall"]
