"""The internal actions by which an agent decides what is worth remembering."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import ValidationError

from coag.errors import ProcedureRejected, RecordStoreError, UnknownNameError
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSpec,
    Failure,
    MemoryKind,
    Record,
    Scalar,
    Written,
    one_line,
)
from coag.store import Search, short_id

from ._arguments import EpisodicArguments, ProceduralArguments, SemanticArguments, json_schema
from ._facts import takes_on
from ._long_term import LongTermMemory
from ._procedural import ProceduralMemory
from ._procedure import PendingRewrite, ProcedureVersion, source_origin
from ._results import Remembered
from ._rules import RuleChange, rules_of
from ._situation import MemorySituation
from ._words import quotes

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
        situation: Tells what the moment is; asked at every call.
        narrowed: Gives the memory as it is now for the person who is served.
        on_written: Told of each commit, right after it; writes it to the trace.
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
            return _failed(_sentences(error))
        except (ValueError, UnknownNameError) as error:
            return _failed(str(error))
        except ProcedureRejected as error:
            return _failed(f"Refused: {' '.join(error.reasons)}")
        except RecordStoreError as error:
            return _failed(str(error), Failure.TRANSIENT)

    async def _remember_event(self, call: ActionCall, memory: LongTermMemory) -> ActionResult:
        given = EpisodicArguments.model_validate(call.arguments)
        now = self._situation()
        remembered = await memory.remember(
            MemoryKind.EPISODIC,
            given.summary,
            provenance=now.provenance(given.summary, given.about),
            type=given.type,
            metadata=_metadata(now, given.about),
            sensed=True,
            event=now.happening(),
            derived_from=[one.id for one in await self._grounds(memory, now, given.summary)],
            scope=given.scope or None,
        )
        return await self._told(memory, remembered)

    async def _remember_fact(self, call: ActionCall, memory: LongTermMemory) -> ActionResult:
        given = SemanticArguments.model_validate(call.arguments)
        fact, now = given.as_fact(), self._situation()
        old = await self._superseded(memory, given)
        parts = (given.about, given.attribute, given.value)
        grounds = await self._grounds(memory, now, given.fact, *parts)
        grounds = [one for one in grounds if one.id != old and not takes_on(fact, one)]
        remembered = await memory.remember(
            MemoryKind.SEMANTIC,
            given.fact,
            provenance=now.provenance(given.fact, *parts),
            metadata=_metadata(now, given.about),
            sensed=True,
            event=now.happening(),
            fact=fact,
            supersedes=old,
            derived_from=[one.id for one in grounds],
            scope=given.scope or None,
        )
        return await self._told(memory, remembered)

    async def _grounds(
        self, memory: LongTermMemory, now: MemorySituation, text: str, *parts: str
    ) -> list[Record]:
        """Those of the records on which a conclusion rests that this memory holds.

        Where untrusted text was shown, those that it quotes are among them, recalled or not: an
        earlier note of the same activity may hold what the agent repeats.
        """
        ids = list(now.grounds(text, *parts))
        if now.tainted and not now.rests_on_user(text, *parts):
            for kind in MemoryKind:
                search = Search(text=text, kind=kind, k=_ALIKE, scopes=memory.scopes.readable)
                hits = await memory.store.search(search)
                ids += [hit.record.id for hit in hits if quotes(text, [hit.record.text])]
        held = await memory.store.get(list(dict.fromkeys(ids))) if ids else []
        return [record for record in held if record.scope in memory.scopes.readable]

    async def _superseded(self, memory: LongTermMemory, given: SemanticArguments) -> str | None:
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
        given = ProceduralArguments.model_validate(call.arguments)
        now = self._situation()
        own = bool(given.rule) and now.rests_on_user(given.rule)
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
        return ActionResult(
            content=_announcement(given.procedure, made),
            data={"procedure": given.procedure, "version": made.version},
        )

    async def _told(self, memory: LongTermMemory, remembered: Remembered) -> ActionResult:
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


def _specs(scopes: Sequence[str], procedures: Sequence[str]) -> tuple[ActionSpec, ...]:
    kept = {"scope": scopes}
    return (
        ActionSpec(
            name=EPISODIC_ACTION,
            description="Remember something that happened and may matter later.",
            parameters=json_schema(EpisodicArguments, kept),
            internal=True,
            repeatable=True,
        ),
        ActionSpec(
            name=SEMANTIC_ACTION,
            description="Remember a fact that will still hold later.",
            parameters=json_schema(SemanticArguments, kept),
            internal=True,
            repeatable=True,
        ),
        ActionSpec(
            name=PROCEDURAL_ACTION,
            description="Add, replace or remove a standing rule of how you think and act.",
            parameters=json_schema(ProceduralArguments, {"procedure": procedures}),
            internal=True,
            repeatable=True,
        ),
    )


def _metadata(now: MemorySituation, about: str) -> dict[str, Scalar]:
    return {**now.metadata, "about": about} if about else dict(now.metadata)


def _announcement(procedure: str, made: ProcedureVersion) -> str:
    listed = " ".join(f"{n}. {rule}" for n, rule in enumerate(rules_of(made.text), start=1))
    return (
        f"Procedure {procedure!r} is now version {made.version}, in force from the next cycle. "
        f"Standing rules: {listed or 'none'}"
    )


def _failed(problem: str, failure: Failure = Failure.DETERMINISTIC) -> ActionResult:
    return ActionResult(content=problem, is_error=True, failure=failure)


def _sentences(error: ValidationError) -> str:
    """What is wrong with which argument."""
    return "; ".join(
        f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in error.errors()
    )
