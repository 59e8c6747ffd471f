"""Situated agents: tools with a state and signals of their own, and activities that wait for them.

Agents & Artifacts (Ricci, Piunti, Viroli) and S-ORA (Tonelli, *Apprentice*). A tool has observable
*properties*, *operations* that are acknowledged at once, *signals* that it emits by itself, and a
*manual*. An agent pursues each goal as an *activity*: ready, running, blocked until what it waits
for has arrived, or terminated. A blocked one costs nothing.

See docs/design/situated.md.
"""

from .activities import (
    OPEN_STATES,
    Activity,
    ActivityBudget,
    ActivityEnd,
    ActivityState,
    OnActivity,
    OnProperty,
    OnSignal,
    Priority,
    Step,
    Wait,
)
from .calls import CallOrigin, current_call
from .catalogue import ToolRefusedError
from .connection import ToolConnection, ToolConnectionError
from .manual import Manual
from .mcp_connection import McpToolConnection
from .module import SituatedModule
from .module_actions import SituatedSettings
from .operations import OperationFailedError, OperationRefusedError, operation
from .perception import ToolPerception
from .pulling import ToolPerceptionSettings
from .records import (
    DELEGATED,
    DELEGATES,
    READ_MANUAL,
    READERS,
    Acknowledgement,
    OperationDescription,
    PropertyDescription,
    PropertyReading,
    SignalDescription,
    SignalPage,
    SignalRecord,
    ToolDescription,
    call_name,
    parts_of,
)
from .scheduler import ActivityMind, ActivityScheduler, StepDelayedError
from .serving import serve_http, serve_stdio
from .store import RUNS_NAME, STORE_NAME, ActivityStore, activity_in
from .store_file import ActivityStoreError
from .store_inboxes import Delivery
from .store_postgres import WorkerLeaseError, is_database
from .tool import EnhancedTool, internal_operation, observable, signal
from .transitions import SchedulerStoppedError
from .workspace import InProcessConnection, ScaledClock, ToolClock, VirtualClock, Workspace

__all__ = [
    "DELEGATED", "DELEGATES", "OPEN_STATES", "READERS", "READ_MANUAL", "RUNS_NAME",
    "STORE_NAME", "Acknowledgement", "Activity", "ActivityBudget", "ActivityEnd",
    "ActivityMind", "ActivityScheduler", "ActivityState", "ActivityStore",
    "ActivityStoreError", "CallOrigin", "Delivery", "EnhancedTool", "InProcessConnection",
    "Manual", "McpToolConnection", "OnActivity", "OnProperty", "OnSignal",
    "OperationDescription", "OperationFailedError", "OperationRefusedError", "Priority",
    "PropertyDescription", "PropertyReading", "ScaledClock", "SchedulerStoppedError",
    "SignalDescription", "SignalPage", "SignalRecord", "SituatedModule", "SituatedSettings",
    "Step", "StepDelayedError", "ToolClock", "ToolConnection", "ToolConnectionError",
    "ToolDescription", "ToolPerception", "ToolPerceptionSettings", "ToolRefusedError",
    "VirtualClock", "Wait", "WorkerLeaseError", "Workspace", "activity_in", "call_name",
    "current_call", "internal_operation", "is_database", "observable", "operation", "parts_of",
    "serve_http", "serve_stdio", "signal",
]  # fmt: skip
