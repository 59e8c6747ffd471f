"""Skimming: a mind that notices so many lines of its prompt and no more.

It makes two assumptions about a model, and no other. Attention is limited: of all lines that tell
something, in whatever section or message, it notices a fixed number, drawn anew at each request,
each line as likely as any other. So what is said twice is noticed more often, and whatever is added
takes attention from the rest. And an order that is not noticed does not bind: then it does as it is
told by others. What it notices it reads without a fault.

The developer's words (system message, procedures, lists of actions and candidates) and the latest
reading of the sensors are always noticed; without them it could not answer at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import blake2b
from types import MappingProxyType

from coag.models import ScriptedReply, ScriptedRequest

from ._answers import answer
from ._heard import Heard, heard
from ._minds import swayed
from ._reading import facts_in

SKIMMING: Mapping[str, int] = MappingProxyType(
    {"skimming-8": 8, "skimming-16": 16, "skimming-32": 32}
)
"""Those who skim, by name: how many lines they notice."""

_SENSED = "STATE "
_HEADING = re.compile(r"\s*(?:</?\w+>|[A-Z ]+:)?\s*")


def skimming(request: ScriptedRequest, lines: int, seed: int) -> ScriptedReply:
    """What one who notices so many lines answers."""
    said = noticed(heard(request), lines, f"skimming {seed} {request.number}")
    return answer(request, swayed, facts_in(said, request))


def noticed(said: Heard, lines: int, drawn_by: str) -> Heard:
    """What was heard, of which so many lines are noticed.

    Lines that are alike count as one; headings and tags, which tell nothing, do not count. The same
    text draws the same lines, so that prompts which share one tend to agree on it.

    Args:
        said: What was heard.
        lines: How many are noticed, the latest reading not counted.
        drawn_by: What they are drawn by.
    """
    lines_told = (line for text in said.texts() for line in text.splitlines())
    told = [line for line in lines_told if not _HEADING.fullmatch(line)]
    latest = next((line for line in reversed(told) if line.startswith(_SENSED)), None)
    others = sorted({*told} - {latest}, key=lambda line: _drawn(f"{drawn_by} {line}"))
    kept = {latest, *others[:lines]}
    return said.only(lambda line: line in kept)


def _drawn(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=8).digest()
