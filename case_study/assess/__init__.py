"""A sweep of contenders over scenarios, models and seeds, and what came of it.

A plan says what is asked for; its jobs are played pair by pair; each becomes one trial, kept in
the assessment's folder as soon as it is over, so that a sweep that was killed goes on where it
stood:

```text
DIR/
  assessment.json        the plan: what was asked for, by which code, on what machine
  trials/<scenario>.jsonl  one line a trial; a later line of the same job replaces an earlier one
  cases/...              the runs of the trials that are kept
```
"""

from ._assessment import Assessment
from ._errors import AssessmentError
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
]
