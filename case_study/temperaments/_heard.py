"""Whose words the texts of a request are, in either form of prompt."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from coag.models import ScriptedRequest

_KEPT = 4_096
"""Texts of which it is kept what they say: requests repeat most of what was said before."""
_SECTION = re.compile(r"^## ([^\n]*)\n<data [^>]*>\n(.*?)\n?</data>", re.MULTILINE | re.DOTALL)
_SAID = re.compile(r"^([^\s:][^:\n]*): ((?:.*)(?:\n  .*)*)", re.MULTILINE)
_GO_ON = "Continue."
_OWN = ("user", "you")
_RELEVANT = "Relevant memory content"
_STANDING = "Where you stand"
_SERVED = re.compile(r"^ +\[explicit\] (.*?)(?: \(p=[\d.]+\))?$", re.MULTILINE)
_REPORTED = re.compile(r"^ +\[\w+\] ([^\s:][^:\n]*) says: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The texts of a request, by whose words they are."""

    task: str = ""
    """What the user asked for."""
    rules: tuple[str, ...] = ()
    """The developer's words: system messages and procedures."""
    others: tuple[str, ...] = ()
    """What other agents said, the latest last."""
    history: tuple[tuple[str, str], ...] = ()
    """What actions and sensors told, in order: the action's name, where it is known by itself,
    and the text."""
    recalled: str = ""
    """What memory brought back."""
    rejected: str = ""
    """What the previous cycle rejected, and why."""
    deeds: str = ""
    """A CoAG agent's earlier actions."""
    called: frozenset[str] = frozenset()
    """Actions that were called, as far as the texts show."""
    partial: bool = False
    """Whether some of what was told went unnoticed."""

    def texts(self) -> tuple[str, ...]:
        """All that was told, but for the developer's words."""
        history = (text for _, text in self.history)
        return (self.task, *self.others, *history, self.recalled, self.rejected, self.deeds)

    def only(self, notices: Callable[[str], bool]) -> Heard:
        """With those lines of what was told that are noticed; the developer's words stay."""

        def part(text: str) -> str:
            return "\n".join(line for line in text.splitlines() if notices(line))

        others = (part(text) for text in self.others)
        return replace(
            self,
            task=part(self.task),
            others=tuple(text for text in others if text),
            history=tuple((name, part(text)) for name, text in self.history),
            recalled=part(self.recalled),
            rejected=part(self.rejected),
            deeds=part(self.deeds),
            partial=True,
        )


def heard(request: ScriptedRequest) -> Heard:
    """The texts of a request by whose words they are."""
    sections: dict[str, str] = {}
    rules: list[str] = []
    for message in request.messages:
        if isinstance(message, SystemMessage | UserMessage) and isinstance(message.content, str):
            found, rest = split(message.content)
            sections |= found
            rules.append(rest)
    if "Goal" in sections:
        return _of_sections(sections, tuple(rules))
    return _of_dialogue(request.messages)


@lru_cache(maxsize=_KEPT)
def split(text: str) -> tuple[Mapping[str, str], str]:
    """The sections of a CoAG prompt that hold data, by title, and the rest of the text."""
    if "## " not in text:
        return {}, text
    return dict(_SECTION.findall(text)), _SECTION.sub("", text)


def _of_sections(sections: Mapping[str, str], rules: tuple[str, ...]) -> Heard:
    deeds = sections.get("Your earlier actions", "")
    standing = sections.get(_STANDING, "")
    news = (deeds, standing, sections.get("State of the environment", ""), sections.get(_NEWS, ""))
    rejected = next((text for title, text in sections.items() if title.startswith(_REJECTED)), "")
    task = "\n".join([sections["Goal"], *_SERVED.findall(standing)])
    reported = (text for speaker, text in _REPORTED.findall(standing) if speaker not in _OWN)
    return Heard(
        task=task,
        rules=rules,
        others=(*reported, *_others(sections.get("Dialogue", ""))),
        history=(("", task), *(("", text) for text in news if text)),
        recalled=sections.get("Recalled from long-term memory", ""),
        rejected=rejected,
        deeds=deeds,
        called=_named(deeds) | _named(news[-1]),
    )


_NEWS = "What just happened"
_REJECTED = "Rejected in the previous cycle"
_CALLED = re.compile(r"^(?:cycle \d+: )?(\w+) \{", re.MULTILINE)


@lru_cache(maxsize=_KEPT)
def _named(text: str) -> frozenset[str]:
    return frozenset(_CALLED.findall(text))


@lru_cache(maxsize=_KEPT)
def _others(dialogue: str) -> tuple[str, ...]:
    """What others said, of a dialogue with one entry a speaker."""
    return tuple(
        text
        for speaker, text in _SAID.findall(dialogue)
        if speaker not in _OWN and not speaker.startswith("[")
    )


def _of_dialogue(messages: Sequence[LLMMessage]) -> Heard:
    task = ""
    rules: list[str] = []
    others: list[str] = []
    recalled: list[str] = []
    history: list[tuple[str, str]] = []
    called: set[str] = set()
    for message in messages:
        match message:
            case SystemMessage():
                (recalled if _RELEVANT in message.content else rules).append(message.content)
            case UserMessage() if not isinstance(message.content, str):
                continue
            case UserMessage() if not task:
                task = str(message.content)
                history.append(("", task))
            case UserMessage():
                said = str(message.content).removesuffix(_GO_ON).strip()
                others += [said] if said else []
            case FunctionExecutionResultMessage():
                history += [(result.name, result.content) for result in message.content]
            case AssistantMessage():
                calls = message.content if isinstance(message.content, list) else []
                called |= {call.name for call in calls}
    return Heard(
        task=task,
        rules=tuple(rules),
        others=tuple(others),
        history=tuple(history),
        recalled="\n".join(recalled),
        called=frozenset(called),
    )
