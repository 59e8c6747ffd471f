"""What each failure of a run came from, by rules over its trace.

Each cycle becomes a scene: what was perceived, recalled, thought, proposed, judged, chosen and
done, and what later cycles show of it. The rules ask in the order in which the parts of a cycle
work; the earliest part that is at fault is the cause. What only a domain can know, e.g. what a
sentence claims of the state, it tells through `Domain`.
"""

from .causes import Cause, Circumstances, Claim, Diagnosis, Domain, Evidence
from .diagnose import diagnose, diagnoses

__all__ = [
    "Cause",
    "Circumstances",
    "Claim",
    "Diagnosis",
    "Domain",
    "Evidence",
    "diagnose",
    "diagnoses",
]
