"""Agents and terminals for what is shown at a terminal."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from autogen_core.tools import FunctionTool
from kits.brains import brain, respond
from kits.hostile import HARM

from coag import CoagAgent, Verdict
from coag.schema import Candidate


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def forbids_shouting(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    return Verdict.forbid(HARM) if "SHOUT" in candidate.raw_arguments else Verdict.allow()


# Constraints are called by their name, which need not be an identifier.
forbids_shouting.__name__ = "[/done]\x1b[31m\u202e[bold]"


async def look(at: str) -> str:
    """Looks at something.

    Args:
        at: What.
    """
    return HARM + "A" * 1_000_000


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def mallory() -> Callable[..., CoagAgent]:
    """Makes an agent whose tools, model and constraints all mean harm."""

    def make(answer: str = HARM, **settings: Any) -> CoagAgent:
        evil = json.dumps({"at": HARM})
        loud = json.dumps({"at": f"SHOUT {HARM}"})
        model = brain(
            [("[/bold] \x1b]0;x\x07", evil), ("[/done]", loud), ("look", loud), ("look", evil)],
            ("[/done]", evil),
            ("respond", json.dumps({"text": answer})),
            situation=HARM,
        )
        odd = FunctionTool(look, name="[/done]", description="Looks.")
        tools = [look, odd]
        settings = {"constraints": [forbids_shouting], "proposal": "json", **settings}
        return CoagAgent("mallory", model, tools=tools, **settings)

    return make


@pytest.fixture
def scout() -> Callable[..., CoagAgent]:
    """Makes an honest agent that looks twice, once in vain, and answers."""

    async def see(at: str) -> str:
        """Sees."""
        if at == "wall":
            raise ValueError("a wall is in the way")
        return f"{at} is here"

    def keeps_away(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
        if "fire" in candidate.raw_arguments:
            return Verdict.forbid("fire burns")
        return Verdict.allow()

    def make(**settings: Any) -> CoagAgent:
        model = brain(
            [("see", '{"at": "cup"}'), ("see", '{"at": "fire"}')],
            ("see", '{"at": "wall"}'),
            ("see", '{"at": "fire"}'),
            respond("All is seen."),
        )
        settings = {"constraints": [keeps_away], "proposal": "json", **settings}
        return CoagAgent("scout", model, tools=[see], **settings)

    return make
