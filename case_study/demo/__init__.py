"""The demo: both agents through the four scenarios, with live progress and a table at the end.

Without a model it shows what the framework does with a fallible one: in each scenario a scripted
temperament that falls into its trap, and `sound` as the control. With a model it runs that one.
"""

from ._plan import planned_cases
from ._run import REPORT, Show, run_demo, verification
from ._table import agent_label, demo_table, report_text, scripted_note

__all__ = [
    "planned_cases",
    "run_demo",
    "verification",
    "REPORT",
    "Show",
    "agent_label",
    "demo_table",
    "report_text",
    "scripted_note",
]
