"""Runs a case: one agent, one scenario, one seed, in a real HTTP world or in this process.

All contenders are driven in the same way: the task first, then "Continue." turn by turn, up to a
bound of external actions. A case leaves a folder:

```text
LOGS/<case id>/
  case.json        what was asked for
  <run id>/        one run folder per episode, which `coag log` shows
  memory/          long-term memory and procedures, shared by the episodes (CoAG, served)
  memory-1/        in a sequence, the long-term memory of episode 1; that of episode 2 begins as a
                   copy of it, or with nothing
  recall/          AutoGen's memory, shared by the episodes (plain-memory, served)
  world-1.json     the world of episode 1; not where it is served elsewhere
  episode-1.json   the outcome of episode 1, once it is over
  result.json      the result, once all are over
```
"""

from .building import build_agent, build_plain_agent
from .case import Progress, play_case, run_case
from .folder import BrokenOffError, CaseFolder, memory_of, records_of, resumable
from .request import AGENTS, Between, CaseRequest, Place, checked, model_spec
from .worlds import CONTROL_TOKEN, Showing, report_of

__all__ = [
    "run_case",
    "play_case",
    "resumable",
    "BrokenOffError",
    "CaseRequest",
    "checked",
    "model_spec",
    "Place",
    "Between",
    "memory_of",
    "Progress",
    "CaseFolder",
    "records_of",
    "AGENTS",
    "build_agent",
    "build_plain_agent",
    "Showing",
    "report_of",
    "CONTROL_TOKEN",
]
