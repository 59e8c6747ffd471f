"""Parts that also serve stock AutoGen agents, and that `CoagAgent` itself is made of.

`ToolRunner` runs AutoGen tools and workbenches so that whatever they do ends in a result.
`ConstrainedWorkbench` puts the guard of `CoagAgent` around any tools, `ConstrainedClient` around
the answers of the agent that uses them. `EnhancedToolWorkbench` gives stock agents tools that
change by themselves, with a wait.
`AutoGenMemory` is our long-term memory behind AutoGen's `Memory`.
`ResilientClient` makes the answers of any model client reliable. `record` writes the run of any
chat agent down as ours are: `RecordingClient` and `RecordingWorkbench` write its model and its
tools down, and `ReplayingClient` and `ReplayingWorkbench` answer out of such a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coag._util.deprecation import renamed
from coag._util.lazy import loaded_on_use

from .approvers import ConsoleApprover, ScriptedApprover
from .autogen_memory import RECALLED, SITUATION, AutoGenMemory
from .call_repair import repair_arguments
from .components import (
    ConstraintConfig,
    ImportedTool,
    NamedComponent,
    Part,
    SourceTool,
    constraint_config,
    from_constraint_config,
    get_part,
    load_tool,
    load_workbench,
    part_of,
    tool_component,
    workbench_component,
)
from .constrained_client import ConstrainedClient
from .constrained_workbench import ConstrainedWorkbench
from .exchanges import UNREADABLE, ended_as, status_of
from .guard import Guard, correction_of, make_guard
from .guarded_calls import GuardedResult, JudgedCall
from .recorder import Recorder, ToolAttempt
from .recording import RecordedAgent, RecordingClient, RecordingWorkbench, record, stock_run
from .replaying import ReplayingClient, ReplayingWorkbench
from .resilient_client import ResilientClient
from .tool_runner import OUTPUT_CHARACTERS, RESERVED, ToolRunner, output_of, read_result
from .tools import (
    UNUSABLE_SCHEMA,
    StatelessWorkbench,
    Tool,
    ToolEffects,
    as_tool,
    completed_arguments,
    effects_of,
    spec_of,
    tool,
)

if TYPE_CHECKING:
    from .enhanced_tools import EnhancedToolWorkbench, OperationsWorkbench

__all__ = [
    "as_tool",
    "EnhancedToolWorkbench",
    "OperationsWorkbench",
    "StatelessWorkbench",
    "ToolRunner",
    "Tool",
    "tool",
    "ToolEffects",
    "RESERVED",
    "read_result",
    "output_of",
    "OUTPUT_CHARACTERS",
    "completed_arguments",
    "effects_of",
    "spec_of",
    "UNUSABLE_SCHEMA",
    "AutoGenMemory",
    "RECALLED",
    "SITUATION",
    "ConsoleApprover",
    "ScriptedApprover",
    "ImportedTool",
    "NamedComponent",
    "SourceTool",
    "tool_component",
    "load_tool",
    "workbench_component",
    "load_workbench",
    "ConstrainedClient",
    "ConstrainedWorkbench",
    "GuardedResult",
    "Guard",
    "JudgedCall",
    "make_guard",
    "correction_of",
    "Part",
    "part_of",
    "get_part",
    "ConstraintConfig",
    "constraint_config",
    "from_constraint_config",
    "ResilientClient",
    "repair_arguments",
    "record",
    "stock_run",
    "Recorder",
    "RecordedAgent",
    "RecordingClient",
    "ReplayingClient",
    "RecordingWorkbench",
    "ReplayingWorkbench",
    "status_of",
    "ended_as",
    "UNREADABLE",
    "ToolAttempt",
]

_FORMER = renamed(
    __name__,
    {
        "SteadyClient": "ResilientClient",
        "mend_arguments": "repair_arguments",
        "Attempt": "ToolAttempt",
    },
)
_ENHANCED = "coag.compat.enhanced_tools"
_HOMES = {"EnhancedToolWorkbench": _ENHANCED, "OperationsWorkbench": _ENHANCED}
__getattr__ = loaded_on_use(__name__, _HOMES, _FORMER)
