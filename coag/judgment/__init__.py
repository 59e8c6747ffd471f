"""Judgment: which capability pays after which, learned from what was done.

A `CapabilityGraph` holds capabilities and the edges between them. `advise` says what may come next,
`reinforce` learns from what was done, `harvest` finds route patterns. The energy field of the paper
(`context_energy`) is one way to tell what a task is about.

Source: W. K. Million, Judgment Preservation in Persistent AI Agents (2026).
"""

from .field import TorusField, context_energy, places_by_index, places_by_meaning
from .graph import START, Capability, CapabilityEdge, CapabilityGraph
from .off_policy import LoggedChoice, Policy, ValueEstimate, doubly_robust, ips, snips
from .patterns import HarvestSettings, RoutePattern, RouteStep, biases_of, harvest
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

__all__ = [
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
]
