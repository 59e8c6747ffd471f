"""An agent that is built without parts of deliberation."""

from __future__ import annotations

from typing import Any

import pytest
from kits.brains import brain, respond
from kits.importable import echo

from coag.agent import CoagAgent
from coag.errors import ConfigurationError
from coag.memory import PROCEDURAL_ACTION
from coag.models import ScriptedModel
from coag.schema import EvaluationOutcome

RULE = '{"procedure": "proposal", "operation": "add", "rule": "Be kind.", "reason": "So."}'


def _agent(model: ScriptedModel, **further: Any) -> CoagAgent:
    return CoagAgent("clerk", model, memory=":memory:", proposal="json", **further)


async def test_the_action_that_changes_rules_is_neither_offered_nor_run() -> None:
    model = brain((PROCEDURAL_ACTION, RULE), respond())
    agent = _agent(model, ablations=["rewriting"])
    await agent.run(task="Learn.")
    assert all(PROCEDURAL_ACTION not in request.text.split("## ")[1] for request in model.requests)
    judged = [e for r in agent.trace if isinstance(r, EvaluationOutcome) for e in r.evaluations]
    assert judged[0].rejected_by is not None
    assert judged[0].rejected_by.constraint == "action_exists"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"ablations": ["reasoning"], "depth": "compact"}, "ablations=.*use depth='full'"),
        ({"ablations": ["memory"]}, "ablations.*'memory'.*'retrieval'"),
        ({"ablations": "retrieval"}, "ablations='retrieval'.*frozenset"),
    ],
)
def test_an_ablation_that_is_impossible_is_an_error_of_configuration(
    options: dict[str, Any], error: str
) -> None:
    with pytest.raises(ConfigurationError, match=error):
        _agent(brain(respond()), **options)


def test_its_component_leaves_out_the_same() -> None:
    agent = _agent(ScriptedModel(echo), ablations=["rewriting", "evaluation"])
    config = agent.dump_component()
    assert config.config["deliberation"]["ablations"] == ["evaluation", "rewriting"]
    assert CoagAgent.load_component(config).dump_component() == config


def test_the_earlier_name_without_is_still_taken() -> None:
    with pytest.warns(DeprecationWarning, match="without= is now ablations="):
        agent = _agent(ScriptedModel(echo), without=["rewriting"])
    assert agent.mind.deps.settings.ablations == {"rewriting"}
    config = agent.dump_component()
    config.config["deliberation"] = {"without": ["reasoning"]}
    loaded = CoagAgent.load_component(config)
    assert loaded.mind.deps.settings.ablations == {"reasoning"}
