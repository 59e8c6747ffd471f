"""Handoffs as actions."""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.base import Handoff

from coag.agent.events import Handoffs
from coag.errors import ConfigurationError
from coag.schema import ActionCall


async def test_each_is_an_internal_action_without_arguments_that_ends_the_turn() -> None:
    handoffs = Handoffs(["bob", Handoff(target="eve", name="to_eve", message="Eve!")])
    specs = handoffs.action_specs()
    assert [spec.name for spec in specs] == ["transfer_to_bob", "to_eve"]
    assert all(spec.internal for spec in specs)
    assert all(spec.parameters["properties"] == {} for spec in specs)
    result = await handoffs.run_action(ActionCall(id="i", action="to_eve", arguments={}))
    assert (result.content, result.ends_turn, result.is_error) == ("Eve!", True, False)


@pytest.mark.parametrize(
    ("given", "tools", "why"),
    [
        (["bob", "bob"], [], "given twice"),
        (["bob", Handoff(target="eve", name="transfer_to_bob")], [], "given twice"),
        (["bob"], ["transfer_to_bob"], "that a tool or an own action has"),
        ([Handoff(target="bob", name="respond")], [], "that a tool or an own action has"),
        ([3], [], "3 is no handoff"),
    ],
)
def test_names_must_be_free_and_handoffs_handoffs(given: Any, tools: Any, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        Handoffs(given, tools)
