"""The actions by which an agent remembers and rewrites."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coag.errors import ProcedureRejected, RecordStoreError, UnknownNameError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Event,
    Fact,
    Failure,
    MemoryKind,
    PerceptKind,
    Provenance,
    Record,
    Scalar,
    Trust,
    Written,
    one_line,
)
from coag.store import Search, short_id

from .facts import CONCLUSION, takes_on
from .long_term import LongTermMemory
from .procedural import ProceduralMemory
from .procedures import PendingRewrite, RuleChange, rules_of, source_origin
from .words import quotes, restates


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class _RecordArguments(_Arguments):
    scope: str = Field(
        default="", max_length=200, description="Whose memory to write to; left out, your own."
    )


class _EpisodicArguments(_RecordArguments):
    summary: str = Field(
        min_length=1, max_length=500, description="What happened, where and with what result."
    )
    type: str = Field(
        default="note", min_length=1, max_length=40, description="One word for the sort of event."
    )
    about: str = Field(default="", max_length=80, description="Thing or place it is about.")


class _SemanticArguments(_RecordArguments):
    fact: str = Field(
        min_length=1, max_length=500, description="One fact that will still hold later."
    )
    about: str = Field(default="", max_length=80, description="Thing or place it is about.")
    supersedes: str = Field(
        default="", max_length=40, description="Id of the remembered fact that it replaces."
    )
    attribute: str = Field(
        default="", max_length=80, description="Which property of that thing; with about and value."
    )
    value: str = Field(
        default="", max_length=200, description="What the property is; another one replaces it."
    )

    def as_fact(self) -> Fact | None:
        """The fact in parts; None if it is in words only, an error if some parts are missing."""
        if not self.attribute and not self.value:
            return None
        if not (self.about and self.attribute and self.value):
            raise ValueError(
                "Give about, attribute and value together, or neither of the last two."
            )
        return Fact(subject=self.about, attribute=self.attribute, value=self.value)


class _ProceduralArguments(_Arguments):
    procedure: str = Field(description="Which procedure to change.")
    reason: str = Field(min_length=1, max_length=300, description="What went wrong or well.")
    operation: Literal["add", "replace", "remove"] = Field(
        description="What to do with a standing rule."
    )
    rule: str = Field(
        default="", max_length=300, description="The rule: one sentence in your own words."
    )
    number: int = Field(
        default=0, ge=0, le=99, description="Number of the rule to replace or remove."
    )


def _json_schema(arguments: type[_Arguments], choice: str, values: Sequence[str]) -> dict[str, Any]:
    """The JSON schema of the arguments, without titles, `scope` last.

    One property has a choice of values that are known only now; where there is none and it may be
    left out, it is not shown.
    """
    schema = arguments.model_json_schema()
    properties, required = schema["properties"], schema["required"]
    for one in properties.values():
        del one["title"]
    chosen = properties.pop(choice) | {"enum": list(values)}
    if choice in required:
        properties = {choice: chosen, **properties}
    elif len(values) > 1:
        properties[choice] = chosen
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


USER = "user"
"""The name under which the user speaks, in AutoGen's messages and in provenances."""

_PLACES = ("place", "location", "position", "room", "cell")
"""Keys of a domain's metadata that say where the agent is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySituation:
    """The few facts about the moment in which an agent remembers something."""

    run: str
    activity: str
    cycle: int
    agent: str
    """Name of the agent: source of its own conclusions, author of its rewrites."""
    metadata: dict[str, Scalar] = field(default_factory=dict[str, Scalar])
    """What the domain adds to every record made now, e.g. the position."""
    event: Event | None = None
    """What happens now: it is part of every record made now. Not shown to models."""
    recalled: tuple[Record, ...] = ()
    """What was recalled in this cycle."""
    untrusted: tuple[str, ...] = ()
    """Untrusted texts that the activity was shown, as far as they are kept."""
    sources: tuple[str, ...] = ()
    """Tools, senders and sensors whose untrusted text the activity was shown."""
    records: tuple[str, ...] = ()
    """Ids of the untrusted records that the activity was shown."""
    said: tuple[str, ...] = ()
    """What the user said."""
    apart: bool = False
    """Whether many people are served, whose memories are kept apart: a rule holds for them all."""
    trust: Trust = Trust.USER
    """Trust of the agent's own conclusions where nothing untrusted was shown. None may have the
    trust of a developer's word."""

    def __post_init__(self) -> None:
        if self.trust is Trust.DEVELOPER:
            raise ValueError(
                "What a model concludes must not be an instruction: "
                "trust is Trust.USER or Trust.UNTRUSTED."
            )

    @property
    def tainted(self) -> bool:
        """Whether the activity was shown untrusted text, so that what it concludes is that too."""
        return bool(self.untrusted or self.sources or self.records)

    def states_user(self, text: str, *parts: str) -> bool:
        """Whether a text says what the user said himself, and the parts name nothing else."""
        return restates(text, self.said, *parts)

    def provenance(self, text: str, *parts: str) -> Provenance:
        """Where a conclusion of the agent in these words comes from.

        What the user said himself stems from him. All else is the agent's, and untrusted if the
        activity was shown untrusted text, whatever the words: trust follows derivation.
        """
        own = self.states_user(text, *parts)
        tainted = self.tainted and not own
        return Provenance(
            run=self.run,
            activity=self.activity,
            cycle=self.cycle,
            source=USER if own else self.agent,
            source_kind=PerceptKind.MESSAGE.value if own else CONCLUSION,
            trust=Trust.UNTRUSTED if tainted else self.trust,
            shown=self.sources if tainted else (),
        )

    def happening(self) -> Event | None:
        """What happens now, in the agent's own words only."""
        if self.event is None or not quotes(self.event.situation, self.untrusted):
            return self.event
        return self.event.model_copy(update={"situation": ""})

    def grounds(self, *texts: str) -> tuple[str, ...]:
        """Ids of the records on which a conclusion in these words depends.

        Those recalled in this cycle that it quotes, and every untrusted one that the activity was
        shown: one may say in other words what such a record made one believe. What the user said
        themselves depends on none.
        """
        if self.states_user(*texts):
            return ()
        said = [text for text in texts if text]
        on = (
            record.id
            for record in self.recalled
            if record.provenance.trust is Trust.UNTRUSTED
            or any(quotes(text, [record.text]) for text in said)
        )
        return tuple(dict.fromkeys((*on, *self.records)))


def place_of(metadata: Mapping[str, Scalar]) -> str:
    """Where the agent is, as far as a domain's metadata say; else empty."""
    named = (metadata[key] for key in _PLACES if key in metadata)
    place = next((str(value) for value in named if not isinstance(value, bool)), "")
    grid = f"({metadata['x']},{metadata['y']})" if {"x", "y"} <= metadata.keys() else ""
    return place or grid


EPISODIC_ACTION = "tool_update_episodic_memory"
SEMANTIC_ACTION = "tool_update_semantic_memory"
PROCEDURAL_ACTION = "tool_update_procedural_memory"
_ALIKE = 5
"""Records of each kind that are looked through for what a conclusion quotes."""
_Runs = Callable[[ActionCall, LongTermMemory], Awaitable[ActionResult]]
"""Runs an action on the memory as it is now."""
MEMORY_ACTIONS = frozenset({EPISODIC_ACTION, SEMANTIC_ACTION, PROCEDURAL_ACTION})


class MemoryActions:
    """An `ActionSource`: remember an event, a fact, or a rule of one's own.

    Args:
        long_term: Where events and facts go.
        procedural: Where rules go.
        situation: Returns the present moment; called for every action.
        narrowed: Gives the memory as it is now for the person who is served.
        on_written: Called at each commit, right after it; writes it to the trace.
        rewriting: Whether the agent may change its standing rules.
        remembering: Whether it may remember events and facts.
    """

    def __init__(
        self,
        long_term: LongTermMemory,
        procedural: ProceduralMemory,
        situation: Callable[[], MemorySituation],
        *,
        narrowed: Callable[[LongTermMemory], LongTermMemory] = lambda memory: memory,
        on_written: Callable[[Written], None] | None = None,
        rewriting: bool = True,
        remembering: bool = True,
    ) -> None:
        self._whole = long_term
        self._narrowed = narrowed
        self._procedural = procedural
        self._situation = situation
        self._on_written = on_written
        self._offered: tuple[object, tuple[ActionSpec, ...]] | None = None
        """The actions, and the scopes and procedures that they name."""
        self._actions: dict[str, _Runs] = {}
        if remembering:
            self._actions[EPISODIC_ACTION] = self._remember_event
            self._actions[SEMANTIC_ACTION] = self._remember_fact
        if rewriting:
            self._actions[PROCEDURAL_ACTION] = self._change_rule

    def action_specs(self) -> Sequence[ActionSpec]:
        """The actions that are offered; the procedures are listed as they are named now."""
        named = (self._narrowed(self._whole).scopes.writable, tuple(self._procedural.names()))
        if self._offered is None or self._offered[0] != named:
            specs = _specs(*named)
            self._offered = named, tuple(spec for spec in specs if spec.name in self._actions)
        return self._offered[1]

    async def run_action(self, call: ActionCall) -> ActionResult:
        """Runs one of the actions; what goes wrong is in the result.

        Raises:
            UnknownNameError: If the action is none of these.
        """
        if call.action not in self._actions:
            raise UnknownNameError("memory action", call.action, self._actions)
        try:
            return await self._actions[call.action](call, self._narrowed(self._whole))
        except ValidationError as error:
            wrong = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            problem, failure = "; ".join(wrong), Failure.DETERMINISTIC
        except (ValueError, UnknownNameError) as error:
            problem, failure = str(error), Failure.DETERMINISTIC
        except ProcedureRejected as error:
            problem, failure = f"Refused: {' '.join(error.reasons)}", Failure.DETERMINISTIC
        except RecordStoreError as error:
            problem, failure = str(error), Failure.TRANSIENT
        return ActionResult(content=problem, is_error=True, failure=failure)

    async def _remember_event(self, call: ActionCall, memory: LongTermMemory) -> ActionResult:
        given = _EpisodicArguments.model_validate(call.arguments)
        now = self._situation()
        return await self._remembered(
            memory,
            now,
            given,
            kind=MemoryKind.EPISODIC,
            text=given.summary,
            provenance=now.provenance(given.summary, given.about),
            type=given.type,
            derived_from=[one.id for one in await self._grounds(memory, now, given.summary)],
        )

    async def _remember_fact(self, call: ActionCall, memory: LongTermMemory) -> ActionResult:
        given = _SemanticArguments.model_validate(call.arguments)
        fact, now = given.as_fact(), self._situation()
        old = await self._superseded(memory, given)
        parts = (given.about, given.attribute, given.value)
        grounds = await self._grounds(memory, now, given.fact, *parts)
        return await self._remembered(
            memory,
            now,
            given,
            kind=MemoryKind.SEMANTIC,
            text=given.fact,
            provenance=now.provenance(given.fact, *parts),
            fact=fact,
            supersedes=old,
            derived_from=[o.id for o in grounds if o.id != old and not takes_on(fact, o)],
        )

    async def _grounds(
        self, memory: LongTermMemory, now: MemorySituation, text: str, *parts: str
    ) -> list[Record]:
        """Those of the records on which a conclusion depends that this memory holds.

        Where untrusted text was shown, those that it quotes are among them, recalled or not: an
        earlier note of the same activity may hold what the agent repeats.
        """
        ids = list(now.grounds(text, *parts))
        if now.tainted and not now.states_user(text, *parts):
            for kind in MemoryKind:
                search = Search(text=text, kind=kind, k=_ALIKE, scopes=memory.scopes.readable)
                hits = await memory.store.search(search)
                ids += [hit.record.id for hit in hits if quotes(text, [hit.record.text])]
        held = await memory.store.get(list(dict.fromkeys(ids))) if ids else []
        return [record for record in held if record.scope in memory.scopes.readable]

    async def _superseded(self, memory: LongTermMemory, given: _SemanticArguments) -> str | None:
        if not given.supersedes:
            return None
        old = await memory.find(MemoryKind.SEMANTIC, given.supersedes)
        if old is None:
            raise ValueError(f"No fact with the id {given.supersedes!r} is remembered.")
        scope = memory.scopes.to_write(given.scope or None)
        if old.scope != scope:
            raise ValueError(
                f"Fact {given.supersedes} is of scope {old.scope!r}; this one, of {scope!r}, "
                "cannot replace it."
            )
        if old.text == given.fact:
            raise ValueError(f"Fact {given.supersedes} says the same.")
        return old.id

    async def _change_rule(self, call: ActionCall, memory: LongTermMemory) -> ActionResult:
        del memory
        given = _ProceduralArguments.model_validate(call.arguments)
        now = self._situation()
        own = bool(given.rule) and now.states_user(given.rule)
        sources = () if own else now.sources
        made = self._procedural.change_rule(
            given.procedure,
            RuleChange(operation=given.operation, rule=given.rule, number=given.number),
            author=now.agent,
            reason=given.reason,
            cycle=now.cycle,
            untrusted=() if own else now.untrusted,
            tainted=now.apart or (now.tainted and not own),
            origins=(*now.grounds(given.rule), *map(source_origin, sources)),
        )
        if isinstance(made, PendingRewrite):
            text = f"The change of procedure {given.procedure!r} waits for approval ({made.id})."
            if now.apart:
                text += " It would hold for everybody whom you serve."
            elif now.tainted:
                text += " It was made after text from outside was shown."
            return ActionResult(content=text, data={"pending": made.id})
        self._written(made.written(given.procedure))
        listed = " ".join(f"{n}. {rule}" for n, rule in enumerate(rules_of(made.text), start=1))
        return ActionResult(
            content=f"Procedure {given.procedure!r} is now version {made.version}, in force from "
            f"the next cycle. Standing rules: {listed or 'none'}",
            data={"procedure": given.procedure, "version": made.version},
        )

    async def _remembered(
        self,
        memory: LongTermMemory,
        now: MemorySituation,
        given: _EpisodicArguments | _SemanticArguments,
        **what: Any,
    ) -> ActionResult:
        about = {"about": given.about} if given.about else {}
        remembered = await memory.remember(
            **what,
            metadata={**now.metadata, **about},
            sensed=True,
            event=now.happening(),
            scope=given.scope or None,
        )
        record = remembered.record
        if remembered.new:
            self._written(remembered.written())
        name = f"({record.kind.value}, id {short_id(record.id)})"
        if record.superseded_by is not None and remembered.new and not remembered.merged:
            said = f"Remembered {name} as what held before {short_id(record.superseded_by)}"
        elif record.superseded_by is not None:
            said = f"Known {name}, but superseded by {short_id(record.superseded_by)}; to restore"
            said += " it, name that id in supersedes"
        else:
            said = f"{'Remembered' if remembered.new else 'Known already'} {name}"
        data: dict[str, Any] = {"id": record.id, "new": remembered.new}
        if remembered.decision is not None:
            data["decision"] = remembered.decision.kind.value
        content = [f"{said}: {record.text}"]
        if remembered.decision is not None and said.startswith("Known already"):
            content.append(str(remembered.decision))
        if record.fact is not None and remembered.superseded:
            old = ", ".join(map(short_id, remembered.superseded))
            content.append(f"It takes the place of {old}.")
            data["superseded"] = list(remembered.superseded)
        if remembered.contradicts:
            others = await memory.store.get(remembered.contradicts)
            content += [f"It contradicts {short_id(o.id)}: {one_line(o.text)}" for o in others]
            content.append("That is trusted more; both are kept.")
            data["contradicts"] = list(remembered.contradicts)
        return ActionResult(content="\n".join(content), data=data)

    def _written(self, written: Written) -> None:
        if self._on_written is not None:
            self._on_written(written)


@lru_cache(maxsize=64)  # most agents of a process are offered the same
def _specs(scopes: tuple[str, ...], procedures: tuple[str, ...]) -> tuple[ActionSpec, ...]:
    offered = (
        (
            EPISODIC_ACTION,
            "Remember something that happened and may matter later.",
            _json_schema(_EpisodicArguments, "scope", scopes),
        ),
        (
            SEMANTIC_ACTION,
            "Remember a fact that will still hold later.",
            _json_schema(_SemanticArguments, "scope", scopes),
        ),
        (
            PROCEDURAL_ACTION,
            "Add, replace or remove a standing rule of how you think and act.",
            _json_schema(_ProceduralArguments, "procedure", procedures),
        ),
    )
    return tuple(
        ActionSpec(
            name=name, description=text, parameters=parameters, internal=True, repeatable=True
        )
        for name, text, parameters in offered
    )
