"""Parts that also serve stock AutoGen agents, and that `CoagAgent` itself is made of.

`ToolRunner` runs AutoGen tools and workbenches so that whatever they do ends in a result.
`AutoGenMemory` is our long-term memory behind AutoGen's `Memory`.
"""

from ._approvers import ConsoleApprover, ScriptedAnswer, ScriptedApprover
from ._memory import AutoGenMemory
from ._results import OUTPUT_CHARACTERS, cap_text, read_result
from ._tool_components import (
    ImportedTool,
    SourceTool,
    load_tool,
    load_workbench,
    tool_component,
    workbench_component,
)
from ._tool_runner import Tool, ToolRunner

__all__ = [
    "ToolRunner",
    "Tool",
    "read_result",
    "cap_text",
    "OUTPUT_CHARACTERS",
    "AutoGenMemory",
    "ImportedTool",
    "SourceTool",
    "tool_component",
    "load_tool",
    "workbench_component",
    "load_workbench",
    "ConsoleApprover",
    "ScriptedApprover",
    "ScriptedAnswer",
]
