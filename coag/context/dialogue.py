"""The dialogue: as AutoGen's messages, its images, and what has left it or was cut."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
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

from coag._util.text import BYTES_PER_TOKEN
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    ExecutionOutcome,
    Failure,
    MemoryKind,
    Percept,
    PerceptKind,
    Phase,
    Prompt,
    Provenance,
    RecalledRecord,
    Record,
    Section,
    Trust,
    record_id,
)
from coag.store import InMemoryStore, Search

from .prompt_budgets import READ_MORE, name_of, shortened
from .working_memory import DIALOGUE, Utterance, WorkingMemory

# ---- Between AutoGen's messages and ours ----


def utterances(
    messages: Sequence[LLMMessage],
    at: datetime,
    named: Callable[[object], Mapping[str, str]],
) -> tuple[tuple[Utterance, Mapping[str, str]], ...]:
    """AutoGen messages as dialogue, each with its images by hash, as `named` gives them.

    System messages are instructions, not dialogue: left out. Tool results become untrusted text
    of their tool, images as `[image]`.
    """
    spoken: list[tuple[Utterance, Mapping[str, str]]] = []
    for message in messages:
        texts: list[tuple[str, str, Trust]] = []
        match message:
            case UserMessage():
                trust = Trust.USER if message.source == "user" else Trust.UNTRUSTED
                texts = [(message.source, _text(message), trust)]
            case AssistantMessage():
                texts = [(message.source, _text(message), Trust.DEVELOPER)]
            case FunctionExecutionResultMessage():
                texts = [(one.name, one.content, Trust.UNTRUSTED) for one in message.content]
            case SystemMessage():
                pass
        images = named(message.content)
        for source, content, trust in texts:
            own = trust is Trust.DEVELOPER
            one = Utterance(source=source, own=own, trust=trust, content=content, at=at)
            spoken.append((one.model_copy(update={"images": tuple(images)}), images))
    return tuple(spoken)


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


def said_in(event: Percept | ExecutionOutcome) -> Utterance:
    """A message or an answer of the trace as dialogue."""
    if isinstance(event, Percept):
        own = event.trust is Trust.DEVELOPER
        return Utterance(
            source=event.source, own=own, trust=event.trust, content=event.content, at=event.at
        )
    # Whether it was shown anything untrusted is not looked up: its words confirm nothing.
    return Utterance(
        source="self",
        own=True,
        trust=Trust.DEVELOPER,
        content=event.response or "",
        at=event.at,
        shown_untrusted=True,
    )


def dialogue_messages(
    dialogue: Iterable[Utterance], name: str = "", thought: str = ""
) -> list[LLMMessage]:
    """The dialogue as AutoGen messages; the agent's own are from `name`, with its thought."""
    return [
        AssistantMessage(content=one.content, source=name or one.source, thought=thought or None)
        if one.own
        else UserMessage(content=one.content, source=one.source)
        for one in dialogue
    ]


def prompt_messages(prompt: Prompt) -> list[LLMMessage]:
    """A prompt as AutoGen messages."""
    kinds = {"user": UserMessage, "assistant": AssistantMessage}
    return [
        kinds[one.role](content=one.content, source=one.role)
        if one.role in kinds
        else SystemMessage(content=one.content)
        for one in prompt
    ]


def without_calls(messages: Iterable[LLMMessage], ids: Iterable[str]) -> list[LLMMessage]:
    """The messages without tool calls of these ids and their results."""
    gone, retained = set(ids), list[LLMMessage]()
    for message in messages:
        called: list[str] = []
        if isinstance(message, FunctionExecutionResultMessage):
            called = [result.call_id for result in message.content]
        elif isinstance(message, AssistantMessage) and isinstance(message.content, list):
            called = [call.id for call in message.content]
        if gone.isdisjoint(called):
            retained.append(message)
    return retained


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
        """Takes in the images of a percept, and drops those that the dialogue shows no more."""
        if arrived or self._stored:
            self._stored = _newest(memory, {**self._stored, **arrived})

    def put_into(self, prompt: Prompt, phase: Phase, memory: WorkingMemory) -> Prompt:
        """The prompt with the images, where phases see them.

        A message that names its images by their hash gets those that are kept; in prompts without
        such messages are all in the first one of the user.
        """
        if any(message.images for message in prompt):
            images_of = [
                tuple(self._stored[n] for n in message.images if n in self._stored)
                for message in prompt
            ]
            return tuple(
                message.model_copy(update={"images": images}) if message.images else message
                for message, images in zip(prompt, images_of, strict=True)
            )
        if not self._stored:
            return prompt
        newest = tuple(_newest(memory, self._stored).values())
        first = next((n for n, message in enumerate(prompt) if message.role == "user"), None)
        if not newest or first is None or phase not in SHOWN_IN:
            return prompt
        seen = prompt[first].model_copy(update={"images": newest})
        return (*prompt[:first], seen, *prompt[first + 1 :])

    def save(self) -> dict[str, str]:
        """What is kept, as JSON."""
        return dict(self._stored)

    def load(self, state: Mapping[str, str]) -> None:
        """Continues from a saved state."""
        self._stored = dict(state)


def _newest(memory: WorkingMemory, known: Mapping[str, str]) -> dict[str, str]:
    named = list(dict.fromkeys(name for message in memory.dialogue for name in message.images))
    return {name: known[name] for name in named[-IMAGES_LIMIT:] if name in known}


def named_images(uris: Sequence[str]) -> dict[str, str]:
    """Images by their hash, without those that are too large."""
    retained = [uri for uri in uris if len(uri) <= IMAGE_CHARACTERS]
    return {hashlib.sha256(uri.encode()).hexdigest()[:16]: uri for uri in retained}


# ---- All that was said before the dialogue that working memory keeps, to be found again ----


MESSAGES = 5_000
"""Messages that are kept; the oldest go first."""
SUMMARIZE_AFTER = 10
"""Messages that have left the dialogue since the last summary, before the next is due."""
SUMMARIZED = 4_000
"""Characters of one message that are summed up; of longer ones the beginning and the end."""
_SCOPE = "dialogue"
_PIECE = 1_000
"""Characters of a message that are found as one."""


class DialogueArchive:
    """Messages in RAM, searched as long-term memory is: by meaning and by words.

    Nothing is embedded before the first search.
    """

    def __init__(self) -> None:
        self._messages: deque[Utterance] = deque(maxlen=MESSAGES)
        self._store: InMemoryStore | None = None
        self._waiting: list[Utterance] = []
        self._indexed: set[str] = set()

    def __len__(self) -> int:
        return len(self._messages)

    def add(self, messages: Iterable[Utterance]) -> None:
        """Takes in messages that have left the dialogue, the oldest first."""
        for one in messages:
            self._messages.append(one)
            self._waiting.append(one)

    def clear(self) -> None:
        """Forgets all."""
        self._messages.clear()
        self._waiting.clear()
        self._store = None

    async def search(self, text: str, k: int) -> Sequence[RecalledRecord]:
        """The messages that are nearest in meaning, best first; those too far away are left out."""
        if not self._messages or not text.strip() or k < 1:
            return ()
        if self._store is None:
            self._store, self._waiting = InMemoryStore(), list(self._messages)
            self._indexed.clear()
        # A text that is said many times ("Go on.") is found once, as it was said first.
        records: dict[str, Record] = {}
        for one in (record for message in self._waiting for record in _records(message)):
            if one.id not in self._indexed:
                records.setdefault(one.id, one)
        self._waiting = []
        self._indexed.update(records)
        if records:
            await self._store.add(list(records.values()))
        search = Search(text=text, kind=MemoryKind.EPISODIC, k=k, scopes=(_SCOPE,))
        return await self._store.search(search)

    def to_summarize(self, memory: WorkingMemory) -> tuple[Section, int] | None:
        """What of the messages that have left the dialogue is to be summed up next.

        Returns:
            The summary so far and the messages after it, as far as half a prompt holds them, and
            how many messages the new summary will cover; None while there are too few.
        """
        earlier = memory.earlier
        if earlier is None or earlier.messages - earlier.summarized < SUMMARIZE_AFTER:
            return None
        budget = memory.limits.prompt // 2
        room = budget * BYTES_PER_TOKEN - len(earlier.summary) - 100
        messages = self._last(earlier.messages - earlier.summarized)
        covered = earlier.messages - len(messages)  # the oldest may have been lost
        lines = [f"Summary so far: {earlier.summary}"] if earlier.summary else []
        for line in messages:
            short = shortened(line, SUMMARIZED)
            room -= len(short.encode(errors="replace")) + 1
            if room < 0:
                break
            lines.append(short)
            covered += 1
        if covered == earlier.summarized:
            return None
        trust = Trust.UNTRUSTED if earlier.untrusted else Trust.USER
        title, text = "Dialogue so far", "\n".join(lines)
        section = Section(title=title, text=text, source="dialogue", trust=trust, budget=budget)
        return section, covered

    def text(self) -> str:
        """All messages, the oldest first, a line or more for each."""
        return "\n".join(self._last(len(self._messages)))

    def _last(self, count: int) -> list[str]:
        messages = list(self._messages)[-count:] if count > 0 else []
        return [f"{_speaker(one)}: {one.content}" for one in messages]

    def save(self) -> list[dict[str, Any]]:
        """The messages as JSON."""
        return [one.model_dump(mode="json", exclude_defaults=True) for one in self._messages]

    def load(self, saved: Iterable[Any]) -> None:
        """Continues from saved messages."""
        self.clear()
        self.add(Utterance.model_validate(one) for one in saved)


def _speaker(message: Utterance) -> str:
    return "you" if message.own else message.source


def _records(message: Utterance) -> Iterable[Record]:
    """A message as records; the agent's own words are confirmed by nobody else."""
    trust = Trust.UNTRUSTED if message.own and message.shown_untrusted else message.trust
    origin = Provenance(
        run="",
        activity="",
        cycle=0,
        source=_speaker(message),
        source_kind="dialogue",
        trust=Trust.USER if trust is Trust.DEVELOPER else trust,
    )
    for start in range(0, len(message.content), _PIECE):
        text = f"{_speaker(message)}: {message.content[start : start + _PIECE]}"
        yield Record(
            id=record_id(MemoryKind.EPISODIC, _SCOPE, text),
            kind=MemoryKind.EPISODIC,
            text=text,
            scope=_SCOPE,
            created_at=message.at,
            provenance=origin,
        )


# ---- Texts that were cut, kept whole for a while, and the action that shows the rest ----


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
        while len(self) > TEXTS or (
            len(self) > 1 and sum(map(len, self._texts.values())) > CHARACTERS
        ):
            self._texts.popitem(last=False)
        return name

    def get(self, name: str) -> str | None:
        """The text of this name, if it is kept still."""
        return self._texts.get(name)

    def clear(self) -> None:
        """Forgets all."""
        self._texts.clear()


class ReadMore:
    """The action `read_more`, an `ActionSource`: offered where a text was cut or is archived."""

    def __init__(
        self,
        originals: Originals,
        archive: DialogueArchive,
        memory: Callable[[], WorkingMemory],
        characters: Callable[[], int],
    ) -> None:
        self._originals = originals
        self._archive = archive
        self._memory = memory
        self._characters = characters

    def action_specs(self) -> Sequence[ActionSpec]:
        """The action, where something was cut, or there is so much that something may be."""
        memory = self._memory()
        if self._originals or memory.earlier is not None:
            return (_SPEC,)
        arrived = (one for one in memory.percepts if one.kind is not PerceptKind.MESSAGE)
        held = sum(len(one.content) for one in (*memory.dialogue, *arrived))
        held += sum(len(past.result) for past in memory.deeds)
        return (_SPEC,) if held > memory.limits.prompt * BYTES_PER_TOKEN // 2 else ()

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Shows the next part of a text."""
        name, start = str(call.arguments.get("of", "")), int(call.arguments.get("start", 0))
        text = (self._archive.text() if name == DIALOGUE else self._originals.get(name)) or ""
        if start < len(text):
            end = min(len(text), start + self._characters())
            rest = f', {READ_MORE}(of="{name}", start={end}) shows more' if end < len(text) else ""
            head = f"[characters {start:,} to {end:,} of {len(text):,}{rest}]"
            return ActionResult(content=f"{head}\n{text[start:end]}")
        shown = f"{name!r} has {len(text):,} characters; start={start} is behind its end."
        if not text:
            shown = f"No text {name!r} is kept (any more). Ask for it where it came from."
        return ActionResult(content=shown, is_error=True, failure=Failure.DETERMINISTIC)
