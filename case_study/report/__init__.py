"""The report of an assessment: from its trials to numbers, sentences, tables and one page.

It goes one way. `summary_of` makes a `Summary` of an assessment, a pure value: rates with
intervals, paired comparisons, ablations, costs, curves, causes, and findings as sentences with
the losses first. Tables are made of it once and written as HTML and as Markdown alike; the
summary itself is the JSON. `write_report` does all of it for a folder.

All text in an assessment is untrusted: it is escaped, and characters that nobody sees are named.
The page holds no script, and asks for nothing from elsewhere.
"""

from ._learning_values import Learning, LearningPoint, Recalled
from ._runs import RUN_PAGES
from ._summary import summary_of, summary_schema
from ._values import (
    FORMAT,
    AbstractPart,
    AdaptationCurve,
    BudgetCurve,
    CausesRow,
    Compared,
    Contribution,
    CostRow,
    DecidedBy,
    Facts,
    Gap,
    MeasureRow,
    Panel,
    Rate,
    Reliability,
    SuccessRow,
    Summary,
    TrialLine,
)
from ._write import Written, write_report

__all__ = [
    "write_report",
    "Written",
    "RUN_PAGES",
    "summary_of",
    "summary_schema",
    "FORMAT",
    "Summary",
    "AbstractPart",
    "Facts",
    "Panel",
    "SuccessRow",
    "Rate",
    "DecidedBy",
    "Compared",
    "Contribution",
    "CostRow",
    "BudgetCurve",
    "Reliability",
    "AdaptationCurve",
    "CausesRow",
    "MeasureRow",
    "Learning",
    "LearningPoint",
    "Recalled",
    "Gap",
    "TrialLine",
]
