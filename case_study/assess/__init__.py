"""A sweep of contenders over scenarios, models and seeds, and what came of it.

A plan says what is asked for; its jobs are played pair by pair; each becomes one trial, kept in
the assessment's folder as soon as it is over, so that a sweep that was killed goes on where it
stood:

```text
DIR/
  assessment.json          the plan: what was asked for, by which code, on what machine
  trials/<scenario>.jsonl  one line a trial; a later line of the same job replaces an earlier one
  cases/...                the runs of the trials that are kept
```

A failure of the contender is evidence; a failure of the model or of the world is none: that trial
is `broken`, is not counted, and is played again when the sweep is begun again.
"""

from ._again import MeasuredAgain, measure_again
from ._agreement import Agreement, Disagreement, agreement
from ._assessment import Assessment
from ._crew import Alone, Crew
from ._domain import EPISODES, VACUUM, Domain, How, Played, domain_named
from ._errors import AssessmentError
from ._kept import has_plan, read_plan
from ._planning import begun, machine_class, versions
from ._playing import play_job
from ._processes import JOBS_A_WORKER, Workers
from ._ray import RayCrew, ray_crew
from ._selecting import contenders_named, fewer_seeds_named, scenarios_named, seeds_named
from ._sweep import Show, sweep
from ._time_left import TimeLeft
from ._trial import NO_MODEL, Job, Keep, Outcome, Place, Plan, Resumption, Trial

__all__ = [
    "Job",
    "Trial",
    "Outcome",
    "Plan",
    "Resumption",
    "Place",
    "Keep",
    "NO_MODEL",
    "Assessment",
    "AssessmentError",
    "begun",
    "has_plan",
    "read_plan",
    "contenders_named",
    "scenarios_named",
    "seeds_named",
    "fewer_seeds_named",
    "versions",
    "machine_class",
    "sweep",
    "Show",
    "TimeLeft",
    "Crew",
    "Alone",
    "Workers",
    "JOBS_A_WORKER",
    "RayCrew",
    "ray_crew",
    "play_job",
    "measure_again",
    "MeasuredAgain",
    "agreement",
    "Agreement",
    "Disagreement",
    "Domain",
    "How",
    "Played",
    "domain_named",
    "VACUUM",
    "EPISODES",
]
