"""The dialogue as messages of their own, for models that are offered the actions as tools.

Such models were trained on chats. A dialogue that is quoted in one message leads small ones astray,
and a server's cache of prompts cannot be used for it from turn to turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

from coag.schema import PromptMessage, Section, Trust

from ._allotment import FRAME, Keep, Part, newest_of
from ._budgets import Budgets
from ._sections import one_entry, one_line, render_section, wrap_as_data
from ._working_memory import Utterance, WorkingMemory

LEFT_OUT = "[{count} older messages left out]"


def chat_dialogue(memory: WorkingMemory, budgets: Budgets) -> Part | None:
    """What was said beside the goal, for its share of the room."""
    said = _beside_goal(memory)
    if not said:
        return None
    return Part(
        name="dialogue",
        title="Dialogue",
        source="dialogue",
        trust=Trust.USER,
        entries=tuple(map(_entry, said)),
        cap=budgets.dialogue,
        frames=sum(_frames(said)),
    )


def goal_index(memory: WorkingMemory) -> int | None:
    """Where in the dialogue the goal was said, by somebody who may be taken at his word."""
    if memory.goal_trust is Trust.UNTRUSTED:
        return None
    return next(
        (
            number
            for number in range(len(memory.dialogue) - 1, -1, -1)
            if memory.dialogue[number].content == memory.goal and not memory.dialogue[number].own
        ),
        None,
    )


def chat_messages(
    memory: WorkingMemory, goal: Section, room: int, keep: Keep
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
    at, others = goal_index(memory), _beside_goal(memory)
    entries = [_entry(one) for one in others]
    kept, left_out = newest_of(entries, room - FRAME, keep, _frames(others))
    shown = list(zip(others[left_out:], kept, strict=True))
    if at is not None:
        place = max(0, at - left_out)
        said = memory.dialogue[at]
        shown.insert(place, (said, _entry(said.model_copy(update={"content": goal.text}))))
    messages = [_message(list(run)) for _, run in groupby(shown, key=lambda one: _role(one[0]))]
    if left_out:
        note = LEFT_OUT.format(count=left_out)
        messages.insert(0, PromptMessage(role="user", content=note))
    return messages, at is not None


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


def _beside_goal(memory: WorkingMemory) -> list[Utterance]:
    goal = goal_index(memory)
    return [one for number, one in enumerate(memory.dialogue) if number != goal]


def _role(said: Utterance) -> str:
    if said.own:
        return "own"
    return "data" if said.trust is Trust.UNTRUSTED else "user"


def _entry(said: Utterance) -> str:
    """What was said, with the speaker where that is not the user or the agent."""
    speaker = one_line(said.source)
    if said.own or (speaker == "user" and said.trust is not Trust.UNTRUSTED):
        return said.content
    text = f"{speaker}: {said.content}"
    return one_entry(text) if said.trust is Trust.UNTRUSTED else text


def _frames(said: Sequence[Utterance]) -> list[int]:
    """Tokens of delimiters: those of a run of messages of untrusted people stand to its last."""
    roles = [*map(_role, said), ""]
    return [FRAME if role == "data" and after != "data" else 0 for role, after in pairwise(roles)]


def _message(run: Sequence[tuple[Utterance, str]]) -> PromptMessage:
    """What was said one after the other in one role."""
    role, texts = _role(run[0][0]), [text for _, text in run]
    images = tuple(name for said, _ in run for name in said.images)
    if role == "own":
        return PromptMessage(role="assistant", content="\n\n".join(texts))
    if role == "data":
        data = wrap_as_data("\n".join(texts), "dialogue", Trust.UNTRUSTED)
        return PromptMessage(role="user", content=data, images=images)
    return PromptMessage(role="user", content="\n\n".join(texts), images=images)
