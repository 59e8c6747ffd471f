"""How a state changes by itself: what SAGEN leaves as future work (§6.6, §7.3, §7.4, §7.6, §8).

`decayed` lets entities and goals fade and keeps the state bounded; an `Archive` keeps what left,
and `recalled` brings it back when it is mentioned again; `learned` counts how goals went, and
`learned_priority` moves the priority of new ones by it; `project` tells what lies ahead;
`SharedWorld` is one world model for several engines. All are pure functions of state, clock and
settings, but for the archive, which waits for a store. `moved_on` is one step of all of them,
`DynamicEngine` an engine that takes it. All is off unless it is switched on.
"""

from .archive import (
    ApartArchive,
    Archive,
    ArchivedEntity,
    ArchivedGoal,
    ArchivedItem,
    FoundBy,
    FoundItem,
    ItemKind,
    RecordArchive,
    archived,
    recalled,
    with_entity,
    with_goal,
)
from .decay import (
    Decayed,
    DecayedGoals,
    DecayedWorld,
    Left,
    base_level,
    decayed,
    decayed_goals,
    decayed_world,
    effective_priorities,
    weighed,
)
from .engine import DynamicEngine, moved_on
from .learning import expected_rate, goal_type, learned, learned_priority, weighed_goals
from .projection import (
    Criteria,
    Trend,
    criteria_of,
    project,
    trends,
    with_projection,
    with_readings,
    with_warnings,
)
from .settings import (
    Ahead,
    DecaySettings,
    DynamicsSettings,
    LearningSettings,
    ProjectionSettings,
    ReturnSettings,
)
from .shared import (
    SharedEngine,
    SharedVersion,
    SharedWorld,
    SharedWorldError,
    joined,
    shared_update,
)

__all__ = [
    "DynamicEngine",
    "DynamicsSettings",
    "moved_on",
    "DecaySettings",
    "Decayed",
    "Left",
    "decayed",
    "DecayedGoals",
    "decayed_goals",
    "DecayedWorld",
    "decayed_world",
    "weighed",
    "base_level",
    "effective_priorities",
    "ApartArchive",
    "Archive",
    "ArchivedItem",
    "ArchivedGoal",
    "ArchivedEntity",
    "FoundItem",
    "FoundBy",
    "ItemKind",
    "RecordArchive",
    "ReturnSettings",
    "archived",
    "recalled",
    "with_goal",
    "with_entity",
    "LearningSettings",
    "learned",
    "learned_priority",
    "weighed_goals",
    "expected_rate",
    "goal_type",
    "SharedWorld",
    "SharedVersion",
    "SharedWorldError",
    "SharedEngine",
    "shared_update",
    "joined",
    "ProjectionSettings",
    "Ahead",
    "project",
    "with_projection",
    "with_warnings",
    "Criteria",
    "criteria_of",
    "Trend",
    "trends",
    "with_readings",
]
