"""`CoagContext`: the perceptual and cognitive state of an agent, behind AutoGen's context API."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Generic

from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import AssistantMessage, FunctionExecutionResultMessage, LLMMessage
from pydantic import TypeAdapter, ValidationError

from coag.errors import StateError
from coag.memory import LongTermMemory, Recall
from coag.schema import (
    BYTES_PER_TOKEN,
    Clock,
    Constraint,
    CountingIds,
    ExecutionOutcome,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Prompt,
    RecalledRecord,
    Section,
    SystemClock,
    Trust,
)

from .component import ContextComponent
from .dialogue import (
    DialogueArchive,
    Images,
    Originals,
    ReadMore,
    Transcript,
    dialogue_messages,
    percepts_of,
    prompt_messages,
    utterances,
)
from .hooks import ForeseesPercepts
from .prompt_budgets import Budgets, shortened
from .prompts import PhaseMaterial, Renderer, Rendering
from .states import StateT, cannot_change, checked_dump, load_state
from .working_memory import Utterance, WorkingMemory

# ---- What has no room in a prompt or in working memory any more, kept to be found again ----


SUMMARIZE_AFTER = 10
"""Messages that have left the dialogue since the last summary, before the next is due."""
SUMMARIZED = 4_000
"""Characters of one message that are summed up; of longer ones the beginning and the end."""
OWN_CALLS = 1_000
"""Tool calls that are known again in a foreign context."""


class DialogueKeeper(ForeseesPercepts[StateT], Generic[StateT]):
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
        arrived = (one for one in memory.percepts if one.kind is not PerceptKind.MESSAGE)
        held = sum(len(one.content) for one in (*memory.dialogue, *arrived))
        held += sum(len(past.result) for past in memory.deeds)
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

    def restore_dialogue(self, said: Sequence[Percept | ExecutionOutcome]) -> None:
        """Takes in what a trace tells was said: the messages, and the outcomes with an answer."""
        memory = self._memory
        count = 0 if memory.earlier is None else memory.earlier.messages
        end = max(0, len(said) - len(memory.dialogue))
        self.archive.clear()
        self.archive.add(map(_utterance, said[max(0, end - count) : end]))

    def _clear_stored(self) -> None:
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


TakeIn = Callable[[Sequence[Percept]], Awaitable[None]]
"""Has percepts perceived."""
_OWN_STATE = ("working_memory", "images", "archive")
"""What of a saved state is no other context's."""
_LLM_MESSAGES: TypeAdapter[list[LLMMessage]] = TypeAdapter(list[LLMMessage])


class CoagContext(DialogueKeeper[StateT], ContextComponent, Generic[StateT]):
    """Structured working memory for one agent (CoAG §2 and A.1), to be subclassed per domain.

    It owns the current `WorkingMemory`; `perceive` and `commit` are the only writers. A
    domain overrides the hooks with a leading underscore; all have defaults that serve a
    general assistant.

    Args:
        rendering: `isolated` (each phase its own prompt) or `growing` (one prompt per cycle).
        budgets: How much of the model's window prompts take, and how it is given out.
        activity: Name of the activity that this working memory belongs to.
        initial_messages: Earlier dialogue.
        dialogue: Another AutoGen context that decides which messages of the dialogue are shown.
        clock: Dates messages.
        ids: Names percepts.
    """

    component_provider_override = "coag.CoagContext"

    def __init__(
        self,
        *,
        rendering: Rendering | str = Rendering.ISOLATED,
        budgets: Budgets | None = None,
        activity: str = "main",
        initial_messages: Sequence[LLMMessage] | None = None,
        dialogue: ChatCompletionContext | None = None,
        clock: Clock | None = None,
        ids: CountingIds | None = None,
    ) -> None:
        super().__init__()
        self._begin_keeping()
        self.rendering = Rendering(rendering)
        self.budgets = budgets or Budgets()
        self.clock: Clock = clock or SystemClock()
        self.ids = ids or CountingIds()
        self.dialogue_source = dialogue
        self.images = Images()
        """The images of the dialogue that is kept."""
        self.on_added: TakeIn | None = None
        """Takes in added messages, e.g. with a record in a trace; an agent sets it."""
        self._adding = False
        self._activity = activity
        self._renderer = Renderer(self.budgets, self.rendering, self.originals)
        self._shown: tuple[Utterance, ...] | None = None
        self._prompt: Prompt | None = None
        self._typed: tuple[Mapping[str, Any], StateT, bool] | None = None
        self._dialogue_is_anothers = False
        """Whether the foreign context still holds what was said by somebody served before."""
        self._foreseen: tuple[WorkingMemory, Outcome, WorkingMemory] | None = None
        self._memory = self._fresh_memory()
        self._transcript = Transcript()
        for message in initial_messages or ():
            self._take_in(message)

    def _fresh_memory(self) -> WorkingMemory:
        try:
            state = self._initial_state()
        except ValidationError as error:
            first = error.errors()[0]
            raise StateError(
                f"{type(self).__name__} has no initial state: {first['loc']} {first['msg']}. Give "
                "every field a default (None if not known yet), or override _initial_state."
            ) from error
        return WorkingMemory(
            activity=self._activity,
            perceptual_state=checked_dump(state),
            limits=self.budgets.limits(self._window),
        )

    # ---- what the cycle calls ----

    @property
    def working_memory(self) -> WorkingMemory:
        """The current value; it changes by `perceive` and `commit` alone."""
        return self._memory

    @property
    def state(self) -> StateT:
        """A typed copy of the perceptual state; changing it changes nothing."""
        raw = self._memory.perceptual_state
        if self._typed is None or self._typed[0] is not raw:
            typed = load_state(self.perceptual_state_schema, raw)
            self._typed = (raw, typed, cannot_change(typed))
        _, typed, may_be_shared = self._typed
        return typed if may_be_shared else typed.model_copy(deep=True)

    def perceive(self, percept: Percept) -> Percept:
        """Takes in a percept and returns it with the state change that the hook computed.

        Where the hook raises, `hook_problem` says so in the returned percept, and working memory
        is `stale` from then on.
        """
        percept = self._perceive(percept)
        if percept.kind is PerceptKind.MESSAGE and not self._adding:
            self._transcript.append_utterance(self._memory.dialogue[-1])
        return percept

    def _perceive(self, percept: Percept) -> Percept:
        percept = self.foresee_percept(percept)
        leaving = self.leaves_person(percept)
        before, self._memory = self._memory, self._memory.perceive(percept)
        self._keep_since(before)
        self.images.keep(percept.images, self._memory)
        if leaving:
            self._let_go(but=percept.kind is PerceptKind.MESSAGE)
        return percept

    def _let_go(self, *, but: bool = False) -> None:
        """Forgets the messages that working memory let go of.

        Args:
            but: Whether the last message is yet to be heard.
        """
        retained = self._memory.dialogue
        self._transcript.load(
            dialogue_messages(
                retained[:-1] if but and not self._adding else retained, self.agent_name
            )
        )
        self._clear_stored()
        self._prompt = self._shown = None
        self._dialogue_is_anothers = self.dialogue_source is not None

    def commit(self, outcome: Outcome) -> None:
        """Takes in a phase's outcome; the next phase reads the result.

        Raises:
            PhaseViolation: It is not this phase's turn.
        """
        leaving = self.leaves_person(outcome)
        before, self._memory = self._memory, self.foresee(outcome)
        self._keep_since(before)
        self._foreseen = None
        if leaving:
            self._let_go()
        if isinstance(outcome, ExecutionOutcome) and outcome.response is not None:
            self._transcript.append_utterance(
                self._memory.dialogue[-1], self.agent_name, self.thought
            )

    def foresee(self, outcome: Outcome) -> WorkingMemory:
        """What `commit` will make of an outcome; raises what it would raise."""
        before, expected, after = self._foreseen or (None, None, None)
        if before is not self._memory or expected is not outcome or after is None:
            after = self._memory.commit(outcome)
            self._foreseen = (self._memory, outcome, after)
        return after

    def _memory_shown(self) -> WorkingMemory:
        shown = self._shown
        return (
            self._memory if shown is None else self._memory.model_copy(update={"dialogue": shown})
        )

    def constraints(self) -> Sequence[Constraint]:
        """The domain's own constraints, in force in every cycle; none by default."""
        return ()

    def build_prompt(self, phase: Phase, material: PhaseMaterial) -> Prompt:
        """The prompt of a phase; `get_messages` shows it until the cycle ends."""
        shown = replace(material, predictions=self.describe_predictions(material.evaluations))
        prompt = self._build_prompt_for_phase(phase, shown)
        self._prompt = self.images.put_into(prompt, phase, self._memory_shown())
        return self._prompt

    async def retrieve_ltms(self, memory: LongTermMemory, *, k: int) -> Recall:
        """What long-term memory holds on the current situation, best first.

        The domain's filter applies to episodic memory; facts of semantic memory hold anywhere.
        """
        where = self.episodic_filter()
        return await memory.recall(self.retrieval_query(), k=k, episodic_where=where)

    async def refresh_dialogue(self) -> None:
        """Asks the foreign context, where there is one, which messages to show."""
        if self.dialogue_source is not None:
            await self._let_dialogue_go(self.dialogue_source)
            messages = self.without_own_calls(await self.dialogue_source.get_messages())
            self._shown = utterances(messages, self.clock.now(), self.images.named)

    async def _let_dialogue_go(self, source: ChatCompletionContext) -> None:
        """Has the foreign context forget what working memory let go of, if it has not yet."""
        if self._dialogue_is_anothers:
            await source.clear()
            for message in dialogue_messages(self._memory.dialogue, self.agent_name):
                await source.add_message(message)
            self._dialogue_is_anothers = False

    def strangers_shown(self) -> frozenset[str]:
        """Who says something untrusted in the dialogue that a foreign context decides to show."""
        said = self._shown or ()
        return frozenset(one.source for one in said if one.trust is Trust.UNTRUSTED)

    # ---- AutoGen's context API ----

    async def add_message(self, message: LLMMessage) -> None:
        """Takes in a message as a percept; the agent's own ones as part of the dialogue."""
        if self.dialogue_source is not None:
            await self.dialogue_source.add_message(message)
        if self.on_added is None:
            self._take_in(message)
            return
        self._transcript.add(message)
        self._adding = True
        try:
            await self.on_added(percepts_of(message, self.clock, self.ids, self.images.named))
        finally:
            self._adding = False

    def _take_in(self, message: LLMMessage) -> None:
        self._transcript.add(message)
        for percept in percepts_of(message, self.clock, self.ids, self.images.named):
            self._perceive(percept)

    async def get_messages(self) -> list[LLMMessage]:
        """Within a cycle the current phase's prompt; outside one the dialogue, its newest part."""
        if self._memory.in_cycle and self._prompt is not None:
            return prompt_messages(self._prompt)
        if self.dialogue_source is not None:
            await self._let_dialogue_go(self.dialogue_source)
            return await self.dialogue_source.get_messages()
        return self._transcript.messages()

    async def clear(self) -> None:
        """Clears the activity, but for actions of unknown outcome; long-term memory stays."""
        unsettled = self._memory.unsettled
        self._memory = self._fresh_memory().model_copy(update={"unsettled": unsettled})
        self._prompt = self._shown = None
        self._dialogue_is_anothers = False
        self.images.load({})
        self._clear_stored()
        self._transcript.load(())
        if self.dialogue_source is not None:
            await self.dialogue_source.clear()

    async def save_state(self) -> Mapping[str, Any]:
        """The working memory as JSON, with the plain messages that any AutoGen context reads.

        Where another context decides what is shown, they are its state.
        """
        messages = [m.model_dump(mode="json") for m in self._transcript.messages()]
        shown: Mapping[str, Any] = {}
        if self.dialogue_source is not None:
            await self._let_dialogue_go(self.dialogue_source)
            shown = await self.dialogue_source.save_state()
        own = {
            "working_memory": self._memory.to_json(),
            "images": self.images.save(),
            "archive": self.archive.save(),
        }
        return {"messages": messages, **shown, **{name: held for name, held in own.items() if held}}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Goes on from a saved state; a plain AutoGen context's state becomes percepts.

        Raises:
            StateError: The saved perceptual state does not fit this context's schema.
        """
        if "working_memory" in state:
            memory = WorkingMemory.model_validate(state["working_memory"])
            load_state(self.perceptual_state_schema, memory.perceptual_state)
            self._dialogue_is_anothers = False
            if self.dialogue_source is not None:
                shown = {name: held for name, held in state.items() if name not in _OWN_STATE}
                await self.dialogue_source.load_state(shown)
            self.restore(memory.model_copy(update={"limits": self._memory.limits}))
            self.images.load(state.get("images", {}))
            self.archive.load(state.get("archive", ()))
            if self.dialogue_source is None and "messages" in state:
                self._transcript.load(_LLM_MESSAGES.validate_python(state["messages"]))
            return
        if "messages" not in state:
            raise StateError(
                "This is no saved context: it has neither 'working_memory' nor 'messages' "
                f"(its keys: {sorted(state)})."
            )
        await self.clear()
        for message in _LLM_MESSAGES.validate_python(state["messages"]):
            if self.dialogue_source is not None:
                await self.dialogue_source.add_message(message)
            self._take_in(message)

    def restore(self, memory: WorkingMemory) -> None:
        """Continues from this working memory, e.g. one rebuilt from a trace."""
        self._memory = memory
        self._clear_stored()
        self._transcript.load(dialogue_messages(memory.dialogue, self.agent_name))
        self._prompt = None

    @property
    def _state_schema(self) -> type[StateT]:
        return self.perceptual_state_schema

    def _named_arguments(self) -> dict[str, Any]:
        """What was given; all that counts, where no subclass's constructor decides of it."""
        kinds = type(self).__mro__
        decided = any("__init__" in vars(kind) for kind in kinds[: kinds.index(CoagContext)])
        own = {"rendering": self.rendering, "budgets": self.budgets, "activity": self._activity}
        return super()._named_arguments() | ({} if decided else own)
