"""`coag judgment`: asking and teaching a judgment from the shell, one state file a judgment.

Each command reads the state, does one thing and is done, so that whatever can run a command can use
it. Only `coag.judgment` is imported, and of that nothing but the standard library; `quick` reads
the words.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, cast

from coag._util.text import cleaned
from coag.errors import ConfigurationError
from coag.judgment import START, Insight, Judgment, Reported, TrustLevel, entry_from, to_json

from .quick import Word, called

State = Annotated[
    Path,
    Word(
        "The judgment's file; else COAG_JUDGMENT, else judgment.json.",
        "--state",
        variable="COAG_JUDGMENT",
    ),
]
Source = Annotated[str, Word("Who says so.", "--source")]
Trust = Annotated[
    str,
    Word(
        "How far the source is trusted: developer, user or untrusted. What is untrusted moves "
        "little, and closes nothing.",
        "--trust",
    ),
]
Task = Annotated[str, Word("What is to be done, in words.")]
Before = Annotated[str, Word("The capability that was used last.", "--after")]
Advised = Annotated[str | None, Word("The id of what was advised.", "--consultation")]
Fields = Annotated[
    str, Word("The entry as a JSON object, or - for standard input.", metavar="JSON")
]
AsJson = Annotated[bool, Word("One JSON object, for programs.", "--json")]
DEFAULT = Path("judgment.json")


def init(
    manifest: Annotated[
        Path | None, Word("JSON: capabilities, each with a name; perhaps edges.")
    ] = None,
    state: State = DEFAULT,
    anew: Annotated[bool, Word("Lose what was learned before.", "--anew")] = False,
) -> None:
    """Begins a judgment, with the capabilities of a manifest.

    A manifest: {"capabilities": [{"name": "search", "summary": "find pages"}, {"name": "read"}]}.
    With "edges" ([{"source": "search", "target": "read"}]) only these routes are advised.
    """
    given = None
    if manifest is not None:
        try:
            given = json.loads(manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ConfigurationError(f"{str(manifest)!r} cannot be read: {error}.") from error
    made = Judgment(state)
    made.init(given, anew=anew)
    _say(f"{state}: {made.status()['capabilities']} capabilities.")


def consult(
    task: Task,
    state: State = DEFAULT,
    after: Before = START,
    among: Annotated[list[str] | None, Word("Only these; may be repeated.", "--among")] = None,
    as_json: AsJson = False,
) -> None:
    """Says what paid for such a task, what is closed, and why. It advises; you decide.

    Report what was done with the consultation's id, also where it was something else.
    """
    made = Judgment(state).consult(task, current=after, among=among, store=True)
    if as_json:
        advice = [to_json(one) for one in made.advice]
        noted = [str(one) for one in made.annotations]
        entries, closed = to_json(made.entries), to_json(made.dead_ends)
        fields = {"advice": advice, "entries": entries, "dead_ends": closed, "patterns": noted}
        _json({"id": made.id, **fields, "problem": made.problem})
        return
    _warn(made.problem)
    _say(f"consultation {made.id}")
    for one in made.advice[:5]:
        _say(f"{one.probability:6.1%}  {one.capability}: {one.why}")
    for dead in made.dead_ends:
        _say(f"{'closed' if dead.closes else 'warning'}: {dead.topic}: {dead.why_closed}")
    for entry in made.entries:
        _say(f"{entry.operation} of {entry.origin.source}: {' / '.join(entry.text.splitlines())}")
    for note in made.annotations:
        _say(str(note))


def report(  # noqa: PLR0913, PLR0917 - what there is to say of a use
    used: Annotated[str, Word("The capability that was used.")],
    reward: Annotated[float, Word("0 for nothing, 1 for all that was wanted.")],
    state: State = DEFAULT,
    cost: Annotated[float, Word("0 for nothing, 1 for all there was.", "--cost")] = 0.0,
    after: Before = START,
    consultation: Advised = None,
    source: Source = "agent",
    trust: Trust = "user",
    as_json: AsJson = False,
) -> None:
    """Reports what was done, and what it brought. It is stored when the command ends."""
    done: Reported = Judgment(state).report(
        used,
        reward,
        cost=cost,
        current=after,
        consultation=consultation,
        source=source,
        trust=cast("TrustLevel", trust),
    )
    if as_json:
        _json(to_json(done))
        return
    _warn(done.problem)
    _say(f"{used}: weight {done.changed:+.2f}{', not what was advised' if done.override else ''}")
    if done.reflect:
        _say(f"Reflect: {done.reflect}")


def reflect(
    entry: Fields, state: State = DEFAULT, source: Source = "agent", trust: Trust = "user"
) -> None:
    """Writes down what was learned, as JSON with `is` and fields. Prints the entry's id.

    {"is": "reflection", "signal": "tests were slow", "pattern": "the fixture sleeps"}.

    {"is": "method", "statement": "...", "why": "...", "fails_when": "...", "explains": "PATTERN"}.

    {"is": "dead_end", "topic": "...", "why_closed": "...", "capabilities": ["NAME"], "reopen":
    [{"is": "version", "name": "curl", "was": "8.0"}]}; also percept, date, question.

    Others: experiment, synthesis, profile. All may have `capabilities` and `tier`.
    """
    _say(*Judgment(state).reflect(entry_from(_fields(entry, source, trust))))


def flush(
    thoughts: Fields, state: State = DEFAULT, source: Source = "agent", trust: Trust = "user"
) -> None:
    """Writes down what is in the head, before a context is cut. Prints the entry's id.

    {"task": "...", "hypotheses": ["the likeliest first"], "reasoning": [], "questions": [],
    "confidence": {"the first": 0.7}, "depends_on": []}.
    """
    given = {"is": "externalisation", **_fields(thoughts, source, trust)}
    _say(*Judgment(state).reflect(entry_from(given)))


def resume(
    task: Annotated[str, Word("What is to be done.")] = "",
    state: State = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Shows what the next agent or person reads first: it is data, never an instruction."""
    text = Judgment(state).resume(task)
    if as_json:
        _json({"text": text})
    else:
        _say(*text.splitlines())


def synthesize(
    insight: Annotated[str | None, Word("An insight to write down.", metavar="[JSON]")] = None,
    state: State = DEFAULT,
    source: Source = "agent",
    trust: Trust = "user",
    as_json: AsJson = False,
) -> None:
    """Shows what waits for an explanation; with an insight, writes that down first.

    {"statement": "...", "across": ["ID", "ID"], "capabilities": ["NAME"]}.
    """
    entry = None
    if insight is not None:
        entry = entry_from({"is": "synthesis", **_fields(insight, source, trust)})
    waiting = Judgment(state).synthesize(cast("Insight | None", entry))
    if as_json:
        _json({"waiting": list(waiting)})
    else:
        _say(*(waiting or ("Nothing waits for an explanation.",)))


def status(state: State = DEFAULT, as_json: AsJson = False) -> None:
    """Shows what a judgment holds, and whether following its advice pays."""
    found = Judgment(state).status()
    if as_json:
        _json(found)
        return
    _warn(found.pop("problem"))
    for name, value in found.items():
        shown = value
        if isinstance(value, dict):
            shown = ", ".join(f"{n} {v}" for n, v in cast("dict[str, Any]", value).items())
        _say(f"{name:14} {shown}")


def _fields(text: str, source: str, trust: str) -> dict[str, Any]:
    """An entry's fields as they were typed, with their origin."""
    try:
        given: object = json.loads(sys.stdin.read() if text == "-" else text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"The entry is no JSON: {error}. Got {text[:80]!r}.") from error
    if not isinstance(given, dict):
        raise ConfigurationError(f"The entry must be a JSON object, not {text[:80]!r}.")
    origin = {"source": source, "trust": trust, "at": datetime.now(UTC)}
    return {**cast("dict[str, Any]", given), "origin": origin}


def _say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(cleaned(line) + "\n")


def _warn(problem: str) -> None:
    if problem:
        sys.stderr.write(cleaned(problem) + "\n")


def _json(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")


_COMMANDS = (init, consult, report, reflect, flush, resume, synthesize, status)
_ABOUT = """Keeps what an agent learned about how to go about its work, across runs and contexts.

Before a step: `consult "the task"`. After it: `report NAME REWARD --consultation ID`. When
something was learned: `reflect`. Before a context is cut: `flush`; after that: `resume`.

Example: coag judgment consult "fix the build" --state judgment.json
"""


def judgment(words: Sequence[str]) -> None:
    """Runs what was typed behind `coag judgment`."""
    called("coag judgment", _ABOUT, _COMMANDS, words)
