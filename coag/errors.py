"""Every error that `coag` raises.

```text
CoagError
├── ConfigurationError      what was given cannot work together
│   ├── UnknownNameError        no such thing; lists what exists
│   ├── MissingCredentialError  a key is not in the environment
│   ├── WindowTooSmallError     task and tools do not fit the model's window
│   └── EmbedderMismatchError   a store was made with another embedder
├── PhaseViolation          something was done in a phase where it must not be
├── TurnInProgressError     an agent was given something while it was in a turn
├── StateError              working memory or perceptual state would become invalid
├── ModelAnswerError        a model's answer stayed unusable after repair and re-ask
├── ModelCallError          the model could not be asked at all; a RuntimeError, too
│   └── ModelTimeoutError       it did not answer in time; a TimeoutError, too
├── ProcedureRejected       the gate of procedural memory refused a rewrite
├── RecordStoreError        a store of records refused or failed
├── SleepInProgressError    the memory of one owner sleeps already
├── ClockJumpError          a sleep comes years after the last use of its memory, or before it
├── TraceError              a trace cannot be written or read
├── ResumeError             a run folder cannot be continued
├── ReplayDivergenceError   something was asked for that the recorded run did not ask for
├── RecordedToolError       a tool's error, raised again out of a recorded run
├── RemoteAgentError        an agent on another worker failed or could not be reached
├── JudgmentError           judgment was given an impossible value, or its state cannot be read
└── AwarenessError          an awareness state would become invalid, or cannot be read
    ├── GoalError               the goal graph refused: no such goal, or a circle
    ├── ObservationError        an observation breaks the schema; says where
    └── StateVersionError       a state was kept by a version that cannot be read
```

Constructors take facts and write the sentence. Misuse of a function (a wrong type, a
number out of range) raises the built-in `TypeError` or `ValueError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path


class CoagError(Exception):
    """The root: `except CoagError` catches every error of this package's own."""


class ConfigurationError(CoagError, ValueError):
    """What was given cannot work together; the message says what to change."""


class UnknownNameError(ConfigurationError):
    """A name was given that nothing has."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        self.what = what
        self.name = name
        self.known: tuple[str, ...] = tuple(sorted(known))
        listed = ", ".join(self.known) or "none"
        super().__init__(f"There is no {what} named {name!r}. Known: {listed}.")


class MissingCredentialError(ConfigurationError):
    """A model provider needs a key that is not in the environment."""

    def __init__(self, provider: str, variable: str) -> None:
        self.variable = variable
        super().__init__(f"{provider} needs a key: set the environment variable {variable}.")


class EmbedderMismatchError(ConfigurationError):
    """A stored collection was made with another embedder than the one given."""

    def __init__(self, *, collection: str, stored: str, given: str) -> None:
        name = stored.partition(" of dimension ")[0]
        super().__init__(
            f"Collection {collection!r} was made with embedder {stored}, but {given} was given. "
            f"Open it with {stored} (one of ours by its name: `open_store(LOCATION, "
            f"embedder={name})`), or make new vectors for its records: `coag memory reembed`."
        )


class WindowTooSmallError(ConfigurationError):
    """What a prompt must hold in full does not fit the model's window; nothing was sent."""

    def __init__(self, parts: Mapping[str, int], room: int, window: int) -> None:
        """Names the sizes.

        Args:
            parts: Tokens of what must be whole, by what it is.
            room: Tokens that a prompt may have.
            window: Tokens of the model's window.
        """
        sizes = ", ".join(f"{name} {size:,}" for name, size in parts.items())
        super().__init__(
            f"The prompt needs about {sum(parts.values()):,} tokens ({sizes}) and may have "
            f"{room:,} of the model's window of {window:,}. Shorten the task or offer fewer tools, "
            "take a model with a larger window, or, if this one's is larger, say so: "
            "model_context=CoagContext(budgets=Budgets(window=...))."
        )
        self.parts, self.room, self.window = dict(parts), room, window

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, int], int, int]]:
        """It can be pickled."""
        return type(self), (self.parts, self.room, self.window)


class PhaseViolation(CoagError):
    """Something was done in a phase where it must not be done, or out of order."""


class TurnInProgressError(CoagError):
    """An agent was given something while it was in a turn.

    Raised to the second caller; or, with `left`, to the reader of a stream that was left and
    taken up again when another turn had ended it.
    """

    def __init__(self, agent: str, *, left: bool = False) -> None:
        self.left = left
        if left:
            super().__init__(
                f"This stream of agent {agent!r} was left and ended by another turn. One agent "
                "takes one turn at a time: read a stream to its end before the next call."
            )
            return
        super().__init__(
            f"Agent {agent!r} is in a turn already. One agent takes one turn at a time: wait "
            "for its response, cancel it, close its stream, or make another agent."
        )


class StateError(CoagError):
    """Working memory or the perceptual state would become invalid."""


class ModelCallError(CoagError, RuntimeError):
    """A model could not be asked: the server refused, was unreachable or closed the connection.

    The client's own error is its cause, and its own type is a base of the error: `except
    openai.RateLimitError` catches it, with its `response` and `status_code`.
    """

    def __init__(self, model: str, reason: str) -> None:
        super().__init__(f"Model {model!r} could not be asked: {reason}")


class ModelTimeoutError(ModelCallError, TimeoutError):
    """A model did not answer in time; `except TimeoutError` catches it, too."""


class ModelAnswerError(CoagError):
    """A model's answer was unusable after repair and after asking once more.

    Attributes:
        raw: The last answer as the model gave it.
        problem: What was wrong with it.
        attempts: How many times the model was asked.
    """

    def __init__(self, *, expected: str, problem: str, raw: str, attempts: int) -> None:
        self.expected = expected
        self.problem = problem
        self.raw = raw
        self.attempts = attempts
        excerpt = raw if len(raw) <= 200 else raw[:200] + "…"
        super().__init__(
            f"No usable {expected} after {attempts} attempt(s): {problem}. Last answer: {excerpt!r}"
        )


class ProcedureRejected(CoagError):
    """The gate of procedural memory refused a rewrite.

    Attributes:
        reasons: One sentence per rule that the rewrite broke.
    """

    def __init__(self, procedure: str, reasons: Sequence[str]) -> None:
        self.procedure = procedure
        self.reasons = tuple(reasons)
        super().__init__(f"The rewrite of procedure {procedure!r} was refused: {' '.join(reasons)}")


class RecordStoreError(CoagError):
    """A store of records refused an operation or could not be reached."""


class SleepInProgressError(CoagError):
    """Somebody sleeps already for the same owner, perhaps in another process."""


class ClockJumpError(CoagError):
    """A sleep comes years after the last use of its memory, or before it: a clock may be wrong."""


class TraceError(CoagError):
    """A trace cannot be written or read."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        super().__init__(f"{path}: {problem}")


class ResumeError(CoagError):
    """A run folder cannot be continued."""


class ReplayDivergenceError(CoagError):
    """Something was asked for that the recorded run did not ask for, or not once more.

    Attributes:
        what: `request` or `tool call`.
        number: Its number in this replay, from 1.
        where: The first field that differs from the nearest recorded one that is left; None if
            there is none to compare it with.
        recorded: That field as it was recorded, cut.
        now: That field as it is now, cut.
    """

    def __init__(
        self,
        *,
        what: str,
        number: int,
        problem: str,
        where: str | None = None,
        recorded: str = "",
        now: str = "",
    ) -> None:
        self.what = what
        self.number = number
        self.where = where
        self.recorded = recorded
        self.now = now
        differs = "" if where is None else f" in {where}: recorded {recorded}, now {now}"
        super().__init__(f"The replay differs at {what} {number}: {problem}{differs}.")


class RecordedToolError(CoagError, RuntimeError):
    """A tool's error, raised again out of a recorded run; `reason` is as it was recorded."""

    def __init__(self, tool: str, reason: str) -> None:
        self.tool = tool
        self.reason = reason
        super().__init__(f"Tool {tool!r} raised {reason}")


class RemoteAgentError(CoagError):
    """An agent on another worker failed, or could not be reached.

    Attributes:
        agent: The agent as `TYPE/KEY`.
        worker: The worker that reported it; empty where none answered.
        kind: `raised` (the agent raised), `unreachable` (no sign of life in time), `replaced`
            (another agent has taken its place and knows nothing of the dialogue), `lost` (what
            became of the turn is unknown; it is not repeated), `forgotten` (the turn is over
            and its result no longer kept), `busy`, `cancelled`, `too_large`, `version` or
            `refused`.
        error_type: Name of the type that the agent raised; empty for other kinds.
    """

    def __init__(
        self, *, agent: str, worker: str, kind: str, problem: str, error_type: str = ""
    ) -> None:
        self.agent = agent
        self.worker = worker
        self.kind = kind
        self.error_type = error_type
        where = f" on worker {worker!r}" if worker else ""
        what = f"raised {error_type}" if error_type else kind
        super().__init__(f"Remote agent {agent!r}{where}: {what}: {problem}")


class JudgmentError(CoagError):
    """Judgment was given an impossible value, or its state cannot be read; nothing was changed."""


class AwarenessError(CoagError):
    """An awareness state would become invalid, or something asked of it does not exist."""


class GoalError(AwarenessError):
    """The goal graph refused a change: there is no such goal, or it would wait for itself."""


class ObservationError(AwarenessError):
    """An observation breaks the schema or names what does not exist; the state stays as it was.

    Attributes:
        path: Where, e.g. `attention_items[0].ttl`; empty for the observation as a whole.
        problem: What is wrong there, and what to do.
    """

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        where = f" at {path}" if path else ""
        super().__init__(f"The observation is wrong{where}: {problem}")


class StateVersionError(AwarenessError):
    """A state was written by a version of the schema that this one cannot read."""

    def __init__(self, version: object, current: int) -> None:
        self.version = version
        self.current = current
        newer = isinstance(version, int) and version > current
        do = "Update coag" if newer else "Load it with the version of coag that wrote it"
        super().__init__(
            f"The awareness state has version {version!r}, and this one reads version {current} "
            f"and what can be migrated to it. {do}, or start from a new state."
        )


def error_type(error: BaseException) -> str:
    """The class of an error, with its module; of a `ModelCallError`, of what the client raised."""
    while isinstance(error, ModelCallError) and error.__cause__ is not None:
        error = error.__cause__
    kind = type(error)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else (f"{kind.__module__}.{kind.__qualname__}")
    )
