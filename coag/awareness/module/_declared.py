"""What the program declares of the agent, in a state that knows more of it."""

from __future__ import annotations

from coag.awareness.state import AwarenessState, SelfModel, folded

_DECLARED = ("capabilities", "limitations", "needs", "allowed", "forbidden")
"""Fields of the self model that only a program says."""


def with_declared(state: AwarenessState, declared: SelfModel | None) -> AwarenessState:
    """The state with what is declared; what was found out since stays, as resources and failures.

    A resource that is declared and known stays as it was last read.
    """
    if declared is None:
        return state
    known = state.self_model
    names = {folded(one.name) for one in known.resources}
    new = tuple(one for one in declared.resources if folded(one.name) not in names)
    self_model = known.model_copy(
        update={
            **{name: getattr(declared, name) for name in _DECLARED},
            "resources": (*known.resources, *new),
            "failures": known.failures or declared.failures,
        }
    )
    return state.model_copy(update={"self_model": self_model})
