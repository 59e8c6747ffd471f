"""Situated agents: tools with a state and signals of their own, and activities that wait for them.

Agents & Artifacts (Ricci, Piunti, Viroli) and S-ORA (Tonelli, *Apprentice*). A tool has observable
*properties*, *operations* that are acknowledged at once, *signals* that it emits by itself, and a
*manual*. An agent pursues each goal as an *activity*: ready, running, blocked until what it waits
for has arrived, or terminated. A blocked one costs nothing.

See docs/design/situated.md.
"""

from .activities import (
    Activity,
    ActivityBudget,
    ActivityEnd,
    ActivityState,
    OnActivity,
    OnProperty,
    OnSignal,
    Step,
    Wait,
)
from .connection import ToolConnection, ToolConnectionError
from .records import (
    Acknowledgement,
    OperationDescription,
    PropertyDescription,
    PropertyReading,
    SignalDescription,
    SignalPage,
    SignalRecord,
    ToolDescription,
)
from .store import ActivityStore, Delivery
from .store_file import ActivityStoreError

__all__ = [
    "Acknowledgement",
    "Activity",
    "ActivityBudget",
    "ActivityEnd",
    "ActivityState",
    "ActivityStore",
    "ActivityStoreError",
    "Delivery",
    "OnActivity",
    "OnProperty",
    "OnSignal",
    "OperationDescription",
    "PropertyDescription",
    "PropertyReading",
    "SignalDescription",
    "SignalPage",
    "SignalRecord",
    "Step",
    "ToolConnection",
    "ToolConnectionError",
    "ToolDescription",
    "Wait",
]
