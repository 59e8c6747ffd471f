"""How a cycle deliberates, and where it stops."""

from __future__ import annotations

from typing import Any, Literal, cast

from pydantic import Field, ValidationInfo, field_serializer, field_validator, model_validator

from coag.context import GoalCost
from coag.schema import Depth, Value


class Bounds(Value):
    """Limits of one turn. Reaching one ends the turn with the best answer and the reason."""

    cycles: int = Field(default=20, ge=1)
    """Cycles a turn."""
    impasses: int = Field(default=3, ge=1)
    """Cycles in a row in which no candidate survives and the same calls are rejected again."""
    fresh_impasses: int = Field(default=10, ge=1)
    """Cycles in a row in which no candidate survives, whatever is proposed."""
    actions: int | None = Field(default=None, ge=1)
    """External actions a turn; None for no limit of their own."""


class Budget(Value):
    """What one goal may cost, over as many turns as it takes; None is without limit.

    When the soft share of a limit is reached, one last cycle answers from what is known, without
    tools. Where the limit itself is reached, the turn ends with the best that can be said.
    """

    tokens: int | None = Field(default=None, ge=1)
    """Prompt and completion tokens."""
    calls: int | None = Field(default=None, ge=1)
    """Model calls."""
    seconds: float | None = Field(default=None, gt=0)
    """Seconds spent in cycles, models and tools together."""
    cost: float | None = Field(default=None, gt=0)
    """Money, in the currency of the agent's prices."""
    soft: float = Field(default=0.8, gt=0, le=1)
    """The share of each limit from which on only an answer is given."""

    def reached(self, spent: GoalCost) -> bool:
        """Whether a limit is used up."""
        return self._share(spent) >= 1

    def softly_reached(self, spent: GoalCost) -> bool:
        """Whether the soft share of a limit is used up."""
        return self._share(spent) >= self.soft

    def _share(self, spent: GoalCost) -> float:
        """The share of the limit that is nearest to its end."""
        usage = spent.usage
        shares = (
            (usage.tokens, self.tokens),
            (usage.calls, self.calls),
            (spent.seconds, self.seconds),
            (usage.cost, self.cost),
        )
        return max((used / limit for used, limit in shares if limit is not None), default=0.0)


Ablation = Literal["retrieval", "reasoning", "evaluation", "rewriting"]
"""A part of deliberation that can be left out; see `CycleSettings.ablations`."""


class CycleSettings(Value):
    """How each cycle deliberates."""

    depth: Depth = "full"
    """`full` asks the model once per deliberating phase; `compact` once per cycle, for
    reasoning, candidates and scores together; `auto` decides in each cycle, between no call, one
    and full. Constraints, order and log are the same."""
    close_scores: float = Field(default=0.1, ge=0.0, le=1.0)
    """With `auto`: the model is asked once more about candidates whose ranks (score and gain
    together) differ by less, where it matters which one is taken."""
    reflex_gain: float | None = Field(default=0.4, gt=0.0, le=1.0)
    """With `auto`: the gain that the domain must foresee of one call, and by which it must exceed
    that of every other, for it to be made without asking the model. None for never. It counts where
    the context has a forward model and a `_value`."""
    compile_after: int = Field(default=3, ge=1)
    """With `auto`: successes of the same call in the same situation, with no failure between,
    after which it is made there without asking the model."""
    selection: Literal["ties", "rank", "model"] = "ties"
    """Who chooses among several survivors. `rank`: the highest score and predicted gain together,
    among equals the one proposed first; `ties`: the same, but the model is asked about equals;
    `model`: always the model. Its choice may depart from the scores that it gave itself."""
    prompts: Literal["lean", "whole"] = "lean"
    """What prompts hold. `lean`: of a predicted state what will be different, messages that repeat
    each other once, arguments of listed actions in short. `whole`: all of it, as earlier versions
    wrote it; runs that they recorded replay so."""
    proposal: Literal["auto", "native", "json", "grounded"] = "auto"
    """Where candidates come from. `native`: the model's own tool calls, or its text as the
    answer; `json`: a list of candidates that the model writes; `grounded`: the domain's
    `_propose_grounded`. `auto` is native for models that can call tools, else json; `CoagAgent`
    decides it from the client's `model_info`."""
    parallel: bool = True
    """Tool calls that the model makes in one answer may run together (`native`). Without it
    they are alternatives, and one is selected."""
    reflect: bool = False
    """When the bound on actions is reached, one more cycle without tools answers from what is
    known. Without it the turn ends with the last result."""
    enumerate_actions: bool | Literal["calls", "allowed"] = False
    """Limit `action` in the answer's schema to the actions that exist; with `calls` to whole
    calls (`move direction=east`), for actions whose arguments can be counted, without those that
    were rejected since the last action in the environment; with `allowed` also without those that
    the rules in force forbid now. A note in the trace names these with the rule."""
    answers: Literal["complete", "brief"] = "complete"
    """How much the model is to write. `brief`, for small models: a sentence on the situation,
    three candidates and their scores without reasons, no risks and no expected effects."""
    minimum_score: float = Field(default=0.0, ge=0.0, le=1.0)
    """Candidates that the model scores lower do not survive; 0 lets all through."""
    recall_k: int = Field(default=5, ge=0)
    """Records recalled per cycle."""
    summarize: bool = False
    """When ten more messages have left a long dialogue, the model sums them up, with the procedure
    `summary`, at the beginning of the next turn: one more call. Without it rules keep the
    sentences that are likely to matter. Either way `read_more` shows all of it."""
    module_seconds: float = Field(default=2.0, gt=0)
    """Time that a module has to observe or contribute."""
    rule_seconds: float | None = Field(default=2.0, gt=0)
    """Time that a constraint, or the domain's projection, may take for one candidate; one that
    takes longer forbids it. None for any, as to step through a rule in a debugger."""
    bounds: Bounds = Bounds()
    budget: Budget = Budget()
    ablations: frozenset[Ablation] = frozenset()
    """Parts of deliberation that are left out, to measure what each gives. The phase still
    commits its outcome, an empty one, and a note in the trace says what was left out. Its earlier
    name, `without`, is still read.

    - `retrieval`: nothing is recalled; procedures and constraints are pinned all the same.
    - `reasoning`: the model is not asked how things stand.
    - `evaluation`: the model scores nothing and is shown no predictions; schemas, projections
      and constraints judge all the same.
    - `rewriting`: the action that changes standing rules is not offered.
    """

    @model_validator(mode="before")
    @classmethod
    def _earlier_name(cls, settings: Any) -> Any:
        """Settings that were written down before `without` became `ablations`."""
        if not isinstance(settings, dict) or "without" not in settings:
            return cast("Any", settings)
        named = dict(cast("dict[str, Any]", settings))
        return {"ablations": named.pop("without"), **named}

    @field_validator("ablations", mode="after")
    @classmethod
    def _leaves_something(
        cls, ablations: frozenset[Ablation], info: ValidationInfo
    ) -> frozenset[Ablation]:
        depth = info.data.get("depth")
        if "reasoning" in ablations and depth != "full":
            one_call = f"depth={depth!r} asks for reasoning and candidates in one call"
            raise ValueError(f"{one_call}, so reasoning cannot be left out; use depth='full'")
        if "evaluation" in ablations and info.data.get("minimum_score", 0) > 0:
            least = f"minimum_score={info.data['minimum_score']}"
            raise ValueError(f"{least} needs the scores of evaluation; leave out one of the two")
        return ablations

    @field_serializer("ablations", when_used="json")
    def _in_order(self, ablations: frozenset[Ablation]) -> list[str]:
        """The same settings are the same text."""
        return sorted(ablations)
