"""Judgment across a cut of the context: what a fresh run wastes on known dead ends.

A porter stands in a hall with eight doors. Three of them open; the others never do, and say so.
The first run fetches two things, and meets dead ends on the way. Then the context is cut: a fresh
run is to fetch a third thing, which lies behind one of the three by then, and knows

- `summary`: a summary of the first run, of at most 80 words, that the model itself has written;
- `judgment`: nothing but the judgment of the first run, a `JudgmentModule` on its file;
- `both`.

Wasted are openings of doors that had failed in the first run. By seed the hall, what is fetched,
and with a scripted model the order in which a run tries doors; all arms meet the same. The scripted
model reads all of its prompt, and its summary holds what was achieved and not what failed: that is
assumed, and only a real model shows it. Doors that are known to open it tries first.

Each run is stored when it is over: the same command continues what was interrupted.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from autogen_core.models import ChatCompletionClient, UserMessage
from autogen_core.tools import FunctionTool

from coag import CoagAgent, ScriptedModel, open_model
from coag.errors import ConfigurationError
from coag.evals import figures_of
from coag.evals.statistics import paired_bootstrap
from coag.judgment import JudgmentModule
from coag.models import ScriptedRequest
from coag.schema import Depth, ExecutionOutcome, Value

DOORS: tuple[str, ...] = ("red", "green", "blue", "yellow", "white", "black", "brown", "grey")
FIRST, SECOND = ("lamp", "key"), ("map",)
"""What is fetched in the first run, and in the second."""
WHY = (
    *("the lock is broken", "the frame has sunk", "it is walled up behind"),
    *("it is nailed shut", "the hinges have rusted"),
)
ARMS = ("summary", "judgment", "both")
SCRIPTED, _LEARNED = "scripted", "learned.json"
WORDS = 80
"""Words of a summary."""
_ASKED = (
    "You have just finished this work. A colleague goes on in the same hall tomorrow, with other "
    f"things to fetch, and sees nothing of it but your summary. Write it, in at most {WORDS} words."
)


class Hall:
    """The doors, what is behind them, and what is held; by a seed. Doors are closed at first."""

    def __init__(self, seed: int, things: Sequence[str]) -> None:
        draw = random.Random(f"hall {seed}")
        self.doors = tuple(draw.sample(DOORS, len(DOORS)))
        *jammed, one, two, three = draw.sample(DOORS, len(DOORS))
        self.jammed = dict(zip(jammed, draw.sample(WHY, len(jammed)), strict=True))
        places = (one, two) if len(things) > 1 else draw.sample((one, two, three), 1)
        found = dict(zip(places, things, strict=True))
        self.behind = {door: found.get(door, "nothing") for door in (one, two, three)}
        self.things = tuple(things)
        self.open: set[str] = set()
        self.held: set[str] = set()

    def open_door(self, door: str) -> dict[str, Any]:
        """Opens a door of the hall and says what is behind it.

        Args:
            door: The door's colour.
        """
        if door not in DOORS:
            return {"ok": False, "reason": f"there is no door {door!r} here"}
        if door in self.jammed:
            why = self.jammed[door]
            reason = f"the {door} door can never be opened: {why}"
            return {"ok": False, "failure": "deterministic", "reason": reason}
        self.open.add(door)
        return {"ok": True, "behind": f"behind the {door} door is: {self.behind[door]}"}

    def take(self, thing: str) -> dict[str, Any]:
        """Takes a thing that is behind an open door.

        Args:
            thing: What is taken.
        """
        if thing not in self.things or thing not in {self.behind[door] for door in self.open}:
            return {"ok": False, "reason": f"no {thing} is behind an open door"}
        self.held.add(thing)
        return {"ok": True, "taken": f"you hold the {thing}"}

    @property
    def task(self) -> str:
        """What is asked for."""
        return (
            f"You are a porter in a hall with these doors, all of them closed: "
            f"{', '.join(self.doors)}. Fetch: {', '.join(self.things)}. Open doors to find what "
            "you need, and take it. Some doors can never be opened. Say when you hold everything."
        )


class Run(Value):
    """What came of a run."""

    success: bool
    wasted: int
    """Openings of doors that had failed in the first run."""
    met: int
    """Openings that failed, known before or not."""
    actions: int
    calls: int
    tokens: int
    seconds: float
    dead: tuple[str, ...] = ()
    """Doors that failed in it."""
    summary: str = ""
    """Of the first run."""


MEASURES = ("wasted", "met", "actions", "calls", "tokens", "seconds", "success")


class Compaction:
    """The runs of one folder.

    Raises:
        ConfigurationError: The folder is of another model or depth.
    """

    def __init__(self, folder: Path, model: str | None, depth: Depth) -> None:
        self._folder, self._spec = folder, model
        self._depth: Depth = depth
        shown = SCRIPTED if model is None else model.rpartition("#")[2]
        plan, path = {"model": shown, "depth": depth}, folder / "plan.json"
        folder.mkdir(parents=True, exist_ok=True)
        if path.is_file() and json.loads(path.read_text()) != plan:
            raise ConfigurationError(
                f"{str(folder)!r} holds runs of {path.read_text().strip()}, and {plan} is asked "
                "for: give another folder."
            )
        path.write_text(json.dumps(plan))

    async def play(
        self, seeds: Sequence[int], arms: Sequence[str], say: Callable[[str], None]
    ) -> dict[str, list[Run]]:
        """All runs that are missing; gives those of each arm by seed, and of `first`."""
        found: dict[str, list[Run]] = {name: [] for name in ("first", *arms)}
        for seed in seeds:
            folder = self._folder / f"seed-{seed}"
            folder.mkdir(exist_ok=True)
            first = _stored(folder / "first.json")
            if first is None:
                first = await self._first(seed, folder)
                _store(folder / "first.json", first)
            say(f"seed {seed} first: {shown(first)}")
            found["first"].append(first)
            for arm in arms:
                run = _stored(folder / f"{arm}.json")
                if run is None:
                    run = await self._second(seed, folder, arm, first)
                    _store(folder / f"{arm}.json", run)
                say(f"seed {seed} {arm}: {shown(run)}")
                found[arm].append(run)
        return found

    async def _first(self, seed: int, folder: Path) -> Run:
        hall, file = Hall(seed, FIRST), folder / _LEARNED
        file.unlink(missing_ok=True)
        return await self._run(hall, "first", seed, file, summarised=True)

    async def _second(self, seed: int, folder: Path, arm: str, first: Run) -> Run:
        file, notes = None, ""
        if arm != "summary":
            file = folder / f"{arm}-{_LEARNED}"
            shutil.copy(folder / _LEARNED, file)
        if arm != "judgment":
            notes = f"\n\nNotes of who worked here before: {first.summary}"
        return await self._run(Hall(seed, SECOND), "second", seed, file, notes, first.dead)

    async def _run(
        self,
        hall: Hall,
        name: str,
        seed: int,
        file: Path | None,
        notes: str = "",
        known: Sequence[str] = (),
        *,
        summarised: bool = False,
    ) -> Run:
        model = self._model(f"{name} {seed}", hall.things)
        try:
            tools = [
                FunctionTool(hall.open_door, (hall.open_door.__doc__ or "").splitlines()[0]),
                FunctionTool(hall.take, (hall.take.__doc__ or "").splitlines()[0]),
            ]
            agent = CoagAgent(
                "porter",
                model,
                tools=tools,
                modules=[] if file is None else [JudgmentModule(file, close_after=1)],
                depth=self._depth,
                proposal="json",
                answers="brief",
                seed=seed,
            )
            began = time.monotonic()
            await agent.run(task=hall.task + notes)
            seconds = time.monotonic() - began
            records = list(agent.trace)
            figures = figures_of(records, ("open_door", "take"))
            failed = [door for door in _opened(records) if door in hall.jammed]
            await agent.close()
            return Run(
                success=set(hall.things) <= hall.held,
                wasted=sum(door in known for door in failed),
                met=len(failed),
                actions=figures.actions,
                calls=figures.model_calls,
                tokens=figures.prompt_tokens + figures.completion_tokens,
                seconds=round(seconds, 2),
                dead=tuple(dict.fromkeys(failed)),
                summary=await _summary(model, hall, records) if summarised else "",
            )
        finally:
            await model.close()

    def _model(self, name: str, things: Sequence[str]) -> ChatCompletionClient:
        if self._spec is not None:
            return open_model(self._spec)
        order = random.Random(name).sample(DOORS, len(DOORS))
        return ScriptedModel(lambda request: _answer(request, order, things))


def _opened(records: Sequence[Any]) -> list[str]:
    return [
        str((one.arguments or {}).get("door"))
        for record in records
        if isinstance(record, ExecutionOutcome)
        for one in record.executed
        if one.action == "open_door" and one.intent_id is not None
    ]


async def _summary(model: ChatCompletionClient, hall: Hall, records: Sequence[Any]) -> str:
    """The model's summary of a run for its successor; cut where it is longer than asked."""
    actions = [
        f"{one.action} {json.dumps(one.arguments)}: {one.result}"
        for record in records
        if isinstance(record, ExecutionOutcome)
        for one in record.executed
    ]
    text = "\n".join((hall.task, "", *actions, "", _ASKED))
    answer = await model.create([UserMessage(content=text, source="user")])
    return " ".join(str(answer.content).split()[:WORDS])


# ---- the scripted model ----


def _answer(request: ScriptedRequest, order: Sequence[str], things: Sequence[str]) -> str:
    """Takes what it has found, opens a door that it knows nothing of, and says when it is done."""
    text = " ".join(str(getattr(one, "content", "")) for one in request.messages)
    if _ASKED in text:
        found = re.findall(r"behind the (\w+) door is: (lamp|key)", text)
        return " ".join(f"The {thing} was behind the {door} door." for door, thing in found)
    missing = [thing for thing in things if f"you hold the {thing}" not in text]
    wishes: list[dict[str, Any]] = []
    if not missing:
        wishes.append(_wish("respond", 1.0, text=f"I hold: {', '.join(things)}."))
    for thing in missing:
        if re.search(rf"behind the \w+ door is: {thing}", text):
            wishes.append(_wish("take", 0.9, thing=thing))
    known = ("the {} door can never be opened", "behind the {} door is:")
    left = [door for door in order if not any(one.format(door) in text for one in known)]
    left.sort(key=lambda door: f"was behind the {door} door" not in text)
    for place, door in enumerate(left[:3]):
        wishes.append(_wish("open_door", 0.6 - 0.1 * place, door=door))
    return json.dumps({"situation": "Doors and things.", "candidates": wishes[:4]})


def _wish(action: str, score: float, **arguments: str) -> dict[str, Any]:
    return {"action": action, "arguments": json.dumps(arguments), "score": score}


# ---- files, and what is shown ----


def _stored(path: Path) -> Run | None:
    if not path.is_file():
        return None
    return Run.model_validate_json(path.read_text(encoding="utf-8"))


def _store(path: Path, run: Run) -> None:
    whole = path.with_suffix(".part")
    whole.write_text(run.model_dump_json(indent=1), encoding="utf-8")
    whole.replace(path)


def shown(run: Run) -> str:
    """A run in a line."""
    return (
        f"{'success' if run.success else 'failure'}, {run.wasted} wasted on known dead ends, "
        f"{run.met} dead ends met, {run.actions} actions, {run.calls} calls, {run.tokens:,} "
        f"tokens, {run.seconds:.0f} s"
    )


def table(found: Mapping[str, Sequence[Run]], base: str = "summary") -> str:
    """Means by arm, and paired differences from one arm with 95 % intervals, as Markdown."""
    lines = [f"| a run | {' | '.join(MEASURES)} |", f"|---|{'---:|' * len(MEASURES)}"]
    for name, runs in found.items():
        cells = [f"{fmean(float(getattr(run, what)) for run in runs):,.2f}" for what in MEASURES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for name, runs in found.items():
        if name in (base, "first") or base not in found:
            continue
        cells = list[str]()
        for what in MEASURES:
            gaps = [
                float(getattr(a, what)) - float(getattr(b, what))
                for a, b in zip(runs, found[base], strict=True)
            ]
            ends = paired_bootstrap(gaps)
            cells.append(f"{fmean(gaps):+,.2f} ({ends.low:+,.2f} to {ends.high:+,.2f})")
        lines.append(f"| {name} less {base} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(
    folder: Path, model: str | None, depth: Depth, seeds: Sequence[int], arms: Sequence[str]
) -> None:
    """Plays what is missing, printing as it goes, and then the table."""
    runs = Compaction(folder, model, depth)
    found = asyncio.run(runs.play(seeds, arms, lambda line: print(line, flush=True)))
    print(f"\n{table(found)}")
