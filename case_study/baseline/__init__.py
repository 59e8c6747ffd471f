"""The pure generative baseline: AutoGen's `AssistantAgent` with a utility-maximising prompt.

It gets the same tools and the same messages as the CoAG agent, and leaves a trace of the same
format (`kind: plain`): model calls, intents, receipts. A change of requirements is a change of
its system prompt: a new agent that takes over the dialogue.
"""

from ._agent import PlainAgent
from ._client import OneActionClient
from ._workbench import WorldWorkbench

__all__ = ["PlainAgent", "OneActionClient", "WorldWorkbench"]
