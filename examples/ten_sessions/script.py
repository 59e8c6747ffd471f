"""The scripted model: it answers every question of the example, each character in a voice."""

from __future__ import annotations

import re
from typing import Any

from coag.models import ScriptedReply, ScriptedRequest

_VOICES = {
    "Lyra": "I felt sick with fear that day. {event} I wept, and I dream of it still.",
    "Holt": "{event} I counted the damage, and made a list of repairs before noon.",
    "Mira": "{event} I told everybody at the market, and I wondered what there was in it for me.",
}
_NUMBERED = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)
_QUOTED = re.compile(r"<data>\n(.*)\n</data>", re.DOTALL)
_TEXTS = re.compile(r"Text A: (.+?)\n\nText B: (.+)", re.DOTALL)


def script(request: ScriptedRequest) -> ScriptedReply:
    """What the scripted model answers to each form of question."""
    lines = _NUMBERED.findall(request.last_user_text)
    quoted = _QUOTED.search(request.last_user_text)
    texts = quoted[1].splitlines() if quoted else []
    beginning = request.system_text.partition("\n\n")[2][:60]
    name = next((one for one in _VOICES if one in beginning), "")
    answers: dict[str, Any] = {
        "PerspectivesAnswer": {
            "memories": [
                {"number": int(number), "text": _VOICES.get(name, "{event}").format(event=text)}
                for number, text in lines
            ]
        },
        "SessionSummaryAnswer": {"summary": " ".join(texts)},
        "RecapAnswer": {"recap": texts[0] if texts else "I was there."},
        "ThreadsAnswer": {"threads": []},
        "ScenarioAnswer": {"situation": "Millhaven waits.", "hooks": ["A stranger asks for Vex."]},
        "EmotionalNarrator": {"text": _more_emotional(request.last_user_text)},
    }
    return answers[request.schema_name or ""]


def _more_emotional(question: str) -> str:
    found = _TEXTS.search(question)
    felt = [len(re.findall("felt|wept|fear", one)) for one in found.groups()] if found else [0, 0]
    return "A" if felt[0] >= felt[1] else "B"
