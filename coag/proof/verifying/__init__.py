"""Whether a trace obeys the invariants of deliberation, and is as it was written.

A few rules that belong together are one `Checker`: it looks at the records it names and keeps
what it must remember, never the trace. The story rebuilds working memory on the way, so that the
others see how things stood. What is wrong goes into one book, each with the sentence that says
what and where.
"""

from .book import Examination, Remark, Rule, Violation, folded
from .verify import TraceSource, examine, verify

__all__ = [
    "Examination",
    "Remark",
    "Rule",
    "TraceSource",
    "Violation",
    "examine",
    "folded",
    "verify",
]
