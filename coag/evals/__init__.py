"""Evaluations: which of several agents does better, on the same tasks and seeds, and by how much.

`run_evaluation` plays contenders over scenarios and seeds into a folder. Each trial is stored when
it is over, so that a run that was killed continues where it stopped. A failure of the contender is
evidence; a failure of the model or the environment is not: that trial is `broken`, is not counted,
and is played again by the next run. `compare` compares two contenders pair by pair, with intervals
and corrected p-values, and `write_report` writes everything as one page, JSON and Markdown.

`AgentTasks` makes a domain of your own agents and tasks; for anything else implement
`EvaluationDomain`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coag._util.lazy import loaded_on_use

from .planning import (
    begin,
    contenders_named,
    fewer_seeds_named,
    machine_class,
    scenarios_named,
    seeds_named,
    versions,
)
from .running import (
    JOBS_A_WORKER,
    EvaluationDomain,
    JobResult,
    Keep,
    MeasuresAgain,
    ProgressListener,
    RunSettings,
    agreement,
    measure_again,
    plan_of,
    run_evaluation,
)
from .statistics import (
    Interval,
    PairedComparison,
    PairedCounts,
    cohens_h,
    compare,
    holm,
    mcnemar,
    needed_n,
    needed_pairs_for_rates,
    paired_bootstrap,
    paired_d,
    pass_at_k,
    rate_difference,
    sign_flip,
    wilson,
    with_holm,
    worst_of_k,
)
from .trials import (
    NO_MODEL,
    Assessment,
    AssessmentError,
    BrokenTrialError,
    Job,
    Plan,
    Trial,
    has_plan,
    read_plan,
)

if TYPE_CHECKING:
    from .agents import AgentTasks, Contender, Task, TaskRun
    from .measures import (
        TRACE_MEASURES,
        Better,
        Counts,
        Figures,
        Measure,
        MeasureCatalogue,
        MeasureGroup,
        TraceEpisode,
        TraceTally,
        causes_of,
        cost_per_success,
        decisions_of,
        figures_of,
        measures_of,
        measures_table,
        ratio,
        tally_of,
    )
    from .procedure_search import PlayedEpisode, search_procedures
    from .report import write_report
    from .summary import Ablation, ReportProfile, data_frame

__all__ = [
    "run_evaluation",
    "PlayedEpisode",
    "search_procedures",
    "AgentTasks",
    "Task",
    "Contender",
    "TaskRun",
    "write_report",
    "ReportProfile",
    "Ablation",
    "data_frame",
    "compare",
    "with_holm",
    "PairedComparison",
    "Assessment",
    "AssessmentError",
    "BrokenTrialError",
    "Plan",
    "plan_of",
    "Job",
    "Trial",
    "NO_MODEL",
    "has_plan",
    "read_plan",
    "begin",
    "contenders_named",
    "scenarios_named",
    "seeds_named",
    "fewer_seeds_named",
    "versions",
    "machine_class",
    "EvaluationDomain",
    "MeasuresAgain",
    "JobResult",
    "RunSettings",
    "Keep",
    "JOBS_A_WORKER",
    "ProgressListener",
    "measure_again",
    "agreement",
    "Measure",
    "MeasureCatalogue",
    "MeasureGroup",
    "Better",
    "TRACE_MEASURES",
    "measures_of",
    "causes_of",
    "cost_per_success",
    "decisions_of",
    "measures_table",
    "ratio",
    "TraceEpisode",
    "TraceTally",
    "tally_of",
    "Counts",
    "Figures",
    "figures_of",
    "Interval",
    "wilson",
    "PairedCounts",
    "mcnemar",
    "sign_flip",
    "holm",
    "rate_difference",
    "paired_bootstrap",
    "cohens_h",
    "paired_d",
    "needed_n",
    "needed_pairs_for_rates",
    "pass_at_k",
    "worst_of_k",
]

_MEASURES = """
TRACE_MEASURES Better Counts Figures Measure MeasureCatalogue MeasureGroup TraceEpisode TraceTally
causes_of cost_per_success decisions_of figures_of measures_of measures_table ratio tally_of
"""
_SUMMARY = ("Ablation", "ReportProfile", "data_frame")
_HOMES = {  # worker processes that only play jobs start sooner without these
    **dict.fromkeys(("AgentTasks", "Contender", "Task", "TaskRun"), "coag.evals.agents"),
    **dict.fromkeys(_MEASURES.split(), "coag.evals.measures"),
    **dict.fromkeys(("PlayedEpisode", "search_procedures"), "coag.evals.procedure_search"),
    "write_report": "coag.evals.report",
    **dict.fromkeys(_SUMMARY, "coag.evals.summary"),
}
__getattr__ = loaded_on_use(__name__, _HOMES)
