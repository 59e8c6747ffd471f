"""Working memory and the context that owns it (CoALA §4.1; CoAG §2, A.1).

`WorkingMemory` is a frozen value: the perceptual state, which only percepts change, and the
cognitive state, which only the outcomes of phases change. `CoagContext` owns the current one,
renders it into prompts within token budgets, and is what a domain subclasses: a schema for its
perceptual state, a hook that reads tool returns, a description, a query, and, where it has
one, a forward model. `rebuild` gives a working memory back from a trace.
"""

from typing import TYPE_CHECKING

from coag._util.deprecation import renamed
from coag._util.lazy import loaded_on_use

from .component import from_part, load_context, nested_component, to_part
from .context import CoagContext
from .counted import CountedAction, counted_for, counted_value
from .dialogue import named_images
from .prompt_budgets import READ_MORE, WINDOW, Budgets, MemoryLimits, name_of, shortened
from .prompts import DATA_RULE, PhaseMaterial, Rendering
from .sections import fitting, render_section, state_in_words, wrap_as_data
from .states import AssistantState, check_public, dump_state, own_copy, state_fields
from .working_memory import (
    CognitiveState,
    EarlierDialogue,
    GoalCost,
    PastAction,
    RejectedCandidate,
    Utterance,
    WorkingMemory,
    is_untrusted,
    rebuild,
)

if TYPE_CHECKING:
    from .situated import SituatedContext, SituatedState, ToolState

__all__ = [
    "CoagContext",
    "WorkingMemory",
    "GoalCost",
    "is_untrusted",
    "CognitiveState",
    "Utterance",
    "PastAction",
    "CountedAction",
    "counted_for",
    "counted_value",
    "RejectedCandidate",
    "rebuild",
    "Budgets",
    "MemoryLimits",
    "WINDOW",
    "EarlierDialogue",
    "READ_MORE",
    "shortened",
    "name_of",
    "Rendering",
    "PhaseMaterial",
    "DATA_RULE",
    "AssistantState",
    "SituatedContext",
    "SituatedState",
    "ToolState",
    "dump_state",
    "state_fields",
    "own_copy",
    "render_section",
    "fitting",
    "wrap_as_data",
    "state_in_words",
    "nested_component",
    "load_context",
    "to_part",
    "from_part",
    "check_public",
    "named_images",
]

_FORMER = renamed(
    __name__,
    {
        "Deed": "PastAction",
        "Rejection": "RejectedCandidate",
        "Spent": "GoalCost",
        "Limits": "MemoryLimits",
        "Earlier": "EarlierDialogue",
    },
)
_SITUATED = "coag.context.situated"
_HOMES = {name: _SITUATED for name in ("SituatedContext", "SituatedState", "ToolState")}
__getattr__ = loaded_on_use(__name__, _HOMES, _FORMER)
