"""`CoagAgent`: the deliberating agent behind AutoGen's API, and the one place of wiring.

`SituatedAgent` (`situated.py`, `minds.py`, `goals.py`) pursues goals as activities, each with an
agent of its own; `delegation.py` offers one to other agents as a tool.
`agent.py` is the agent and its turn; `arguments.py` lists what it is given, `build.py` wires its
parts, `events.py` maps outcomes to AutoGen's events. `serialize.py` writes it down, `runs.py` keeps
its run folder, and `resume.py` and `rebuild.py` bring it back from one.
"""

from typing import TYPE_CHECKING

from coag._util.deprecation import renamed
from coag._util.lazy import loaded_on_use

from .agent import CoagAgent
from .arguments import DESCRIPTION, SYSTEM_MESSAGE, AgentArguments, MemoryArgument
from .build import Mind
from .events import PHASE_LISTENER
from .rebuild import ReplayDoubles, build_again, detach_modules, rebuild, staged, twin
from .recipes import load_factory, refuse_activity, takes_rebuild
from .replay_model import ReplayAnswers
from .resume import RecoveredState, reading_trace, recover_state, restore
from .turns import TurnLease

if TYPE_CHECKING:
    from .delegation import DelegateTool
    from .goals import SignalGoal, TimedGoal
    from .situated import SituatedAgent

__all__ = [
    "CoagAgent",
    "DelegateTool",
    "SituatedAgent",
    "SignalGoal",
    "TimedGoal",
    "AgentArguments",
    "PHASE_LISTENER",
    "DESCRIPTION",
    "SYSTEM_MESSAGE",
    "Mind",
    "build_again",
    "load_factory",
    "takes_rebuild",
    "refuse_activity",
    "detach_modules",
    "rebuild",
    "twin",
    "staged",
    "ReplayDoubles",
    "ReplayAnswers",
    "restore",
    "RecoveredState",
    "reading_trace",
    "recover_state",
    "MemoryArgument",
    "TurnLease",
]

_FORMER = renamed(
    __name__,
    {
        "Remains": "RecoveredState",
        "read_remains": "recover_state",
        "taking_up": "reading_trace",
        "take_up": "restore",
        "Doubles": "ReplayDoubles",
        "AnswerSource": "ReplayAnswers",
    },
)
_HOMES = {
    "DelegateTool": "coag.agent.delegation",
    "SignalGoal": "coag.agent.goals",
    "TimedGoal": "coag.agent.goals",
    "SituatedAgent": "coag.agent.situated",
}
__getattr__ = loaded_on_use(__name__, _HOMES, _FORMER)
