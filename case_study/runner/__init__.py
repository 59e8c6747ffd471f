"""Runs a case: one agent, one scenario, one seed, in a real HTTP world.

Both kinds of agent are driven in the same way: the task first, then "Continue." turn by turn,
one external action a turn, up to a bound. A case leaves a folder:

```text
LOGS/<case id>/
  case.json        what was asked for
  <run id>/        one run folder per episode, which `coag log` shows
  memory/          long-term memory and procedures, shared by the episodes (CoAG)
  world-1.json     the world of episode 1, where the case serves it itself
  episode-1.json   what episode 1 came to, once it is over
  result.json      the result, once all are over
```
"""

from ._broken import BrokenOffError, resumable
from ._build import AGENTS, build_agent, build_plain_agent
from ._case import run_case
from ._episode import OnProgress, Progress
from ._folder import CaseFolder
from ._mind_report import report_of
from ._request import CaseRequest, Delivery, checked, model_spec
from ._showing import Showing, Watcher
from ._worlds import CONTROL_TOKEN, World, open_world

__all__ = [
    "run_case",
    "resumable",
    "BrokenOffError",
    "CaseRequest",
    "checked",
    "model_spec",
    "Delivery",
    "Progress",
    "OnProgress",
    "CaseFolder",
    "AGENTS",
    "build_agent",
    "build_plain_agent",
    "Showing",
    "Watcher",
    "report_of",
    "World",
    "open_world",
    "CONTROL_TOKEN",
]
