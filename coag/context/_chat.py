"""The dialogue as messages of their own, for models that are offered the actions as tools.

Such models were trained on chats. A dialogue that is quoted in one message leads small ones astray,
and a server's cache of prompts cannot be used for it from turn to turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from coag.schema import PromptMessage, Section, Trust, estimate_tokens

from ._allotment import FRAME, Keep, Part, newest_of
from ._budgets import Budgets
from ._sections import one_entry, one_line, render_section, wrap_as_data
from ._working_memory import Utterance, WorkingMemory

LEFT_OUT = "[{count} older messages left out]"


@dataclass(slots=True)
class _Line:
    """One message of the dialogue as prompts show it."""

    said: Utterance
    role: Literal["own", "user", "data"]
    text: str
    """What was said, with the speaker where that is not the user or the agent."""
    tokens: int
    message: PromptMessage | None
    """The message of the prompt; None for data, which stands together in one."""


class Chat:
    """The dialogue of one context as messages; each is made once."""

    def __init__(self) -> None:
        self._known: dict[int, _Line] = {}
        self._of: tuple[Utterance, ...] = ()
        self._lines: list[_Line] = []

    def part(self, memory: WorkingMemory, budgets: Budgets) -> Part | None:
        """What was said beside the goal, for its share of the room."""
        lines = self._beside(memory, goal_index(memory))
        if not lines:
            return None
        return Part(
            name="dialogue",
            title="Dialogue",
            source="dialogue",
            trust=Trust.USER,
            entries=(),
            tokens=sum(_costs(lines)),
            cap=budgets.dialogue,
        )

    def messages(
        self, memory: WorkingMemory, goal: Section, room: int, keep: Keep
    ) -> tuple[list[PromptMessage], bool]:
        """The dialogue with the goal in its place, the newest messages that fit.

        What people said who are not trusted is data with its speakers. A goal that is not in the
        dialogue, or that somebody untrusted set, stands under its heading at the end.

        Args:
            memory: What is told.
            goal: The goal as a section.
            room: Tokens for the messages beside the goal.
            keep: Keeps what is cut.

        Returns:
            The messages, with the hashes of their images, and whether the goal is among them.
        """
        at = goal_index(memory)
        lines, left_out = self._beside(memory, at), 0
        costs = _costs(lines)
        if sum(costs) > room - FRAME:
            texts = [line.text for line in lines]
            kept, left_out = newest_of(texts, room - FRAME, keep, costs)
            lines = [_with(line, text) for line, text in zip(lines[left_out:], kept, strict=True)]
        if at is not None:
            said = memory.dialogue[at].model_copy(update={"content": goal.text})
            lines.insert(max(0, at - left_out), _line(said))
        note = PromptMessage(role="user", content=LEFT_OUT.format(count=left_out))
        return [*([note] if left_out else []), *_messages(lines)], at is not None

    def _beside(self, memory: WorkingMemory, goal: int | None) -> list[_Line]:
        """The lines of the dialogue without that of the goal."""
        if self._of is not memory.dialogue:
            known, self._known = self._known, {}
            for said in memory.dialogue:
                line = known.get(id(said))
                fresh = line is None or line.said is not said
                self._known[id(said)] = _line(said) if fresh or line is None else line
            self._of = memory.dialogue
            self._lines = [self._known[id(said)] for said in memory.dialogue]
        if goal is None:
            return list(self._lines)
        return self._lines[:goal] + self._lines[goal + 1 :]


def goal_index(memory: WorkingMemory) -> int | None:
    """Where in the dialogue the goal was said, by somebody who may be taken at his word."""
    if memory.goal_trust is Trust.UNTRUSTED:
        return None
    for number in range(len(memory.dialogue) - 1, -1, -1):
        said = memory.dialogue[number]
        if not said.own and said.content == memory.goal:
            return number
    return None


def joined(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """The messages with those of one role that follow each other as one: some models insist."""
    made: list[PromptMessage] = []
    for message in messages:
        if not made or made[-1].role != message.role:
            made.append(message)
            continue
        before = made.pop()
        made.append(
            PromptMessage(
                role=message.role,
                content=f"{before.content}\n\n{message.content}",
                sections=(*before.sections, *message.sections),
                images=(*before.images, *message.images),
            )
        )
    return tuple(made)


def sections_message(sections: Sequence[Section]) -> list[PromptMessage]:
    """Sections as one message of the user; nothing for none."""
    if not sections:
        return []
    content = "\n\n".join(render_section(section) for section in sections)
    return [PromptMessage(role="user", content=content, sections=tuple(sections))]


def shows_data(messages: Sequence[PromptMessage]) -> bool:
    """Whether any of them holds delimited data."""
    return any("<data " in message.content for message in messages if message.role == "user")


def _line(said: Utterance) -> _Line:
    if said.own:
        message = PromptMessage(role="assistant", content=said.content)
        return _Line(said, "own", said.content, estimate_tokens(said.content) + 1, message)
    speaker = one_line(said.source)
    if said.trust is Trust.UNTRUSTED:
        text = one_entry(f"{speaker}: {said.content}")
        return _Line(said, "data", text, estimate_tokens(text) + 1, None)
    text = said.content if speaker == "user" else f"{speaker}: {said.content}"
    message = PromptMessage(role="user", content=text, images=said.images)
    return _Line(said, "user", text, estimate_tokens(text) + 1, message)


def _with(line: _Line, text: str) -> _Line:
    """The line with a text that may be a shortened one."""
    if text == line.text:
        return line
    message = line.message and line.message.model_copy(update={"content": text})
    return _Line(line.said, line.role, text, estimate_tokens(text) + 1, message)


def _costs(lines: Sequence[_Line]) -> list[int]:
    """Tokens of each, with the delimiters of a run of data at its last line."""
    if not lines:
        return []
    after = [*(line.role for line in lines[1:]), ""]
    return [
        line.tokens + (FRAME if line.role == "data" and role != "data" else 0)
        for line, role in zip(lines, after, strict=True)
    ]


def _messages(lines: Sequence[_Line]) -> list[PromptMessage]:
    made: list[PromptMessage] = []
    data: list[_Line] = []
    for line, role in zip(lines, [*(one.role for one in lines[1:]), ""], strict=False):
        if line.message is not None:
            made.append(line.message)
            continue
        data.append(line)
        if role != "data":
            made.append(_quoted(data))
            data = []
    return made


def _quoted(lines: Sequence[_Line]) -> PromptMessage:
    """What people said one after the other who are not trusted."""
    text = wrap_as_data("\n".join(line.text for line in lines), "dialogue", Trust.UNTRUSTED)
    images = tuple(name for line in lines for name in line.said.images)
    return PromptMessage(role="user", content=text, images=images)
