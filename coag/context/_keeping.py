"""What has no room in a prompt or in working memory any more, kept to be found again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Generic

from autogen_core.models import AssistantMessage, FunctionExecutionResultMessage, LLMMessage

from coag.schema import (
    BYTES_PER_TOKEN,
    ExecutionOutcome,
    Percept,
    PerceptKind,
    RecalledRecord,
    Section,
    Trust,
)

from ._allotment import shortened
from ._archive import DialogueArchive
from ._budgets import Budgets
from ._foreseeing import ForeseesPercepts
from ._originals import Originals, ReadMore
from ._states import StateT
from ._working_memory import Utterance, WorkingMemory

SUMMARIZE_AFTER = 10
"""Messages that have left the dialogue since the last summary, before the next is due."""
SUMMARIZED = 4_000
"""Characters of one message that are summed up; of longer ones the beginning and the end."""
OWN_CALLS = 1_000
"""Tool calls that are known again in a foreign context."""


class KeepsDialogue(ForeseesPercepts[StateT], Generic[StateT]):
    """Fits a context to the model's window, and keeps what does not fit."""

    budgets: Budgets

    def _begin_keeping(self) -> None:
        self.archive = DialogueArchive()
        """What was said before the dialogue that is kept."""
        self.originals = Originals()
        """Texts of which a prompt shows a part."""
        self.agent_name = ""
        """The agent's name, as the source of its messages for whoever reads them as AutoGen's."""
        self._window: int | None = None
        self._own_calls: deque[str] = deque(maxlen=OWN_CALLS)

    def fit(self, window: int | None) -> None:
        """Takes over how much the model reads and writes at once, in tokens; None for unknown.

        `Budgets.window` comes first. What an agent was restored to from a trace stays as it was.
        """
        self._window = window
        self._memory = self._memory.model_copy(update={"limits": self.budgets.limits(window)})

    @property
    def output_characters(self) -> int:
        """Characters of one tool's output that prompts show at most."""
        return self.budgets.output_characters(self._memory.limits)

    def fitting(self, text: str) -> str:
        """A message as far as a prompt could hold it, with a way to the rest."""
        most = self._memory.limits.prompt * BYTES_PER_TOKEN
        if len(text) <= most:
            return text
        return shortened(text, most, self.originals.keep(text))

    def reading_more(self) -> ReadMore:
        """The action that shows what was cut or has left the dialogue."""
        return ReadMore(
            self.originals, self.archive.text, self._may_cut, lambda: self.output_characters // 2
        )

    def _may_cut(self) -> bool:
        """Whether something was cut, or there is so much that something may be."""
        memory = self._memory
        if self.originals or memory.earlier is not None:
            return True
        heard = (one for one in memory.percepts if one.kind is not PerceptKind.MESSAGE)
        held = sum(len(one.content) for one in (*memory.dialogue, *heard))
        held += sum(len(deed.result) for deed in memory.deeds)
        return held > memory.limits.prompt * BYTES_PER_TOKEN // 2

    async def recall_dialogue(self, *, k: int) -> Sequence[RecalledRecord]:
        """What was said before the dialogue that is kept and matters now, best first."""
        return await self.archive.search(self.retrieval_query(), k)

    def to_summarize(self) -> tuple[Section, int] | None:
        """What of the messages that have left the dialogue is to be summed up next.

        Returns:
            The summary so far and the messages after it, as far as half a prompt holds them, and
            how many messages the new summary will cover; None while there are too few.
        """
        earlier = self._memory.earlier
        if earlier is None or earlier.messages - earlier.summarized < SUMMARIZE_AFTER:
            return None
        budget = self._memory.limits.prompt // 2
        room = budget * BYTES_PER_TOKEN - len(earlier.summary) - 100
        said = self.archive.last(earlier.messages - earlier.summarized)
        covered = earlier.messages - len(said)  # the archive may have lost the oldest
        lines = [f"Summary so far: {earlier.summary}"] if earlier.summary else []
        for line in said:
            shown = line if len(line) <= SUMMARIZED else shortened(line, SUMMARIZED)
            room -= len(shown.encode(errors="replace")) + 1
            if room < 0:
                break
            lines.append(shown)
            covered += 1
        if covered == earlier.summarized:
            return None
        trust = Trust.UNTRUSTED if earlier.untrusted else Trust.USER
        section = Section(
            title="Dialogue so far",
            text="\n".join(lines),
            source="dialogue",
            trust=trust,
            budget=budget,
        )
        return section, covered

    def _keep_since(self, before: WorkingMemory) -> None:
        """Keeps what has left the dialogue, to be found again."""
        if self._memory.earlier is before.earlier:
            return
        now = set(map(id, self._memory.dialogue))
        self.archive.add(one for one in before.dialogue if id(one) not in now)

    @property
    def thought(self) -> str:
        """What the model thought in this cycle, where its client tells that apart."""
        cognitive = self._memory.cognitive_state
        proposed = "" if cognitive.proposal is None else cognitive.proposal.thought
        return proposed or ("" if cognitive.reasoning is None else cognitive.reasoning.thought)

    def note_own_calls(self, ids: Iterable[str]) -> None:
        """The foreign context was given these calls; prompts show them as the agent's actions."""
        self._own_calls.extend(ids)

    def without_own_calls(self, messages: Sequence[LLMMessage]) -> list[LLMMessage]:
        """A foreign context's messages without the agent's own calls and their results."""
        own = set(self._own_calls)
        return [one for one in messages if not own.intersection(_call_ids(one))]

    def take_up_said(self, said: Sequence[Percept | ExecutionOutcome]) -> None:
        """Takes in what a trace tells was said: the messages, and the outcomes with an answer."""
        memory = self._memory
        count = 0 if memory.earlier is None else memory.earlier.messages
        end = max(0, len(said) - len(memory.dialogue))
        self.archive.clear()
        self.archive.add(map(_utterance, said[max(0, end - count) : end]))

    def _forget_kept(self) -> None:
        self.archive.clear()
        self.originals.clear()


def _call_ids(message: LLMMessage) -> Iterable[str]:
    if isinstance(message, FunctionExecutionResultMessage):
        return [result.call_id for result in message.content]
    if isinstance(message, AssistantMessage) and isinstance(message.content, list):
        return [call.id for call in message.content]
    return ()


def _utterance(said: Percept | ExecutionOutcome) -> Utterance:
    if isinstance(said, Percept):
        own = said.trust is Trust.DEVELOPER
        return Utterance(
            source=said.source, own=own, trust=said.trust, content=said.content, at=said.at
        )
    # Whether it was shown anything untrusted is not looked up: its words vouch for nothing.
    return Utterance(
        source="self",
        own=True,
        trust=Trust.DEVELOPER,
        content=said.response or "",
        at=said.at,
        shown_untrusted=True,
    )
