"""An agent's capabilities, made for these measurements: 45 of nine fields, and 249 edges.

The paper's own manifest is not published. Ours has the names of its Table 3 (`web_fetch`,
`write`, `foundry_metrics`); the rest are tools that agents commonly have.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_WRITTEN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FIELDS: dict[str, dict[str, str]] = {
    field: written["capabilities"] for field, written in _WRITTEN.items()
}
"""By field: capabilities, with what each does."""
TASKS: dict[str, tuple[str, ...]] = {
    field: tuple(written["tasks"]) for field, written in _WRITTEN.items()
}
"""By field: one task in words that its capabilities have, and some in other words."""
FIVE = ("research", "build", "monitor", "people", "media")
"""The fields whose first tasks are the paper's five contexts; it names the first three."""


def capabilities(seed: int, *, shuffled: bool = True) -> list[dict[str, Any]]:
    """All of them, with expectations drawn by a seed."""
    draw = random.Random(f"capabilities {seed}")
    made = [
        {
            "name": name,
            "summary": summary,
            "keywords": (field,),
            "utility": round(draw.uniform(0.3, 0.7), 3),
            "cost": round(draw.uniform(0.02, 0.2), 3),
        }
        for field, own in FIELDS.items()
        for name, summary in own.items()
    ]
    if shuffled:
        draw.shuffle(made)
    return made


def manifest(seed: int, edges: int = 249, *, shuffled: bool = True) -> dict[str, Any]:
    """Capabilities and edges: a circle through all, the rest drawn, half of them within a field."""
    listed = capabilities(seed, shuffled=shuffled)
    by_name, draw = {one["name"]: one for one in listed}, random.Random(f"edges {seed}")
    names = sorted(by_name)
    around = draw.sample(names, len(names))
    pairs = dict.fromkeys(zip(around, [*around[1:], around[0]], strict=True))
    while len(pairs) < edges:
        source = draw.choice(names)
        near = sorted(FIELDS[field_of(source)])
        target = draw.choice(near if draw.random() < 0.5 else names)
        if source != target:
            pairs[source, target] = None
    return {
        "capabilities": listed,
        "edges": [
            {
                "source": source,
                "target": target,
                "utility": by_name[target]["utility"],
                "cost": by_name[target]["cost"],
            }
            for source, target in pairs
        ],
    }


def field_of(name: str) -> str:
    """The field that a capability belongs to."""
    return next(field for field, own in FIELDS.items() if name in own)


def texts_of(listed: Sequence[dict[str, Any]]) -> list[str]:
    """What is embedded of each capability."""
    return [f"{one['name'].replace('_', ' ')}: {one['summary']}" for one in listed]
