"""`CoagContext`: the perceptual and cognitive state of an agent, behind AutoGen's context API."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import dropwhile
from typing import Any, ClassVar, Generic

from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import FunctionExecutionResultMessage, LLMMessage
from pydantic import TypeAdapter, ValidationError

from coag._util.json_diff import diff_patch
from coag._util.text import BYTES_PER_TOKEN
from coag._util.validation import first_error
from coag.errors import StateError
from coag.memory import LongTermMemory, Recall
from coag.schema import (
    Candidate,
    Clock,
    Constraint,
    CountingIds,
    Evaluation,
    ExecutionOutcome,
    Outcome,
    Percept,
    PerceptKind,
    Phase,
    Prompt,
    Reconciliation,
    SystemClock,
    Trust,
    UnsettledAction,
)

from .component import ContextComponent
from .dialogue import (
    DialogueArchive,
    Images,
    Originals,
    ReadMore,
    dialogue_messages,
    prompt_messages,
    said_in,
    utterances,
    without_calls,
)
from .hooks import DomainHooks
from .prompt_budgets import Budgets, shortened
from .prompts import PhaseMaterial, Renderer, Rendering
from .states import StateT, cannot_change, checked_dump, load_state
from .working_memory import DIALOGUE_LIMIT, Utterance, WorkingMemory

OWN_CALLS = 1_000
"""Tool calls that are known again in a foreign context."""
TakeIn = Callable[[Sequence[Percept]], Awaitable[None]]
"""Called with percepts that are to be perceived."""
_OWN_STATE = ("working_memory", "images", "archive")
"""What of a saved state is no other context's."""
_LLM_MESSAGES: TypeAdapter[list[LLMMessage]] = TypeAdapter(list[LLMMessage])
_ONLY_READS = "_update_state_from_function_result"
"""The hook whose default, of every tool's return, changes nothing of the percept."""


class MemoryOwner(DomainHooks[StateT], Generic[StateT]):
    """Working memory now, and what the cycle asks of the domain: its hooks, upon that state."""

    budgets: Budgets
    lean: bool = False
    """Whether prompts leave out repetitions; an agent sets it (`prompts`)."""
    _activity: str
    _window: int | None = None
    _typed: tuple[Mapping[str, Any], StateT, bool] | None = None
    _foreseen: tuple[WorkingMemory, Outcome, WorkingMemory] | None = None

    def _fresh_memory(self) -> WorkingMemory:
        try:
            state = self._initial_state()
        except ValidationError as error:
            raise StateError(
                f"{type(self).__name__} has no initial state: {first_error(error)}. Give "
                "every field a default (None if not known yet), or override _initial_state."
            ) from error
        return WorkingMemory(
            activity=self._activity,
            perceptual_state=checked_dump(state),
            limits=self.budgets.limits(self._window),
        )

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

    def foresee(self, outcome: Outcome) -> WorkingMemory:
        """Working memory after `commit` of an outcome; raises what `commit` would raise."""
        before, expected, after = self._foreseen or (None, None, None)
        if before is not self._memory or expected is not outcome or after is None:
            after = self._memory.commit(outcome)
            self._foreseen = (self._memory, outcome, after)
        return after

    def fit(self, window: int | None) -> None:
        """Takes over how much the model reads and writes at once, in tokens; None for unknown.

        `Budgets.window` comes first. What an agent was restored to from a trace stays as it was.
        """
        self._window = window
        self._memory = self._memory.model_copy(update={"limits": self.budgets.limits(window)})

    @property
    def output_characters(self) -> int:
        """Characters of one tool's output that prompts show at most."""
        return (self.budgets.output or self._memory.limits.prompt // 2) * BYTES_PER_TOKEN

    def constraints(self) -> Sequence[Constraint]:
        """The domain's own constraints, in force in every cycle; none by default."""
        return ()

    def describe(self) -> str:
        """The perceptual state in words."""
        return self._get_state_description(self.state)

    def retrieval_query(self) -> str:
        """What long-term memory is to be searched for now."""
        return self._get_retrieval_query(self.state)

    def episodic_filter(self) -> dict[str, Any] | None:
        """The filter on episodic recall now."""
        wanted = self._get_episodic_context_filter(self.state)
        return None if wanted is None else dict(wanted)

    async def retrieve_ltms(self, memory: LongTermMemory, *, k: int) -> Recall:
        """What long-term memory holds on the current situation, best first.

        The domain's filter applies to episodic memory; facts of semantic memory hold anywhere.
        """
        where = self.episodic_filter()
        return await memory.recall(self.retrieval_query(), k=k, episodic_where=where)

    def memory_metadata(self) -> dict[str, str | int | float | bool]:
        """Metadata for records written now."""
        return dict(self._get_memory_metadata(self.state))

    def procedure_values(self) -> Mapping[str, str]:
        """Values for the placeholders of procedures."""
        return self._get_procedure_values()

    def propose_grounded(self) -> Sequence[Candidate] | None:
        """The legal candidates now, or None where the domain does not list them."""
        return self._propose_grounded(self.state)

    def progress_key(self) -> str:
        """What must change for a failed action to be worth repeating."""
        return self._progress_key(self.state)

    def differs_from(self, projection: Mapping[str, Any]) -> tuple[str, ...]:
        """Fields in which the state is not as predicted; none where nothing that counts differs.

        What counts is what the domain's progress key is made from.
        """
        foreseen = load_state(self.perceptual_state_schema, projection)
        if self._progress_key(foreseen) == self.progress_key():
            return ()
        return tuple(sorted(diff_patch(projection, self._memory.perceptual_state)))

    async def reconcile(self, action: UnsettledAction) -> Reconciliation:
        """What the domain can find out about an action of unknown outcome."""
        return await self._reconcile(action)

    # ---- what candidates lead to ----

    @property
    def has_forward_model(self) -> bool:
        """Whether the domain predicts what candidates lead to; its prediction may fail."""
        return type(self)._project is not DomainHooks._project  # pyright: ignore[reportUnknownMemberType] - of any state

    def project(self, candidate: Candidate) -> StateT | None:
        """The predicted state after a candidate, or None without a forward model."""
        return self._project(candidate, self.state)

    def predict(self, candidate: Candidate, state: StateT) -> StateT | None:
        """The state that a candidate would lead to from a given one; for tests of rules."""
        return self._project(candidate, state)

    def gain(self, projection: StateT) -> float | None:
        """How much nearer the goal the predicted state is, -1 to 1; None without a value."""
        before, after = self._value(self.state), self._value(projection)
        if before is None or after is None:
            return None
        return max(-1.0, min(1.0, round(after - before, 3)))

    def _describe_predictions(self, evaluations: Sequence[Evaluation]) -> dict[str, str]:
        """The predicted states of surviving candidates in the domain's words, by id."""
        own = type(self)._get_prediction_description is not DomainHooks._get_prediction_description  # pyright: ignore[reportUnknownMemberType] - of any state
        return {
            judged.candidate_id: self._get_prediction_description(
                load_state(self.perceptual_state_schema, judged.projection)
            )
            if own
            else self._shown_prediction(judged.projection)
            for judged in evaluations
            if judged.survived and judged.projection is not None
        }

    def _shown_prediction(self, projection: Mapping[str, Any]) -> str:
        """A predicted state as JSON; of a lean prompt only what will be different."""
        if not self.lean:
            return json.dumps(projection, ensure_ascii=False)
        now = self._memory.perceptual_state
        news = {name: value for name, value in projection.items() if now.get(name) != value}
        return json.dumps(news, ensure_ascii=False) if news else "as now"

    # ---- what a percept will change, known before it is taken in ----

    def foresee_percept(self, percept: Percept) -> Percept:
        """The percept as `perceive` will take it in: with what it changes, settles and opens."""
        percept = self._with_person(self._read(percept))
        opens = percept.kind is PerceptKind.MESSAGE and (
            self._opens_goal(percept)
            or (self._memory.leaves_person(percept) and bool(percept.content))
        )
        return percept.model_copy(update={"sets_goal": True}) if opens else percept

    def read(self, percepts: Iterable[Percept]) -> tuple[Percept, ...]:
        """The percepts with the state changes that they will make in this order.

        Working memory stays as it is; `supposing` shows what it will be.
        """
        read: list[Percept] = []
        with self.supposing(()):
            for percept in percepts:
                read.append(self._read(percept))
                self._memory = self._memory.perceive(read[-1])
        return tuple(read)

    @contextmanager
    def supposing(self, percepts: Iterable[Percept]) -> Generator[None]:
        """Within, the state is what it will be once these percepts, which were read, are perceived.

        For judging what runs before they are. Nothing may be awaited within.
        """
        before = self._memory
        try:
            for percept in percepts:
                self._memory = self._memory.perceive(percept)
            yield
        finally:
            self._memory = before

    def _read(self, percept: Percept) -> Percept:
        """The percept with the state change that it makes, and what it settles."""
        if percept.state_patch is not None:
            return percept
        percept = percept.model_copy(update=self._change_by(percept))
        settled = [one.intent_id for one in self._memory.unsettled if self._settled(percept, one)]
        return percept.model_copy(update={"settles": tuple(settled)}) if settled else percept

    def _change_by(self, percept: Percept) -> dict[str, Any]:
        hook = {
            PerceptKind.TOOL_RETURN: self._update_state_from_function_result,
            PerceptKind.UNKNOWN_OUTCOME: self._update_state_from_unknown_outcome,
            PerceptKind.SETTLED: self._update_state_from_settlement,
            PerceptKind.PROPERTY_CHANGE: self._update_state_from_percept,
            PerceptKind.SIGNAL: self._update_state_from_percept,
        }.get(percept.kind)
        if hook is None or self._memory.of_another(percept):  # it is no matter of this state
            return {"state_patch": {}}
        ours = getattr(hook, "__func__", None) is vars(DomainHooks).get(_ONLY_READS)
        try:  # with a copy, or what a domain does to it would change the trace
            shown = percept if ours else percept.model_copy(deep=True)
            after = checked_dump(hook(self.state, shown))
        except Exception as error:  # the domain's own code; what it raised stays in the percept
            problem = (
                f"{hook.__name__} raised {type(error).__name__}: {error}; "
                f"percept {percept.id} from {percept.source!r} changed no state."
            )
            return {"state_patch": {}, "hook_problem": problem}
        return {"state_patch": diff_patch(self._memory.perceptual_state, after)}

    def _settled(self, percept: Percept, action: UnsettledAction) -> bool:
        if percept.kind is PerceptKind.SETTLED:
            return percept.caused_by == action.intent_id and percept.settlement is not None
        try:
            return self._settles(percept.model_copy(deep=True), action.model_copy(deep=True))
        except Exception:  # a domain's hook: what it cannot say stays unknown, the safe side
            return False


class CoagContext(MemoryOwner[StateT], ContextComponent, Generic[StateT]):
    """Structured working memory for one agent (CoAG §2 and A.1), to be subclassed per domain.

    It owns the current `WorkingMemory`; `perceive` and `commit` are the only writers. A domain
    names its state in brackets (`class DeskContext(CoagContext[Desk])`) and overrides what it
    needs of the hooks in `coag/context/hooks.py`, whose names begin with an underscore.

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
    default_budgets: ClassVar[Budgets] = Budgets()
    """The budgets where none are given."""

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
        self.rendering = Rendering(rendering)
        self.budgets = budgets or self.default_budgets
        self.clock: Clock = clock or SystemClock()
        self.ids = ids or CountingIds()
        self.agent_name = ""
        """The agent's name, the source of its messages where they are read as AutoGen's."""
        self.dialogue_source = dialogue
        self.images = Images()
        self.archive = DialogueArchive()
        """What was said before the dialogue that is kept."""
        self.originals = Originals()
        """Texts of which a prompt shows a part."""
        self.on_added: TakeIn | None = None
        """Takes in added messages, e.g. with a record in a trace; an agent sets it."""
        self._adding = False
        self._activity = activity
        self._own_calls: deque[str] = deque(maxlen=OWN_CALLS)
        self._renderer = Renderer(self.budgets, self.rendering, self.originals)
        self._shown: tuple[Utterance, ...] | None = None
        self._prompt: Prompt | None = None
        self._dialogue_is_anothers = False
        """Whether the foreign context still holds what was said by somebody served before."""
        self._memory = self._fresh_memory()
        # As it was said: with tool calls and their results, which working memory keeps as text.
        self._transcript: deque[LLMMessage] = deque(maxlen=DIALOGUE_LIMIT)
        for message in initial_messages or ():
            self._take_in(message)

    # ---- what the cycle calls ----

    def perceive(self, percept: Percept) -> Percept:
        """Takes in a percept and returns it with the state change that the hook computed.

        Where the hook raises, `hook_problem` says so in the returned percept, and working memory
        is `stale` from then on.
        """
        percept = self.foresee_percept(percept)
        is_message = percept.kind is PerceptKind.MESSAGE and not self._adding
        self._become(self._memory.perceive(percept), percept, is_message=is_message)
        self.images.keep(percept.images, self._memory)
        if is_message:
            self._transcript += dialogue_messages(self._memory.dialogue[-1:])
        return percept

    def commit(self, outcome: Outcome) -> None:
        """Takes in a phase's outcome; the next phase reads the result.

        Raises:
            PhaseViolation: It is not this phase's turn.
        """
        self._become(self.foresee(outcome), outcome)
        self._foreseen = None
        if isinstance(outcome, ExecutionOutcome) and outcome.response is not None:
            thought = self._memory.cognitive_state.thought
            self._transcript += dialogue_messages(
                self._memory.dialogue[-1:], self.agent_name, thought
            )

    def _become(
        self, after: WorkingMemory, event: Percept | Outcome, *, is_message: bool = False
    ) -> None:
        """Takes the next value; archives what has left the dialogue.

        Where somebody else is served from an event on, all that working memory dropped is
        forgotten. A new message is not yet in the transcript (`is_message`).
        """
        before, self._memory = self._memory, after
        if after.earlier is not before.earlier:
            now = set(map(id, after.dialogue))
            self.archive.add(one for one in before.dialogue if id(one) not in now)
        if before.leaves_person(event):
            self.restore(after)
            if is_message:
                self._transcript.pop()
            self._shown = None
            self._dialogue_is_anothers = self.dialogue_source is not None

    def _memory_shown(self) -> WorkingMemory:
        if self._shown is None:
            return self._memory
        return self._memory.model_copy(update={"dialogue": self._shown})

    def build_prompt(self, phase: Phase, material: PhaseMaterial) -> Prompt:
        """The prompt of a phase; `get_messages` shows it until the cycle ends."""
        if material.evaluations:
            predictions = self._describe_predictions(material.evaluations)
            material = replace(material, predictions=predictions)
        self._renderer.lean = self.lean
        prompt = self._build_prompt_for_phase(phase, material)
        self._prompt = self.images.put_into(prompt, phase, self._memory_shown())
        return self._prompt

    # ---- what its agent sets and asks: the model's window, and another context's dialogue ----

    def fitting(self, text: str) -> str:
        """A message as far as a prompt could hold it, with a way to the rest."""
        most = self._memory.limits.prompt * BYTES_PER_TOKEN
        return text if len(text) <= most else shortened(text, most, self.originals.keep(text))

    def reading_more(self) -> ReadMore:
        """The action that shows what was cut or has left the dialogue."""
        return ReadMore(
            self.originals,
            self.archive,
            lambda: self._memory,
            lambda: self.output_characters // 2,
        )

    def note_own_calls(self, ids: Iterable[str]) -> None:
        """The foreign context was given these calls; prompts show them as the agent's actions."""
        self._own_calls.extend(ids)

    async def refresh_dialogue(self) -> None:
        """Asks the foreign context, where there is one, which messages to show."""
        source = await self._foreign()
        if source is not None:
            messages = without_calls(await source.get_messages(), self._own_calls)
            spoken = utterances(messages, self.clock.now(), self.images.named)
            self._shown = tuple(one for one, _ in spoken)

    async def _foreign(self) -> ChatCompletionContext | None:
        """The foreign context, which has forgotten what working memory dropped."""
        source = self.dialogue_source
        if source is not None and self._dialogue_is_anothers:
            await source.clear()
            for message in dialogue_messages(self._memory.dialogue, self.agent_name):
                await source.add_message(message)
            self._dialogue_is_anothers = False
        return source

    def strangers_shown(self) -> frozenset[str]:
        """Who says something untrusted in the dialogue that a foreign context decides to show."""
        utterances = self._shown or ()
        return frozenset(one.source for one in utterances if one.trust is Trust.UNTRUSTED)

    # ---- AutoGen's context API ----

    async def add_message(self, message: LLMMessage) -> None:
        """Takes in a message as a percept; the agent's own ones as part of the dialogue."""
        if self.dialogue_source is not None:
            await self.dialogue_source.add_message(message)
        if self.on_added is None:
            self._take_in(message)
            return
        with self._percepts_of(message) as percepts:
            await self.on_added(percepts)

    def _take_in(self, message: LLMMessage) -> None:
        with self._percepts_of(message) as percepts:
            for percept in percepts:
                self.perceive(percept)

    @contextmanager
    def _percepts_of(self, message: LLMMessage) -> Generator[list[Percept]]:
        """What is perceived of a message; within, it is in the transcript already."""
        self._transcript.append(message)
        spoken = utterances([message], self.clock.now(), self.images.named)
        self._adding = True
        try:
            yield [
                Percept(
                    id=self.ids("percept"),
                    at=one.at,
                    kind=PerceptKind.MESSAGE,
                    source=one.source,
                    trust=one.trust,
                    content=one.content,
                    images=dict(images),
                )
                for one, images in spoken
            ]
        finally:
            self._adding = False

    async def get_messages(self) -> list[LLMMessage]:
        """Within a cycle the current phase's prompt; outside one the dialogue, its newest part."""
        if self._memory.in_cycle and self._prompt is not None:
            return prompt_messages(self._prompt)
        source = await self._foreign()
        return self._plain_transcript() if source is None else await source.get_messages()

    def _plain_transcript(self) -> list[LLMMessage]:
        """The transcript; results whose calls are not kept any more are left out."""
        return list(
            dropwhile(lambda m: isinstance(m, FunctionExecutionResultMessage), self._transcript)
        )

    async def clear(self) -> None:
        """Clears the activity, but for actions of unknown outcome; long-term memory stays."""
        unsettled = self._memory.unsettled
        self.restore(self._fresh_memory().model_copy(update={"unsettled": unsettled}))
        self._shown = None
        self._dialogue_is_anothers = False
        self.images.load({})
        if self.dialogue_source is not None:
            await self.dialogue_source.clear()

    async def save_state(self) -> Mapping[str, Any]:
        """The working memory as JSON, with the plain messages that any AutoGen context reads.

        Where another context decides what is shown, they are its state.
        """
        source = await self._foreign()
        other: Mapping[str, Any] = {} if source is None else await source.save_state()
        own = {
            "working_memory": self._memory.to_json(),
            "images": self.images.save(),
            "archive": self.archive.save(),
        }
        messages = [m.model_dump(mode="json") for m in self._plain_transcript()]
        return {"messages": messages, **other, **{name: held for name, held in own.items() if held}}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """Continues from a saved state; a plain AutoGen context's state becomes percepts.

        Raises:
            StateError: The saved perceptual state does not fit this context's schema.
        """
        if "working_memory" in state:
            memory = WorkingMemory.model_validate(state["working_memory"])
            load_state(self.perceptual_state_schema, memory.perceptual_state)
            self._dialogue_is_anothers = False
            if self.dialogue_source is not None:
                other = {name: held for name, held in state.items() if name not in _OWN_STATE}
                await self.dialogue_source.load_state(other)
            self.restore(memory.model_copy(update={"limits": self._memory.limits}))
            self.images.load(state.get("images", {}))
            self.archive.load(state.get("archive", ()))
            if self.dialogue_source is None and "messages" in state:
                self._transcript.clear()
                self._transcript += _LLM_MESSAGES.validate_python(state["messages"])
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
        self._transcript.clear()
        self._transcript += dialogue_messages(memory.dialogue, self.agent_name)
        self.archive.clear()
        self.originals.clear()
        self._prompt = None

    def restore_dialogue(self, entries: Sequence[Percept | ExecutionOutcome]) -> None:
        """Takes in what was said in a trace: the messages, and the outcomes with an answer."""
        memory = self._memory
        count = 0 if memory.earlier is None else memory.earlier.messages
        end = max(0, len(entries) - len(memory.dialogue))
        self.archive.clear()
        self.archive.add(map(said_in, entries[max(0, end - count) : end]))

    def _named_arguments(self) -> dict[str, Any]:
        """The given arguments; all that count, where no subclass's constructor decides."""
        kinds = type(self).__mro__
        decided = any("__init__" in vars(kind) for kind in kinds[: kinds.index(CoagContext)])
        own = {"rendering": self.rendering, "budgets": self.budgets, "activity": self._activity}
        return super()._named_arguments() | ({} if decided else own)
