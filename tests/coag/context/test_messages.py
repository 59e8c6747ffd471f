from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from autogen_core.models import (
    AssistantMessage,
    SystemMessage,
    UserMessage,
)

from coag.context import CoagContext, PhaseMaterial
from coag.schema import Phase, RetrievalOutcome

NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def test_a_growing_prompt_gives_the_answers_back_as_the_assistants() -> None:
    context = CoagContext[Any](rendering="growing")
    material = PhaseMaterial(instructions={}, forms={})
    context.commit(RetrievalOutcome(cycle=1, at=NOW, query="q"))
    context.build_prompt(Phase.REASONING, material)
    context.build_prompt(Phase.PROPOSAL, material)
    kinds = [type(message) for message in await context.get_messages()]
    assert kinds == [SystemMessage, UserMessage, AssistantMessage, UserMessage]
