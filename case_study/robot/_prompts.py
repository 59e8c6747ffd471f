"""The prompts of both agents, which are Markdown files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from coag.memory import Procedure, parse_procedure
from vacuum_world.world import Cell

PromptName = Literal["robot", "utility", "change"]


@cache
def prompt(name: PromptName) -> str:
    """The text of a prompt: `robot` (CoAG's system message), `utility` (the baseline's)."""
    folder = files("case_study.robot") / "prompts"
    return (folder / f"{name}.md").read_text(encoding="utf-8").strip()


def change_sentence(cell: Cell) -> str:
    """The change of requirements of `evolution`, as a sentence."""
    return prompt("change").replace("{cell}", f"({cell[0]}, {cell[1]})")


@cache
def procedures() -> Mapping[str, Procedure]:
    """The robot's own procedures, by name; they take the place of CoAG's seeds."""
    folder = files("case_study.robot") / "procedures"
    return {
        name: parse_procedure(name, (folder / f"{name}.md").read_text(encoding="utf-8"))
        for name in ("deliberation", "reasoning", "proposal", "evaluation", "selection")
    }
