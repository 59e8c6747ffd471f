"""Finding out what a model server can do, before agents find out the hard way.

Servers that call themselves compatible differ in what they leave out, and many leave it out
silently: a schema is taken and ignored, a tool call comes as text, the beginning of a long prompt
is cut off. `examine` asks a server, through the same AutoGen client that agents would use, for
things that it can only get right by doing them, and against the pull of the prompt. Each *probe*
is one question, bounded in tokens and time, and ends in one *finding*; what a server does wrong
is a finding, never an error. From the findings follow the output mode, `proposal` and
`model_info`: `Report.recommendation`.

`check_versions` compares what is installed with the bounds that the packages' own metadata claim.
`coag doctor` prints both.
"""

from __future__ import annotations

from coag._util.deprecation import renamed

from .examine import examine
from .findings import Grade, Probe, ProbeFinding, ProbeLimits, ProbeOutcome, Report
from .versions import Fit, PackageCheck, VersionReport, check_versions

__all__ = [
    "examine", "ProbeLimits", "Report", "ProbeFinding", "Probe", "ProbeOutcome", "Grade",
    "check_versions", "VersionReport", "PackageCheck", "Fit",
]  # fmt: skip

__getattr__ = renamed(
    __name__, {"Finding": "ProbeFinding", "Found": "ProbeOutcome", "Limits": "ProbeLimits"}
)
