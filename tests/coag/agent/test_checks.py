"""Arguments of which no agent can be made are refused when they are given, and named."""

from __future__ import annotations

from typing import Any

import pytest
from kits.brains import brain, respond
from pydantic import BaseModel

from coag import CoagAgent, Verdict
from coag.errors import ConfigurationError
from coag.tracing import Recipe

WRONG: dict[str, tuple[Any, ...]] = {
    "model_client": (None, "gpt-4"),
    "models": ({"reasoning": None}, "gpt-4"),
    "description": (5, None),
    "system_message": (5,),
    "metadata": ({"a": 1}, "x"),
    "tools": ("add", 5),
    "workbench": (5, "bench"),
    "handoffs": ("bob", 5),
    "modules": (None, "abc", [object()], [BaseModel], (one for one in ())),
    "constraints": (None, "abc", 5, [5], [len], [Verdict]),
    "procedures": ({"reasoning": "Think."},),
    "model_client_stream": ("yes", None),
    "reflect_on_tool_use": ("no", 1),
    "max_tool_iterations": (1.5, "3", True, 0),
    "tool_call_summary_format": (5, None),
    "tool_call_summary_formatter": ("x",),
    "output_content_type": (dict, BaseModel, "Answer"),
    "output_content_type_format": (5,),
    "memory": (5, ""),
    "logs": ("", " ", 5),
    "recipe": ("m:f", {"factory": "m:f"}),
    "seed": ("x", 1.5, True, None),
    "tool_timeout": (0, -1, float("nan"), "60", None),
    "prices": ({"scripted": 1},),
    "approval": (5,),
    "approve": (5, "yes"),
    "module_seconds": (0,),
    "minimum_score": (2,),
    "depth": ("deep",),
}


def make(**arguments: Any) -> CoagAgent:
    given: dict[str, Any] = {"name": "clerk", "model_client": brain(respond()), **arguments}
    return CoagAgent(**given)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in WRONG.items() for v in values])
def test_an_argument_that_cannot_be_is_refused_by_its_name(name: str, value: Any) -> None:
    said = "constraint" if name == "constraints" else name
    with pytest.raises(ConfigurationError, match=said):
        make(**{name: value})


def test_grounded_proposals_need_a_domain_that_makes_them() -> None:
    with pytest.raises(ConfigurationError, match="CoagContext has no _propose_grounded"):
        make(proposal="grounded")


@pytest.mark.parametrize("arguments", [{"api_key": "abcdefgh"}, {"db": "x hushhushhush"}])
def test_a_recipe_with_a_secret_is_refused_as_no_run_would_keep_it(
    arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hushhushhush")
    with pytest.raises(ConfigurationError, match="recipe: the argument") as caught:
        make(recipe=Recipe(factory="m:f", arguments=arguments))
    assert "hush" not in str(caught.value)
