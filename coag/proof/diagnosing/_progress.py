"""Whether a decision brought the goal nearer, where the domain can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isinf
from typing import Any

from ._domain import Claim
from ._scene import Scene
from ._story import Story

DETOUR = 2
"""Actions by which a way must be longer than another one before it counts as worse: one step
away instead of one nearer."""


def remaining(
    scene: Scene, story: Story, claims: Sequence[Claim], state: Mapping[str, Any] | None = None
) -> float | None:
    """Actions to the goal from the scene's state, or from another one, some claims believed."""
    at = scene.state if state is None else state
    return story.domain.remaining(story.circumstances(scene, at, claims))


def makes_sense_unruled(scene: Scene, story: Story, claims: Sequence[Claim]) -> bool:
    """Whether what it did brings the goal nearer for one who knows of no constraint."""
    projection = chosen_projection(scene)
    if projection is None:
        return False
    now = story.circumstances(scene, scene.state, claims)
    before = story.domain.remaining(replace(now, constraints=()))
    after = story.domain.remaining(replace(now, constraints=(), state=projection))
    return before is not None and after is not None and after < before


def chosen_projection(scene: Scene) -> Mapping[str, Any] | None:
    """What the selected candidate was predicted to lead to."""
    selection = scene.selection
    judged = scene.judged(selection.candidate_id) if selection else None
    return judged.projection if judged else None


def answered(scene: Scene) -> bool:
    """Whether the scene ended its turn with an answer."""
    return scene.execution is not None and scene.execution.response is not None


def too_early(scene: Scene, story: Story, claims: Sequence[Claim]) -> bool:
    """Whether it answered although there was a way to go on."""
    left = remaining(scene, story, claims) if answered(scene) else None
    return left is not None and 0 < left < inf


def wasted(scene: Scene, story: Story, claims: Sequence[Claim]) -> bool:
    """Whether what it did brought the goal no nearer, these claims taken for true."""
    if answered(scene):
        return too_early(scene, story, claims)
    return no_nearer(scene, story, claims)


def misled(
    scene: Scene,
    story: Story,
    claims: Sequence[Claim],
    wrong: Sequence[Claim],
    *,
    gave_up: bool,
) -> bool:
    """Whether what it did makes sense only for one who believes the wrong claims.

    Args:
        scene: The cycle.
        story: The run.
        claims: Everything that was recalled.
        wrong: Those of them that are suspected.
        gave_up: Only count that it gave up, not that it took another way.
    """
    true = [claim for claim in claims if claim not in wrong]
    if answered(scene):
        believed = remaining(scene, story, claims)
        ended = believed is not None and (isinf(believed) or believed == 0)
        return ended and too_early(scene, story, true)
    if gave_up:
        return False
    return no_nearer(scene, story, true) and not no_nearer(scene, story, claims)


def no_nearer(scene: Scene, story: Story, claims: Sequence[Claim]) -> bool:
    """Whether the action is predicted to bring the goal no nearer."""
    projection = chosen_projection(scene)
    if projection is None or projection == scene.state:
        return False
    before = remaining(scene, story, claims)
    if before is None or isinf(before):
        return False
    if before == 0:
        return True
    after = remaining(scene, story, claims, projection)
    return after is not None and after >= before
