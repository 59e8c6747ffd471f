"""Views of the world model."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from coag.awareness import Belief, Entity, WorldModel


def test_open_beliefs_are_those_that_are_not_settled() -> None:
    settled = Belief(text="settled", step=1, resolved=2)
    asked = Belief(text="open", step=1)
    world = WorldModel(assumptions=(settled, asked), unknowns=(asked, settled))
    assert world.open_assumptions == (asked,)
    assert world.open_unknowns == (asked,)


def test_entities_are_found_by_type_and_name() -> None:
    python, cooking = Entity(name="Python", type="concept"), Entity(name="cooking", type="topic")
    world = WorldModel(entities=(python, cooking))
    assert world.of_type("topic") == (cooking,)
    assert world.get("Python") == python
    assert world.get("python") is None


@pytest.mark.parametrize("name", ["", "  ", "\n", "\ud800"])
def test_a_name_says_something_that_can_be_written(name: str) -> None:
    with pytest.raises(ValidationError):
        Entity(name=name, type="topic")
