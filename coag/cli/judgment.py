"""`coag judgment`: asking and teaching a judgment from the shell, one state file a judgment.

Each command reads the state, does one thing and is done, so that whatever can run a command can use
it. Only `coag.judgment` is imported, and of that nothing but the standard library: argparse reads
the words, since typer takes longer to import than a command to run.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn, cast

from coag._util.text import cleaned
from coag.errors import ConfigurationError
from coag.judgment import START, Insight, Judgment, Reported, TrustLevel, entry_from, to_json


def init(state: Path, manifest: Path | None, *, anew: bool) -> None:
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
    state: Path, task: str, *, after: str, among: Sequence[str] | None, as_json: bool
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


def report(  # noqa: PLR0913 - what there is to say of a use
    state: Path,
    used: str,
    reward: float,
    *,
    cost: float,
    after: str,
    consultation: str | None,
    source: str,
    trust: TrustLevel,
    as_json: bool,
) -> None:
    """Reports what was done, and what it brought. It is stored when the command ends."""
    done: Reported = Judgment(state).report(
        used,
        reward,
        cost=cost,
        current=after,
        consultation=consultation,
        source=source,
        trust=trust,
    )
    if as_json:
        _json(to_json(done))
        return
    _warn(done.problem)
    _say(f"{used}: weight {done.changed:+.2f}{', not what was advised' if done.override else ''}")
    if done.reflect:
        _say(f"Reflect: {done.reflect}")


def reflect(state: Path, entry: str, *, source: str, trust: TrustLevel) -> None:
    """Writes down what was learned, as JSON with `is` and fields. Prints the entry's id.

    {"is": "reflection", "signal": "tests were slow", "pattern": "the fixture sleeps"}.

    {"is": "method", "statement": "...", "why": "...", "fails_when": "...", "explains": "PATTERN"}.

    {"is": "dead_end", "topic": "...", "why_closed": "...", "capabilities": ["NAME"], "reopen":
    [{"is": "version", "name": "curl", "was": "8.0"}]}; also percept, date, question.

    Others: experiment, synthesis, profile. All may have `capabilities` and `tier`.
    """
    _say(*Judgment(state).reflect(entry_from(_fields(entry, source, trust))))


def flush(state: Path, thoughts: str, *, source: str, trust: TrustLevel) -> None:
    """Writes down what is in the head, before a context is cut. Prints the entry's id.

    {"task": "...", "hypotheses": ["the likeliest first"], "reasoning": [], "questions": [],
    "confidence": {"the first": 0.7}, "depends_on": []}.
    """
    given = {"is": "externalisation", **_fields(thoughts, source, trust)}
    _say(*Judgment(state).reflect(entry_from(given)))


def resume(state: Path, task: str, *, as_json: bool) -> None:
    """Shows what the next agent or person reads first: it is data, never an instruction."""
    text = Judgment(state).resume(task)
    if as_json:
        _json({"text": text})
    else:
        _say(*text.splitlines())


def synthesize(
    state: Path, insight: str | None, *, source: str, trust: TrustLevel, as_json: bool
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


def status(state: Path, *, as_json: bool) -> None:
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


# ---- Which words each command takes ----


def _word(*names: str, **options: Any) -> tuple[tuple[str, ...], Mapping[str, Any]]:
    """What `add_argument` is given."""
    return names, options


_TASK = _word("task", metavar="TASK", help="What is to be done, in words.")
_ENTRY = {"metavar": "JSON", "help": "The entry as a JSON object, or - for standard input."}
_AFTER = _word("--after", default=START, help="The capability that was used last.")
_SOURCE = _word("--source", default="agent", help="Who says so.")
_TRUST = _word(
    "--trust",
    choices=("developer", "user", "untrusted"),
    default="user",
    help="How far the source is trusted. What is untrusted moves little, and closes nothing.",
)
_JSON = _word("--json", dest="as_json", action="store_true", help="One JSON object, for programs.")
_COMMANDS: Mapping[Callable[..., None], Sequence[tuple[Sequence[str], Mapping[str, Any]]]] = {
    init: (
        _word(
            "manifest",
            nargs="?",
            type=Path,
            help="JSON: capabilities, each with a name; perhaps edges.",
        ),
        _word("--anew", action="store_true", help="Lose what was learned before."),
    ),
    consult: (
        _TASK,
        _AFTER,
        _word("--among", action="append", help="Only these; may be repeated."),
        _JSON,
    ),
    report: (
        _word("used", metavar="USED", help="The capability that was used."),
        _word(
            "reward",
            metavar="REWARD",
            type=float,
            help="0 for nothing, 1 for all that was wanted.",
        ),
        _word("--cost", type=float, default=0.0, help="0 for nothing, 1 for all there was."),
        _AFTER,
        _word("--consultation", metavar="ID", help="The id of what was advised."),
        _SOURCE,
        _TRUST,
        _JSON,
    ),
    reflect: (_word("entry", **_ENTRY), _SOURCE, _TRUST),
    flush: (_word("thoughts", **_ENTRY), _SOURCE, _TRUST),
    resume: (_word("task", nargs="?", default="", help="What is to be done."), _JSON),
    synthesize: (
        _word("insight", nargs="?", metavar="JSON", help="An insight to write down."),
        _SOURCE,
        _TRUST,
        _JSON,
    ),
    status: (_JSON,),
}
_ABOUT = """Keeps what an agent learned about how to go about its work, across runs and contexts.

Before a step: `consult "the task"`. After it: `report NAME REWARD --consultation ID`. When
something was learned: `reflect`. Before a context is cut: `flush`; after that: `resume`.

Example: coag judgment consult "fix the build" --state judgment.json
"""


def _file(given: str) -> Path:
    path = Path(given)
    if not path.name:
        raise argparse.ArgumentTypeError(f"{given!r} is no name of a file")
    return path


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """What the user got wrong, as for any other command."""
        raise ConfigurationError(f"{message}; see {self.prog} --help.")


def judgment(words: Sequence[str]) -> None:
    """Runs what was typed behind `coag judgment`."""
    looks: dict[str, Any] = {
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
    parser = _Parser("coag judgment", description=_ABOUT, **looks)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    state = os.environ.get("COAG_JUDGMENT") or "judgment.json"
    for command, arguments in _COMMANDS.items():
        about = inspect.cleandoc(command.__doc__ or "")
        line = about.partition("\n")[0]
        made = commands.add_parser(command.__name__, help=line, description=about, **looks)
        made.set_defaults(command=command)
        for names, options in arguments:
            made.add_argument(*names, **options)
        made.add_argument(
            "--state",
            type=_file,
            default=state,
            help="The judgment's file; else COAG_JUDGMENT, else judgment.json.",
        )
    if "" in words:
        parser.error("a word is empty")
    given = vars(parser.parse_args(words or ["--help"]))
    given.pop("command")(**given)
