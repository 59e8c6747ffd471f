"""`coag` gives AutoGen agents a mind that can be inspected.

An agent of this package retrieves, reasons, proposes, evaluates and selects before it acts, on
a structured working memory and a long-term memory that lasts, and leaves a trace of it all.

    from coag import CoagAgent

The names below are loaded when they are first used, so that importing `coag` is quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coag._util.lazy import loaded_on_use

if TYPE_CHECKING:
    from coag.agent import CoagAgent, SituatedAgent
    from coag.awareness import Awareness
    from coag.compat import tool
    from coag.context import CoagContext, Rendering, WorkingMemory
    from coag.cycle import Bounds, CycleSettings, no_foreign_orders, only_trusted, rule
    from coag.errors import CoagError
    from coag.memory import LongTermMemory, ProceduralMemory
    from coag.models import ScriptedModel, open_model
    from coag.schema import Candidate, Percept, Phase, Section, Verdict
    from coag.tracing import Trace

__version__ = "0.1.0"

_HOMES = {
    "CoagAgent": "coag.agent",
    "SituatedAgent": "coag.agent",
    "Awareness": "coag.awareness",
    "tool": "coag.compat",
    "rule": "coag.cycle",
    "CoagContext": "coag.context",
    "WorkingMemory": "coag.context",
    "Rendering": "coag.context",
    "CycleSettings": "coag.cycle",
    "Bounds": "coag.cycle",
    "only_trusted": "coag.cycle",
    "no_foreign_orders": "coag.cycle",
    "LongTermMemory": "coag.memory",
    "ProceduralMemory": "coag.memory",
    "ScriptedModel": "coag.models",
    "open_model": "coag.models",
    "Candidate": "coag.schema",
    "Percept": "coag.schema",
    "Phase": "coag.schema",
    "Section": "coag.schema",
    "Verdict": "coag.schema",
    "CoagError": "coag.errors",
    "Trace": "coag.tracing",
}

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll] - loaded on first use
    "CoagAgent",
    "SituatedAgent",
    "Awareness",
    "tool",
    "rule",
    "CoagContext",
    "WorkingMemory",
    "Rendering",
    "CycleSettings",
    "Bounds",
    "only_trusted",
    "no_foreign_orders",
    "LongTermMemory",
    "ProceduralMemory",
    "ScriptedModel",
    "open_model",
    "Candidate",
    "Percept",
    "Phase",
    "Section",
    "Verdict",
    "CoagError",
    "Trace",
    "__version__",
]


__getattr__ = loaded_on_use(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
