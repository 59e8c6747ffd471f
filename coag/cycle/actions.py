"""The whole action space of a cycle, and the guard that nothing acts outside Execution."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from coag.errors import PhaseViolation
from coag.schema import (
    ActionCall,
    ActionResult,
    ActionSource,
    ActionSpace,
    ActionSpec,
    CompletesArguments,
    Phase,
)

from .arguments import with_defaults

RESPOND = ActionSpec(
    name="respond",
    description="Give your answer to the user and end this turn.",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The answer."}},
        "required": ["text"],
    },
    internal=True,
    repeatable=True,
)
"""The internal action that ends a turn with an answer; offered in every Proposal."""


def respond_spec(answer_type: type[BaseModel] | None) -> ActionSpec:
    """The action that answers in the form of a type; with None, in text."""
    if answer_type is None:
        return RESPOND
    schema = answer_type.model_json_schema()
    return RESPOND.model_copy(update={"parameters": {"type": "object", **schema}})


class NoActions:
    """An external action space without actions."""

    async def specs(self) -> Sequence[ActionSpec]:
        """None."""
        return ()

    async def execute(self, call: ActionCall) -> ActionResult:
        """Never reached by a cycle: Evaluation rejects actions that do not exist."""
        raise PhaseViolation(f"There is no external action {call.action!r} to execute.")


class GuardedActions:
    """External actions, internal ones and `respond`, behind one door that opens in Execution.

    Listing actions can be dear (schemas, a workbench in another process), so within a cycle it
    is done twice: when they are first asked for, and anew before one is executed.

    Args:
        external: The environment's actions (tools).
        sources: Bring internal actions: memory, modules.
        respond: The action that answers, where the answer has another form than a text.
        keep: Is given the whole of each output that was cut.
    """

    def __init__(
        self,
        external: ActionSpace | None = None,
        sources: Sequence[ActionSource] = (),
        *,
        respond: ActionSpec = RESPOND,
        keep: Callable[[str], object] = lambda output: None,
    ) -> None:
        self._keep = keep
        self._external: ActionSpace = external or NoActions()
        own = self._external
        self._completes = own if isinstance(own, CompletesArguments) else None
        self._sources = tuple(sources)
        self.respond = respond
        self.closing = False
        """True while the turn may only be answered: nothing else is offered."""
        self.outputs: dict[str, str] = {}
        """Whole outputs of this cycle's actions, by call, where they were cut."""
        self.running: dict[str, ActionCall] = {}
        """Calls that have begun and not ended; of a loaded state, those it was saved with."""
        self._phase: Phase | None = None
        self._listed: Mapping[str, ActionSpec] | None = None
        self.problems: tuple[str, ...] = ()
        """What the last listing left out, and why."""

    def over(
        self, external: ActionSpace, around: Callable[[ActionSource], ActionSource]
    ) -> GuardedActions:
        """The same actions in another environment, with something around the internal ones.

        Args:
            external: The environment's actions.
            around: Gives what stands in the place of each source of internal actions.
        """
        return GuardedActions(external, [around(s) for s in self._sources], respond=self.respond)

    def enter(self, phase: Phase | None) -> None:
        """Tells which phase runs now; None between cycles."""
        self._phase = phase
        if phase in (None, Phase.RETRIEVAL, Phase.EXECUTION):
            self._listed = None
        if phase is Phase.RETRIEVAL:
            self.outputs.clear()

    async def specs(self) -> Mapping[str, ActionSpec]:
        """Every action by name, external ones first; none takes over an internal one's name."""
        if self._listed is not None:
            return self._listed
        if self.closing:
            return {RESPOND.name: self.respond}
        internal: dict[str, ActionSpec] = {}
        for source in self._sources:
            for spec in source.action_specs():
                own = spec if spec.internal else spec.model_copy(update={"internal": True})
                internal.setdefault(spec.name, own)
        internal.pop(RESPOND.name, None)
        internal[RESPOND.name] = self.respond
        external = {spec.name: spec for spec in await self._external.specs()}
        shown: Sequence[str] = getattr(self._external, "problems", ())
        taken = [name for name in external if name in internal]
        self.problems = (
            *shown,
            *(f"A tool is named {name!r}; the agent's own action stays." for name in taken),
        )
        retained = {name: spec for name, spec in external.items() if name not in internal}
        result = {**retained, **internal}
        if self._phase is not None:
            self._listed = MappingProxyType(result)
        return result

    def complete(self, spec: ActionSpec, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with defaults and conversions, exactly as the action will get them.

        Raises:
            ValueError: The action would not take them.
        """
        if not spec.internal and self._completes is not None:
            return self._completes.complete(spec, arguments)
        return with_defaults(arguments, spec.parameters)

    async def execute(self, call: ActionCall) -> ActionResult:
        """Runs the selected action.

        Raises:
            PhaseViolation: Another phase than Execution asks for it (invariant 1).
        """
        if self._phase is not Phase.EXECUTION:
            now = self._phase.value if self._phase else "no phase"
            raise PhaseViolation(
                f"{call.action!r} was to be run in {now}; actions run in execution only."
            )
        self.running[call.id] = call
        try:
            result = await self._run(call)
        finally:
            self.running.pop(call.id, None)
        if result.output is not None:
            self.outputs[call.id] = result.output
            self._keep(result.output)
        return result

    async def _run(self, call: ActionCall) -> ActionResult:
        spec = (await self.specs()).get(call.action)
        if spec is not None and not spec.internal:
            return await self._external.execute(call)
        if call.action == RESPOND.name:
            return ActionResult(content=self._answer(call), ends_turn=True)
        for source in self._sources:
            if any(offered.name == call.action for offered in source.action_specs()):
                return await source.run_action(call)
        return await self._external.execute(call)

    def _answer(self, call: ActionCall) -> str:
        if self.respond is RESPOND:
            return str(call.arguments.get("text", ""))
        return json.dumps(call.arguments, ensure_ascii=False)
