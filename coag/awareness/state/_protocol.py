"""The interaction protocol: the contract under which the agent acts (SAGEN §3.6)."""

from __future__ import annotations

from enum import StrEnum

from coag.schema import Value

from ._texts import Names, Text


class CollaborationMode(StrEnum):
    """Who decides."""

    AUTONOMOUS = "autonomous"
    SUPERVISED = "supervised"
    COLLABORATIVE = "collaborative"
    ADVISORY = "advisory"


class InteractionProtocol(Value):
    """How the agent talks, when it asks for help, and what it must never do."""

    style: Text = ""
    """How it talks, e.g. `friendly, adaptive`."""
    output_format: Text = ""
    escalation: Names = ()
    """When it hands over to a human, one rule each."""
    mode: CollaborationMode = CollaborationMode.COLLABORATIVE
    hard_constraints: Names = ()
    """What holds whatever else is wanted, one rule each."""
