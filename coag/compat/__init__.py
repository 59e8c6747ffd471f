"""Parts that also serve stock AutoGen agents, and that `CoagAgent` itself is made of.

`ToolRunner` runs AutoGen tools and workbenches so that whatever they do ends in a result.
`ConstrainedWorkbench` puts the guard of `CoagAgent` around any tools.
`AutoGenMemory` is our long-term memory behind AutoGen's `Memory`.
`SteadyClient` makes the answers of any model client reliable. `record` writes the run of any
chat agent down as ours are: `RecordingClient` and `RecordingWorkbench` write its model and its
tools down, and `ReplayingClient` and `ReplayingWorkbench` answer out of such a run.
"""

from ._announced import Attempt
from ._approvers import ConsoleApprover, ScriptedAnswer, ScriptedApprover
from ._call_repair import Mended, mend_arguments
from ._constrained_config import ConstrainedWorkbenchConfig
from ._constrained_workbench import ConstrainedWorkbench
from ._constraint_components import (
    ConstraintConfig,
    Part,
    RuleUnderName,
    constraint_config,
    from_constraint_config,
    get_part,
    part_of,
)
from ._exchange import Exchange
from ._guarded_answers import GuardedResult
from ._memory import AutoGenMemory
from ._recorded_agent import RecordedAgent, record
from ._recorder import Recorder
from ._recording_client import RecordingClient
from ._recording_workbench import RecordingWorkbench
from ._replaying_client import ReplayingClient, ReplayingClientConfig
from ._replaying_workbench import ReplayingWorkbench, ReplayingWorkbenchConfig
from ._results import OUTPUT_CHARACTERS, cap_text, read_result
from ._returned import status_of
from ._steady_client import SteadyClient
from ._stock_run import StockRun, stock_run
from ._tool_components import (
    ImportedTool,
    SourceTool,
    load_tool,
    load_workbench,
    tool_component,
    workbench_component,
)
from ._tool_effects import Reconcile, ToolEffects, effects_of, tool
from ._tool_runner import RESERVED, Tool, ToolRunner
from ._wrapping_client import WrappingClient

__all__ = [
    "ToolRunner",
    "Tool",
    "tool",
    "ToolEffects",
    "effects_of",
    "Reconcile",
    "RESERVED",
    "read_result",
    "cap_text",
    "OUTPUT_CHARACTERS",
    "AutoGenMemory",
    "ConsoleApprover",
    "ScriptedApprover",
    "ScriptedAnswer",
    "ImportedTool",
    "SourceTool",
    "tool_component",
    "load_tool",
    "workbench_component",
    "load_workbench",
    "ConstrainedWorkbench",
    "ConstrainedWorkbenchConfig",
    "GuardedResult",
    "Part",
    "part_of",
    "get_part",
    "ConstraintConfig",
    "RuleUnderName",
    "constraint_config",
    "from_constraint_config",
    "SteadyClient",
    "Exchange",
    "mend_arguments",
    "Mended",
    "record",
    "StockRun",
    "stock_run",
    "Recorder",
    "RecordedAgent",
    "RecordingClient",
    "ReplayingClient",
    "ReplayingClientConfig",
    "RecordingWorkbench",
    "ReplayingWorkbench",
    "ReplayingWorkbenchConfig",
    "status_of",
    "WrappingClient",
    "Attempt",
]
