"""Judgment: what an agent has learned about how to go about its work, kept across contexts.

A `CapabilityGraph` holds capabilities and the edges between them. `advise` says what may come next,
`reinforce` learns from what was done, `harvest` finds route patterns. The energy field of the paper
(`context_energy`) is one way to tell what a task is about. Entries say why: what was learned, and
dead ends that are closed until a reopen condition holds. `Judgment` is the bridge between both, on
one state that processes share; it advises and never decides. `JudgmentModule` puts it into an
agent, where dead ends rule out candidates; `DepthModule` learns how deeply to deliberate.

Nothing here needs more than the standard library but the modules, so that `coag judgment` answers
at once.

Source: W. K. Million, Judgment Preservation in Persistent AI Agents (2026).
"""

from typing import TYPE_CHECKING

from coag._util.lazy import loaded_on_use

from .bridge import Consultation, Judgment, Reported
from .field import TorusField, context_energy, places_by_index, places_by_meaning
from .graph import START, Capability, CapabilityEdge, CapabilityGraph
from .off_policy import LoggedChoice, Policy, ValueEstimate, doubly_robust, ips, snips
from .patterns import HarvestSettings, RoutePattern, RouteStep, biases_of, harvest
from .protocol import (
    ConfigurationTrial,
    DateReached,
    DeadEnd,
    Externalisation,
    Insight,
    JudgmentEntry,
    Method,
    ModelSaysYes,
    Origin,
    PerceptSeen,
    Reopen,
    SelfProfile,
    TaskReflection,
    TrustLevel,
    VersionChanged,
    World,
    entry_from,
    to_json,
)
from .routing import (
    Advice,
    Advising,
    RoutingSettings,
    advise,
    chances,
    choose,
    confidence,
    reinforce,
    score,
)
from .store import Revoked

if TYPE_CHECKING:
    from .depth_module import DepthModule
    from .module import JudgmentModule

__getattr__ = loaded_on_use(
    __name__,
    {"JudgmentModule": "coag.judgment.module", "DepthModule": "coag.judgment.depth_module"},
)

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll] - two are loaded on first use
    "Judgment",
    "JudgmentModule",
    "DepthModule",
    "Consultation",
    "Reported",
    "Revoked",
    "START",
    "Capability",
    "CapabilityGraph",
    "CapabilityEdge",
    "RoutingSettings",
    "Advising",
    "Advice",
    "advise",
    "choose",
    "chances",
    "score",
    "confidence",
    "reinforce",
    "RouteStep",
    "RoutePattern",
    "HarvestSettings",
    "harvest",
    "biases_of",
    "LoggedChoice",
    "Policy",
    "ValueEstimate",
    "ips",
    "snips",
    "doubly_robust",
    "TorusField",
    "context_energy",
    "places_by_index",
    "places_by_meaning",
    "JudgmentEntry",
    "TaskReflection",
    "Externalisation",
    "Method",
    "ConfigurationTrial",
    "Insight",
    "SelfProfile",
    "DeadEnd",
    "Reopen",
    "PerceptSeen",
    "VersionChanged",
    "DateReached",
    "ModelSaysYes",
    "World",
    "Origin",
    "TrustLevel",
    "entry_from",
    "to_json",
]
