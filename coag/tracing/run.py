"""What is known about a run as a whole."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, get_args

from pydantic import BaseModel, Field

from coag._util.html_cards import html_card
from coag.schema import TRACE_VERSION, Entry, Moment, Phase, TraceRecord, Value

RunKind = Literal["coag", "plain"]
"""`coag`: six phases a cycle; `plain`: an agent that calls its tools straight away."""

_RECORDED = ("coag", "autogen-agentchat", "autogen-core", "autogen-ext", "chromadb", "pydantic")


class Recipe(Value):
    """How to build the run's agent and environment again."""

    factory: str = Field(pattern=r"^[\w.]+:[\w.]+$")
    """`module:function`, found by import."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """The factory's keyword arguments, as JSON."""


class Rebuild(Value):
    """What a recipe's factory gets, if it takes a keyword `rebuild`, when a run is rebuilt."""

    purpose: Literal["resume", "replay", "fork"]
    """`resume`: continue in the environment as it is. `replay`: models and actions answer from the
    trace, so no model and no environment need be opened. `fork`: act in an environment of its
    own, which is then put into the state it had."""
    model: str | None = None
    """The model spec that takes the place of the run's, where one is wanted."""


class Parent(Value):
    """Where a forked run comes from."""

    run: str
    """Id of the run it was forked from."""
    path: str
    """That run's folder, as seen from the fork's folder of logs."""
    cycle: int
    phase: Phase
    """The first phase that was run again."""
    seq: int
    """Number of the first record of the parent that is not part of the fork's past."""
    changes: tuple[str, ...] = ()
    """What was changed there, as it was written on the command line."""


class Seal(Value):
    """The length and last hash of a finished trace, so that lines missing at its end are found."""

    records: int
    hash: str
    """The hash of its last line."""
    closing: str = ""
    """The hash after it, which covers the trace, the rest of `run.json` and what a fork's
    memory began with; empty in runs of before `run.json` was sealed."""


class RunInfo(Value):
    """What `run.json` holds."""

    v: int = TRACE_VERSION
    """Version of the log format."""
    id: str = Field(pattern=r"^[\w-]+$")
    """Names the run and its folder; see `coag.schema.new_run_id`."""
    kind: RunKind
    agent: str
    """Name of the agent."""
    model: str
    """The model as the user named it, e.g. `scripted:sound`."""
    recipe: Recipe | None = None
    """None for an agent that was built by hand: such a run can be read, not rebuilt."""
    seed: int | None = None
    versions: dict[str, str] = Field(default_factory=dict)
    """Version of Python and of the packages that took part; see `installed_versions`."""
    configuration: dict[str, Any] = Field(default_factory=dict)
    """The agent's settings, as JSON."""
    started_at: Moment
    parent: Parent | None = None
    """None for a run that was not forked."""
    ended_at: Moment | None = None
    """None while the run is open, and after a crash."""
    seal: Seal | None = None
    """None while the run is open, and after a crash."""
    result: dict[str, Any] | None = None
    """What was found out about the finished run, e.g. its measures."""

    def _repr_html_(self) -> str:
        return html_card(f"Run {self.id}", facts=run_facts(self))


def run_facts(info: RunInfo) -> list[tuple[str, object]]:
    """What a person wants to know of a run first, by name."""
    kind = "six phases a cycle" if info.kind == "coag" else "plain: calls its tools straight away"
    ended = (
        "open, or interrupted" if info.ended_at is None else f"{info.ended_at:%Y-%m-%d %H:%M:%S}"
    )
    parent = info.parent
    return [
        ("agent", info.agent),
        ("kind", kind),
        ("model", info.model),
        ("seed", info.seed),
        ("started", f"{info.started_at:%Y-%m-%d %H:%M:%S}"),
        ("ended", ended),
        ("forked from", None if parent is None else f"{parent.run}, {parent.cycle}.{parent.phase}"),
        ("result", info.result),
    ]


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that a run depends on; absent ones are left out.

    They are looked up once a process.
    """
    return dict(_versions())


@cache
def _versions() -> Mapping[str, str]:
    versions = {"python": platform.python_version()}
    for name in _RECORDED:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


# ---- JSON Schemas of what a run leaves ----

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def log_schemas() -> dict[str, dict[str, Any]]:
    """JSON Schemas (2020-12) of this version's `run.json`, of a trace's line, and of each record.

    They describe what is written, so that every field is required that a writer always writes.

    Returns:
        By name: `run`, `trace-line`, `record-percept`, `record-outcome-retrieval`, ...
    """
    models: dict[str, type[BaseModel]] = {"run": RunInfo, "trace-line": Entry}
    for model in _records(TraceRecord):
        fields = model.model_fields
        words = [fields["record"].default]
        words += [fields["phase"].default.value] if words == ["outcome"] else []
        models["-".join(["record", *words]).replace("_", "-")] = model
    return {
        name: {"$schema": _DIALECT, **model.model_json_schema(mode="serialization")}
        for name, model in models.items()
    }


def _records(union: Any) -> list[type[BaseModel]]:
    """The classes of a union of unions."""
    if isinstance(union, type):
        return [union] if issubclass(union, BaseModel) else []
    return [model for part in get_args(union) for model in _records(part)]
