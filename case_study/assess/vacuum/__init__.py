"""The Dynamic Vacuum World as a domain of an assessment: all contenders, all scenarios.

A room of its own, since a sweep imports a domain only where it plays in it.
"""

from ._trials import DOMAIN, VacuumTrials

__all__ = ["DOMAIN", "VacuumTrials"]
