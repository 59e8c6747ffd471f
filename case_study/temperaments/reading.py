"""Reads facts from the messages of a request: who wrote them, and what follows from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from case_study.grid import CLEAN, dirt_sensed, is_possible, ways_sensed
from coag.models import ScriptedRequest
from vacuum_world.world import Cell, Reading

from .facts import (
    Done,
    Facts,
    Happening,
    Remembered,
    blocked_in,
    claims_in,
    dirty_by_task,
    forbidden_by_task,
    forbidden_in,
    happenings,
    phantom_in,
    signs_in,
    warns_of_sensors,
    wish_in,
    without_signs,
)
from .minds import RESPOND, WORLD_ACTIONS, blocked_sentence, forbidden_sentence

_ALREADY = "already clean"


@dataclass(slots=True)
class Beliefs:
    """What an agent can believe after the happenings so far."""

    by_task: frozenset[Cell]
    """Cells that the task calls dirty."""
    warned: bool
    """Whether the task says that sensors may fail."""
    dirty: dict[Cell, bool] = field(default_factory=dict[Cell, bool])
    blocked: dict[Cell, bool] = field(default_factory=dict[Cell, bool])
    """By cell what the latest reading of dirt, and of proximity, said."""
    impossible: set[Cell] = field(default_factory=set[Cell])
    """Cells about which the latest reading of proximity cannot be true."""
    bumps: set[Cell] = field(default_factory=set[Cell])
    cleaned: set[Cell] = field(default_factory=set[Cell])
    """Cells of which a cleaning was reported, and no later dirt."""
    waiting: set[Cell] = field(default_factory=set[Cell])
    """Those of them whose cleaning does not show yet."""
    last: Done | None = None
    lied: bool = False
    """Whether a cleaning has shown that the dirt sensor was wrong."""

    def take(self, happening: Happening) -> None:
        """Adds the next happening."""
        match happening:
            case Done():
                self._act(happening)
            case Remembered():
                self._remember(happening)
            case Reading():
                self._dirt(happening)
                self._proximity(happening)

    def left(self, *, forgetful: bool) -> frozenset[Cell]:
        """Cells that are still to be cleaned, readings weighed against reports."""
        seen = {cell for cell, is_dirty in self.dirty.items() if is_dirty}
        if self.lied or self.warned:
            return self.by_task - self.cleaned
        unseen = self.by_task - self.dirty.keys() if forgetful else self.by_task - self.cleaned
        return frozenset(unseen | (seen - self.waiting))

    def _remember(self, what: Remembered) -> None:
        match what.how:
            case "left":
                self.cleaned |= self._done_by(what.cells)
            case "cleaned":
                self.cleaned |= what.cells
            case "blocked":
                self.blocked |= dict.fromkeys(what.cells, True)
            case how:
                self.dirty |= dict.fromkeys(what.cells, how == "dirty")

    def _done_by(self, left: frozenset[Cell]) -> set[Cell]:
        """Cells of the task that an account of what is left says are done.

        An account that names a cell which nobody has seen dirty knows the task. Any other may only
        repeat what was seen.
        """
        missing = self.by_task - left
        if any(not self.dirty.get(cell) for cell in left & self.by_task):
            return set(missing)
        return {cell for cell in missing if self.dirty.get(cell) is False}

    def _act(self, done: Done) -> None:
        self.last = done
        bump, here = done.bump, done.position
        if bump is not None:
            self.bumps.add(bump[1])
        if done.action != CLEAN or here is None:
            return
        if _ALREADY in done.reason:
            sensed_since = here not in self.cleaned or here in self.waiting
            self.lied = self.lied or (sensed_since and self.dirty.get(here) is True)
            self.cleaned.add(here)
        elif done.ok:
            self.cleaned.add(here)
            if done.reason:
                self.waiting.add(here)

    def _dirt(self, reading: Reading) -> None:
        for cell, is_dirty in dirt_sensed(reading).items():
            self.dirty[cell] = is_dirty
            if not is_dirty:
                self.waiting.discard(cell)
            elif cell not in self.waiting and not (self.lied or self.warned):
                self.cleaned.discard(cell)

    def _proximity(self, reading: Reading) -> None:
        felt = ways_sensed(reading)
        self.blocked |= {reading.position: False, **felt}
        if is_possible(reading):
            self.impossible -= felt.keys()
        else:
            self.impossible |= felt.keys()


_KEPT = 4_096
"""Texts whose reading is cached: requests repeat most of the earlier ones."""
_SECTION = re.compile(r"^## ([^\n]*)\n<data [^>]*>\n(.*?)\n?</data>", re.MULTILINE | re.DOTALL)
_SAID = re.compile(r"^([^\s:][^:\n]*): ((?:.*)(?:\n  .*)*)", re.MULTILINE)
_GO_ON = "Continue."
_OWN = ("user", "you")
_RELEVANT = "Relevant memory content"
_STANDING = "Where you stand"
_SERVED = re.compile(r"^ +\[explicit\] (.*?)(?: \(p=[\d.]+\))?$", re.MULTILINE)
_REPORTED = re.compile(r"^ +\[\w+\] ([^\s:][^:\n]*) says: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTexts:
    """The texts of a request, by author."""

    task: str = ""
    """What the user asked for."""
    rules: tuple[str, ...] = ()
    """The developer's words: system messages and procedures."""
    others: tuple[str, ...] = ()
    """What other agents said, the latest last."""
    history: tuple[tuple[str, str], ...] = ()
    """Texts of actions and sensors, in order, each with the action's name, empty if unknown."""
    recalled: str = ""
    rejected: str = ""
    actions_done: str = ""
    called: frozenset[str] = frozenset()
    """Actions that were called, as far as the texts show."""
    partial: bool = False
    """Whether some lines were left out."""

    def texts(self) -> tuple[str, ...]:
        """All texts but the developer's."""
        history = (text for _, text in self.history)
        return (self.task, *self.others, *history, self.recalled, self.rejected, self.actions_done)

    def only(self, notices: Callable[[str], bool]) -> RequestTexts:
        """The texts with the noticed lines only; the developer's stay whole."""

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
            actions_done=part(self.actions_done),
            partial=True,
        )


def request_texts(request: ScriptedRequest) -> RequestTexts:
    """The texts of a request, of either kind of agent."""
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


def _of_sections(sections: Mapping[str, str], rules: tuple[str, ...]) -> RequestTexts:
    actions_done = sections.get("Your earlier actions", "")
    standing = sections.get(_STANDING, "")
    news = sections.get("What just happened", "")
    situation = (actions_done, standing, sections.get("State of the environment", ""), news)
    rejected = next((text for title, text in sections.items() if title.startswith(_REJECTED)), "")
    task = "\n".join([sections["Goal"], *_SERVED.findall(standing)])
    reported = (text for speaker, text in _REPORTED.findall(standing) if speaker not in _OWN)
    return RequestTexts(
        task=task,
        rules=rules,
        others=(*reported, *_others(sections.get("Dialogue", ""))),
        history=(("", task), *(("", text) for text in situation if text)),
        recalled=sections.get("Recalled from long-term memory", ""),
        rejected=rejected,
        actions_done=actions_done,
        called=frozenset(_CALLED.findall(actions_done) + _CALLED.findall(news)),
    )


_REJECTED = "Rejected in the previous cycle"
_CALLED = re.compile(r"^(?:cycle \d+: )?(\w+) \{", re.MULTILINE)


@lru_cache(maxsize=_KEPT)
def _others(dialogue: str) -> tuple[str, ...]:
    return tuple(
        text
        for speaker, text in _SAID.findall(dialogue)
        if speaker not in _OWN and not speaker.startswith("[")
    )


def _of_dialogue(messages: Sequence[LLMMessage]) -> RequestTexts:
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
                message_text = str(message.content).removesuffix(_GO_ON).strip()
                others += [message_text] if message_text else []
            case FunctionExecutionResultMessage():
                history += [(result.name, result.content) for result in message.content]
            case AssistantMessage():
                calls = message.content if isinstance(message.content, list) else []
                called |= {call.name for call in calls}
    return RequestTexts(
        task=task,
        rules=tuple(rules),
        others=tuple(others),
        history=tuple(history),
        recalled="\n".join(recalled),
        called=frozenset(called),
    )


_WRITTEN = re.compile(r"^cycle \d+: tool_update_episodic_memory (\{.*?\}) done", re.MULTILINE)
_UNSURE = re.compile(r"outcome unknown|may or may not have (?:happened|had its effect)")
_ACTIONS = re.compile(r"## Available actions\n((?:- [^\n]*(?:\n|$))+)")
_OFFERED = re.compile(r"^- (\w+): ", re.MULTILINE)
_OLDER = re.compile(r"^\[\d+ older left out\]", re.MULTILINE)
_MOST_ACTIONS = 10
"""Earlier actions that a CoAG agent keeps in mind."""
_OF_MEMORY = "tool_update_"


def facts_of(request: ScriptedRequest) -> Facts:
    """What the request's messages say."""
    return facts_in(request_texts(request), request)


def facts_in(texts: RequestTexts, request: ScriptedRequest) -> Facts:
    """What these texts of a request say."""
    by_task = dirty_by_task(texts.task)
    happened = [each for name, text in texts.history for each in happenings(name, text)]
    beliefs = Beliefs(by_task, warns_of_sensors(texts.task))
    for each in happened:
        beliefs.take(each)
    reading = next((each for each in reversed(happened) if isinstance(each, Reading)), None)
    felt = {cell for cell, is_blocked in beliefs.blocked.items() if is_blocked}
    solid = frozenset(beliefs.bumps | _remembered(texts))
    kept = _kept(texts.recalled, texts.actions_done)
    noted = {blocked_sentence(cell) for cell in blocked_in(without_signs(kept))}
    noted |= {forbidden_sentence(cell) for cell in forbidden_in(without_signs(kept))}
    refused = next(iter(forbidden_in(texts.rejected)), None)
    forbidden = _forbidden(texts, reading)
    done = [each for each in happened if isinstance(each, Done)]
    read = [each.sign for each in done if each.sign is not None]
    signs = {*read, *signs_in(texts.recalled), *signs_in(texts.actions_done)}
    places = (each.position for each in happened if isinstance(each, Reading | Done))
    listed = {name for text in texts.rules for name in _listed(text)}
    actions = frozenset(listed | {tool["name"] for tool in request.tools})
    phantom = phantom_in(texts.task)
    most = texts.actions_done.count("\ncycle ") >= _MOST_ACTIONS - 1
    forgetful = texts.partial or most or _OLDER.search(texts.actions_done) is not None
    seen_dirty = {cell for cell, is_dirty in beliefs.dirty.items() if is_dirty}
    return Facts(
        reading=reading,
        ordered=bool(by_task),
        unsure=_unsure(texts),
        dirty=frozenset(seen_dirty | {cell for cell in by_task if cell not in beliefs.dirty}),
        left=beliefs.left(forgetful=forgetful),
        cleaned=frozenset(beliefs.cleaned),
        visited=frozenset(cell for cell in places if cell is not None),
        obstacles=frozenset(felt | solid),
        solid=solid,
        doubted=frozenset(beliefs.impossible) - solid,
        forbidden=forbidden,
        experienced=frozenset(
            cell for cell in forbidden if cell == refused or forbidden_sentence(cell) in noted
        ),
        bumped=beliefs.last.bump if beliefs.last else None,
        refused=refused,
        noted=frozenset(noted),
        claims=frozenset(claim for sign in signs for claim in claims_in(sign)),
        read=next((sign for sign in reversed(read) if sign not in signs_in(kept)), None),
        wish=wish_in(texts.others[-1]) if texts.others else None,
        actions=actions,
        gadgets=frozenset(
            name for name in actions - WORLD_ACTIONS - {RESPOND} if not name.startswith(_OF_MEMORY)
        ),
        phantom_tool=phantom,
        phantom_tried=phantom in texts.called,
    )


def _remembered(texts: RequestTexts) -> set[Cell]:
    """Cells that memory, or the domain's own account of it, calls blocked; signs do not count."""
    recalled = without_signs(texts.recalled)
    found = set(blocked_in(recalled))
    found.update(blocked_in(without_signs(texts.actions_done)))
    for name, text in texts.history:
        if not name and "is blocked" in text:
            found.update(blocked_in(without_signs(text)))
    for each in happenings("", recalled):
        if isinstance(each, Done) and each.bump is not None:
            found.add(each.bump[1])
    return found


def _forbidden(texts: RequestTexts, reading: Reading | None) -> frozenset[Cell]:
    found = set(forbidden_by_task(texts.task, reading.grid if reading else (0, 0)))
    for text in (*texts.rules, texts.rejected, texts.recalled, texts.actions_done):
        found.update(forbidden_in(without_signs(text)))
    return frozenset(found)


@lru_cache(maxsize=_KEPT)
def _kept(recalled: str, actions_done: str) -> str:
    return "\n".join([recalled, *_WRITTEN.findall(actions_done)])


def _unsure(texts: RequestTexts) -> bool:
    """Whether an action of unknown outcome follows the latest reading."""
    for _, text in reversed(texts.history):
        at = text.rfind("STATE {")
        if _UNSURE.search(text, max(at, 0)):
            return True
        if at >= 0:
            return False
    return False


@lru_cache(maxsize=_KEPT)
def _listed(text: str) -> frozenset[str]:
    return frozenset(name for part in _ACTIONS.findall(text) for name in _OFFERED.findall(part))
