"""The dialogue: as AutoGen's messages, its images, and what has left it."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import dropwhile
from typing import Any, cast
from weakref import WeakKeyDictionary

from autogen_core import Image
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)

from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Clock,
    Failure,
    IdSource,
    MemoryKind,
    Percept,
    PerceptKind,
    Phase,
    Prompt,
    Provenance,
    RecalledRecord,
    Record,
    Trust,
    record_id,
)
from coag.store import InMemoryStore, Search

from .prompt_budgets import READ_MORE, name_of
from .working_memory import DIALOGUE, DIALOGUE_LIMIT, Utterance, WorkingMemory

# ---- Between AutoGen's messages and ours ----


def utterances(
    messages: Sequence[LLMMessage],
    at: datetime,
    named: Callable[[object], Mapping[str, str]] = lambda content: {},
) -> tuple[Utterance, ...]:
    """AutoGen messages as dialogue. System messages are instructions, not dialogue: left out.

    Tool results stand as untrusted text of their tool, images as `[image]` and by their hash.

    Args:
        messages: The messages.
        at: When they were said.
        named: Gives the images of a content by their hash.
    """
    said: list[Utterance] = []
    for message in messages:
        match message:
            case UserMessage():
                trust = Trust.USER if message.source == "user" else Trust.UNTRUSTED
                arrived = _utterance(message.source, _text(message), trust, at)
                said.append(arrived.model_copy(update={"images": tuple(named(message.content))}))
            case AssistantMessage():
                said.append(_utterance(message.source, _text(message), Trust.DEVELOPER, at, True))
            case FunctionExecutionResultMessage():
                said += [
                    _utterance(result.name, result.content, Trust.UNTRUSTED, at)
                    for result in message.content
                ]
            case SystemMessage():
                continue
    return tuple(said)


def percepts_of(
    message: LLMMessage,
    clock: Clock,
    ids: IdSource,
    named: Callable[[object], Mapping[str, str]],
) -> list[Percept]:
    """What an agent perceives of an AutoGen message; nothing of instructions to another one."""
    return [
        Percept(
            id=ids("percept"),
            at=said.at,
            kind=PerceptKind.MESSAGE,
            source=said.source,
            trust=said.trust,
            content=said.content,
            images=dict(named(message.content)),
        )
        for said in utterances([message], clock.now())
    ]


def _utterance(
    source: str, content: str, trust: Trust, at: datetime, own: bool = False
) -> Utterance:
    return Utterance(source=source, own=own, trust=trust, content=content, at=at)


def _text(message: UserMessage | AssistantMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    parts: list[str] = []
    for part in message.content:
        if isinstance(part, str):
            parts.append(part)
        elif hasattr(part, "arguments"):
            parts.append(json.dumps(part.__dict__, default=str))
        else:
            parts.append("[image]")
    return "\n".join(parts)


def dialogue_messages(
    dialogue: Sequence[Utterance], name: str = "", thought: str = ""
) -> list[LLMMessage]:
    """The dialogue as AutoGen messages.

    Args:
        dialogue: What was said.
        name: The agent's name, as the source of its own messages.
        thought: What it thought when it said its own ones.
    """
    return [
        AssistantMessage(content=said.content, source=name or said.source, thought=thought or None)
        if said.own
        else UserMessage(content=said.content, source=said.source)
        for said in dialogue
    ]


def prompt_messages(prompt: Prompt) -> list[LLMMessage]:
    """A prompt as AutoGen messages."""
    made: list[LLMMessage] = []
    for message in prompt:
        match message.role:
            case "system":
                made.append(SystemMessage(content=message.content))
            case "user":
                made.append(UserMessage(content=message.content, source="user"))
            case "assistant":
                made.append(AssistantMessage(content=message.content, source="assistant"))
    return made


# ---- The images of a dialogue: working memory names them by hash, here they are kept ----


IMAGES_LIMIT = 4
"""Images of the dialogue that are kept and shown, the newest ones."""
IMAGE_CHARACTERS = 8_000_000
"""Characters of an image as a data URI; a larger one is left out."""
SHOWN_IN = (Phase.REASONING, Phase.PROPOSAL, Phase.EVALUATION)
"""Phases whose prompts hold the dialogue."""


class Images:
    """The newest images of the dialogue, as data URIs by hash."""

    def __init__(self) -> None:
        self._stored: dict[str, str] = {}
        self._uris: WeakKeyDictionary[Image, str] = WeakKeyDictionary()

    def named(self, content: object) -> dict[str, str]:
        """The images of a message's content by their hash, as data URIs."""
        if not isinstance(content, list):
            return {}
        images = [part for part in cast("list[object]", content) if isinstance(part, Image)]
        for image in images:
            if image not in self._uris:  # writing an image is dear
                self._uris[image] = image.data_uri
        return named_images([self._uris[image] for image in images])

    def keep(self, arrived: Mapping[str, str], memory: WorkingMemory) -> None:
        """Takes in what a percept brought, and lets go of what the dialogue shows no more."""
        if not arrived and not self._stored:
            return
        known = {**self._stored, **arrived}
        self._stored = {name: known[name] for name in _newest(memory) if name in known}

    def put_into(self, prompt: Prompt, phase: Phase, memory: WorkingMemory) -> Prompt:
        """The prompt with the images, where phases see them.

        A message that names its images by their hash gets those that are kept; in prompts without
        such messages all stand in the first one of the user.
        """
        if any(said.images for said in prompt):
            return tuple(
                said.model_copy(
                    update={
                        "images": tuple(self._stored[n] for n in said.images if n in self._stored)
                    }
                )
                for said in prompt
            )
        shown = tuple(self._stored[name] for name in _newest(memory) if name in self._stored)
        first = next((n for n, said in enumerate(prompt) if said.role == "user"), None)
        if not shown or first is None or phase not in SHOWN_IN:
            return prompt
        seen = prompt[first].model_copy(update={"images": shown})
        return (*prompt[:first], seen, *prompt[first + 1 :])

    def save(self) -> dict[str, str]:
        """What is kept, as JSON."""
        return dict(self._stored)

    def load(self, state: Mapping[str, str]) -> None:
        """Goes on from a saved state."""
        self._stored = dict(state)


def _newest(memory: WorkingMemory) -> list[str]:
    named = dict.fromkeys(name for said in memory.dialogue for name in said.images)
    return list(named)[-IMAGES_LIMIT:]


def named_images(uris: Sequence[str]) -> dict[str, str]:
    """Images by their hash, without those that are too large."""
    retained = [uri for uri in uris if len(uri) <= IMAGE_CHARACTERS]
    return {hashlib.sha256(uri.encode()).hexdigest()[:16]: uri for uri in retained}


# ---- The dialogue as AutoGen's messages: as they were added, tool calls and images included ----


class Transcript:
    """What whoever uses a context as AutoGen does gets back from it, the newest messages.

    Working memory keeps what was said as text. A stock agent needs its tool calls, their results
    and system messages again as they were.
    """

    def __init__(self) -> None:
        self._messages: deque[LLMMessage] = deque(maxlen=DIALOGUE_LIMIT)

    def add(self, message: LLMMessage) -> None:
        """A message was added."""
        self._messages.append(message)

    def append_utterance(self, said: Utterance, name: str = "", thought: str = "") -> None:
        """Something was said to an agent of ours, or by it, with a thought."""
        self._messages.extend(dialogue_messages((said,), name, thought))

    def load(self, messages: Iterable[LLMMessage]) -> None:
        """Goes on from these messages."""
        self._messages.clear()
        self._messages.extend(messages)

    def messages(self) -> list[LLMMessage]:
        """The messages; results whose calls are not kept any more are left out."""
        return list(dropwhile(_is_result, self._messages))


def _is_result(message: LLMMessage) -> bool:
    return isinstance(message, FunctionExecutionResultMessage)


# ---- All that was said before the dialogue that working memory keeps, to be found again ----


MESSAGES = 5_000
"""Messages that are kept; the oldest go first."""
_SCOPE = "dialogue"
_PIECE = 1_000
"""Characters of a message that are found as one."""


class DialogueArchive:
    """Messages in RAM, searched as long-term memory is: by meaning and by words.

    Nothing is embedded before the first search.
    """

    def __init__(self) -> None:
        self._said: deque[Utterance] = deque(maxlen=MESSAGES)
        self._store: InMemoryStore | None = None
        self._waiting: list[Utterance] = []
        self._indexed: set[str] = set()

    def __len__(self) -> int:
        return len(self._said)

    def add(self, said: Iterable[Utterance]) -> None:
        """Takes in messages that have left the dialogue, the oldest first."""
        for one in said:
            self._said.append(one)
            self._waiting.append(one)

    def clear(self) -> None:
        """Forgets all."""
        self._said.clear()
        self._waiting.clear()
        self._indexed.clear()
        self._store = None

    async def search(self, text: str, k: int) -> Sequence[RecalledRecord]:
        """The messages that are nearest in meaning, best first; those too far away are left out."""
        if not self._said or not text.strip() or k < 1:
            return ()
        if self._store is None:
            self._store, self._waiting = InMemoryStore(), list(self._said)
            self._indexed.clear()
        # What is said again and again ("Go on.") is found once, as it was said first.
        records: dict[str, Record] = {}
        for said in self._waiting:
            for one in _records(said):
                if one.id not in self._indexed:
                    records.setdefault(one.id, one)
        self._waiting = []
        self._indexed.update(records)
        if records:
            await self._store.add(list(records.values()))
        search = Search(text=text, kind=MemoryKind.EPISODIC, k=k, scopes=(_SCOPE,))
        return await self._store.search(search)

    def last(self, count: int) -> list[str]:
        """The last so many messages as lines, the oldest first."""
        said = list(self._said)[-count:] if count > 0 else []
        return [f"{_speaker(one)}: {one.content}" for one in said]

    def text(self) -> str:
        """All messages, the oldest first, a line or more for each."""
        return "\n".join(self.last(len(self._said)))

    def save(self) -> list[dict[str, Any]]:
        """The messages as JSON."""
        return [one.model_dump(mode="json", exclude_defaults=True) for one in self._said]

    def load(self, saved: Iterable[Any]) -> None:
        """Goes on from saved messages."""
        self.clear()
        self.add(Utterance.model_validate(one) for one in saved)


def _speaker(said: Utterance) -> str:
    return "you" if said.own else said.source


def _records(said: Utterance) -> Iterable[Record]:
    """A message as records; its own words are the agent's, which nobody else vouches for."""
    trust = Trust.UNTRUSTED if said.own and said.shown_untrusted else said.trust
    trust = Trust.USER if trust is Trust.DEVELOPER else trust
    for start in range(0, len(said.content), _PIECE):
        text = f"{_speaker(said)}: {said.content[start : start + _PIECE]}"
        yield Record(
            id=record_id(MemoryKind.EPISODIC, _SCOPE, text),
            kind=MemoryKind.EPISODIC,
            text=text,
            scope=_SCOPE,
            created_at=said.at,
            provenance=Provenance(
                run="",
                activity="",
                cycle=0,
                source=_speaker(said),
                source_kind="dialogue",
                trust=trust,
            ),
        )


# ---- Texts that were cut, kept whole for a while, and the action that reads on in them ----


TEXTS = 20
"""Texts that are kept, the last ones that were cut."""
CHARACTERS = 20_000_000
"""Characters that they have together at most."""
_SPEC = ActionSpec(
    name=READ_MORE,
    description="Show more of a text that was cut.",
    parameters={
        "type": "object",
        "properties": {
            "of": {"type": "string", "description": "Its name, as the note in the text says."},
            "start": {"type": "integer", "minimum": 0, "default": 0},
        },
        "required": ["of"],
        "additionalProperties": False,
    },
    internal=True,
    repeatable=True,
)


class Originals:
    """The last texts that were cut, by name."""

    def __init__(self) -> None:
        self._texts: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._texts)

    def keep(self, text: str) -> str:
        """Keeps a text and gives its name; the same text has the same name."""
        name = name_of(text)
        self._texts[name] = text
        self._texts.move_to_end(name)
        while len(self._texts) > TEXTS or (self._size() > CHARACTERS and len(self._texts) > 1):
            self._texts.popitem(last=False)
        return name

    def get(self, name: str) -> str | None:
        """The text of this name, if it is kept still."""
        return self._texts.get(name)

    def clear(self) -> None:
        """Forgets all."""
        self._texts.clear()

    def _size(self) -> int:
        return sum(map(len, self._texts.values()))


class ReadMore:
    """The action `read_more`, an `ActionSource`: offered while there is something to read on in.

    Args:
        originals: The texts that were cut.
        dialogue: All that was said before the dialogue that is kept.
        offered: Whether something was cut, or is about to be.
        characters: How much is shown at once.
    """

    def __init__(
        self,
        originals: Originals,
        dialogue: Callable[[], str],
        offered: Callable[[], bool],
        characters: Callable[[], int],
    ) -> None:
        self._originals = originals
        self._dialogue = dialogue
        self._offered = offered
        self._characters = characters

    def action_specs(self) -> Sequence[ActionSpec]:
        """The action, where it can show something."""
        return (_SPEC,) if self._offered() else ()

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Shows the next part of a text."""
        name, start = str(call.arguments.get("of", "")), int(call.arguments.get("start", 0))
        text = self._dialogue() if name == DIALOGUE else self._originals.get(name)
        if not text:
            shown = f"No text {name!r} is kept (any more). Ask for it where it came from."
            return ActionResult(content=shown, is_error=True, failure=Failure.DETERMINISTIC)
        if start >= len(text):
            shown = f"{name!r} has {len(text):,} characters; start={start} is behind its end."
            return ActionResult(content=shown, is_error=True, failure=Failure.DETERMINISTIC)
        end = min(len(text), start + self._characters())
        rest = f', {READ_MORE}(of="{name}", start={end}) shows more' if end < len(text) else ""
        head = f"[characters {start:,} to {end:,} of {len(text):,}{rest}]"
        return ActionResult(content=f"{head}\n{text[start:end]}")
