"""Ways to lie in a trace, and honest runs to lie about.

A clumsy hand edits the lines of the file. An informed one rewrites records and then makes the
whole chain and the seal again; only what the records say of each other can give it away.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken
from pydantic_core import to_json

from coag import CoagAgent, Verdict
from coag.memory import GateSettings
from coag.proof import Rule
from coag.schema import Candidate
from coag.tracing import PhasePages, PlainPages, closing_hash, file_hash, read_lines
from coag.tracing.hash_chain import opening_hash

from .brains import brain, respond

Body = dict[str, Any]
Bodies = list[Body]


def keeps_the_vase(candidate: Candidate, state: Any, projection: Any | None) -> Verdict:
    if "vase" in candidate.raw_arguments:
        return Verdict.forbid("the vase is fragile")
    return Verdict.allow()


async def fetch(thing: str) -> str:
    """Fetches a thing.

    Args:
        thing: What to fetch.
    """
    return f"{thing} is here"


async def lift(weight: int) -> str:
    """Lifts a weight.

    Args:
        weight: In kilograms.
    """
    raise ValueError(f"{weight} kg is too heavy")


def fetching(thing: str) -> tuple[str, str]:
    return "fetch", json.dumps({"thing": thing})


FACT = ("tool_update_semantic_memory", '{"fact": "The cup stands in the kitchen."}')
RULE = (
    "tool_update_procedural_memory",
    json.dumps(
        {
            "procedure": "reasoning",
            "operation": "add",
            "rule": "Look for cups first.",
            "reason": "They are near.",
        }
    ),
)


def butler(logs: Path, **settings: Any) -> CoagAgent:
    """An agent with every sort of cycle ahead of it."""
    settings.setdefault("depth", "full")
    settings.setdefault("gate", GateSettings(untrusted_requires_approval=False))
    model = brain(
        [fetching("cup"), fetching("vase")],
        [fetching("pan"), fetching("pot")],
        FACT,
        RULE,
        fetching("vase"),
        ("lift", '{"weight": 90}'),
        respond("All is fetched."),
        fetching("jug"),
        respond("The jug, too."),
    )
    return CoagAgent(
        "butler",
        model,
        tools=[fetch, lift],
        constraints=[keeps_the_vase],
        memory=":memory:",
        logs=logs,
        proposal="json",
        **settings,
    )


async def honest_run(logs: Path, **settings: Any) -> Path:
    """The folder of a finished run of two turns."""
    agent = butler(logs, **settings)
    for text in ("Fetch what is there.", "And the jug."):
        message = TextMessage(content=text, source="user")
        await agent.on_messages([message], CancellationToken())
    folder = agent.run_folder
    await agent.close()
    assert folder is not None
    return folder.path


# ---- an informed forger ----


def bodies_of(run: Path) -> Bodies:
    return [json.loads(line)["body"] for line in lines_of(run)]


def forge(run: Path, bodies: Bodies) -> None:
    """Writes records in the place of a run's, with a chain and a seal that fit them."""
    info = json.loads((run / "run.json").read_text())
    before, lines = opening_hash(info), list[bytes]()
    for seq, body in enumerate(bodies):
        text = to_json(body)  # short numbers as a trace has them
        before = sha256(f"{before}\n{seq}\n".encode() + text).hexdigest()
        head = f'{{"v":2,"seq":{seq},"hash":"{before}","body":'
        lines.append(head.encode() + text + b"}\n")
    (run / "trace.jsonl").write_bytes(b"".join(lines))
    if info["seal"] is not None:
        closing = closing_hash(info, len(lines), before, file_hash(run / "remembered.jsonl"))
        info["seal"] = {"records": len(lines), "hash": before, "closing": closing}
    pages(run)
    (run / "run.json").write_text(json.dumps(info))


def pages(run: Path) -> None:
    """Makes the pages of a forged trace."""
    shutil.rmtree(run / "cycles", ignore_errors=True)
    kind = json.loads((run / "run.json").read_text())["kind"]
    made = (PhasePages if kind == "coag" else PlainPages)(run / "cycles")
    for line in read_lines(run / "trace.jsonl"):
        if line.entry is not None:
            made.add(line.entry.body, line.body.decode())


def where(bodies: Bodies, record: str, n: int = 0, **fields: Any) -> int:
    """The place of the n-th record of a sort with these fields."""
    found = [
        place
        for place, body in enumerate(bodies)
        if body["record"] == record and all(body.get(name) == it for name, it in fields.items())
    ]
    return found[n]


# ---- a clumsy hand ----


@dataclass(frozen=True)
class Edit:
    """One way to edit a file, and what must find it."""

    name: str
    rule: Rule
    change: Callable[[list[bytes]], list[bytes]]


EDITS = (
    Edit("a_word_changed", Rule.CHAIN, lambda ls: [_word(ls[0]), *ls[1:]]),
    Edit("a_line_dropped", Rule.NUMBER, lambda ls: ls[:9] + ls[10:]),
    Edit("a_line_twice", Rule.NUMBER, lambda ls: [*ls[:9], ls[8], *ls[9:]]),
    Edit("two_lines_swapped", Rule.NUMBER, lambda ls: [*ls[:8], ls[9], ls[8], *ls[10:]]),
    Edit("a_line_inserted", Rule.CHAIN, lambda ls: [*ls[:9], _renumbered(ls[8], 9), *_up(ls[9:])]),
    Edit("a_line_dropped_and_renumbered", Rule.CHAIN, lambda ls: ls[:9] + _down(ls[10:])),
    Edit("the_tail_cut_off", Rule.SEAL, lambda ls: ls[:-3]),
    Edit("a_line_added_at_the_end", Rule.SEAL, lambda ls: [*ls, _next(ls[-1])]),
    Edit("a_line_of_rubbish", Rule.LINE, lambda ls: [*ls[:9], b"rubbish\n", *ls[10:]]),
    Edit("a_hash_taken_out", Rule.CHAIN, lambda ls: [*ls[:9], _unhashed(ls[9]), *ls[10:]]),
    Edit("a_field_nobody_knows", Rule.LINE, lambda ls: [*ls[:9], _odd(ls[9]), *ls[10:]]),
    Edit("the_order_of_fields_changed", Rule.CHAIN, lambda ls: [_sorted(ls[0]), *ls[1:]]),
)


def edit(run: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    (run / "trace.jsonl").write_bytes(b"".join(change(lines_of(run))))


def lines_of(run: Path) -> list[bytes]:
    return (run / "trace.jsonl").read_bytes().splitlines(keepends=True)


def _word(line: bytes) -> bytes:
    return line.replace(b"main", b"mine", 1)


def _renumbered(line: bytes, seq: int) -> bytes:
    head, tail = line.split(b',"hash"', 1)
    del head
    return b'{"v":2,"seq":%d,"hash"%s' % (seq, tail)


def _number(line: bytes) -> int:
    return int(json.loads(line)["seq"])


def _up(lines: list[bytes]) -> list[bytes]:
    return [_renumbered(line, _number(line) + 1) for line in lines]


def _down(lines: list[bytes]) -> list[bytes]:
    return [_renumbered(line, _number(line) - 1) for line in lines]


def _next(last: bytes) -> bytes:
    read = json.loads(last)
    seq = read["seq"] + 1
    body = json.dumps(read["body"], ensure_ascii=False, separators=(",", ":")).encode()
    hashed = sha256(f"{read['hash']}\n{seq}\n".encode() + body).hexdigest()
    return f'{{"v":2,"seq":{seq},"hash":"{hashed}","body":'.encode() + body + b"}\n"


def _unhashed(line: bytes) -> bytes:
    read = json.loads(line)
    del read["hash"]
    return json.dumps(read, separators=(",", ":")).encode() + b"\n"


def _odd(line: bytes) -> bytes:
    return line.replace(b'"body":{', b'"body":{"odd":1,', 1)


def _sorted(line: bytes) -> bytes:
    read: dict[str, Any] = json.loads(line)
    read["body"] = dict(sorted(read["body"].items()))
    return json.dumps(read, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


# ---- whatever a run's folder can be made to hold ----


Change = Callable[[Path, Path], object]
"""Takes the run's folder and that of another run of the same agent."""


@dataclass(frozen=True)
class Tampering:
    """One way to change what a finished run has left, and what can find it."""

    name: str
    """As `docs/verify.md` has it, where an anchor is needed."""
    found: bool
    """Whether it is found by what lies in the folder alone."""
    change: Change


def _info(**fields: Any) -> Change:
    def change(run: Path, other: Path) -> None:
        del other
        _put(run, json.loads((run / "run.json").read_text()) | fields)

    return change


def _put(run: Path, info: Body) -> None:
    (run / "run.json").write_text(json.dumps(info, indent=2))


def _resealed(**fields: Any) -> Change:
    """Changes `run.json`, and makes all hashes new."""

    def change(run: Path, other: Path) -> None:
        _info(**fields)(run, other)
        forge(run, bodies_of(run))

    return change


def _lines(change: Callable[[list[bytes]], list[bytes]]) -> Change:
    return lambda run, other: edit(run, change)


def _file(name: str, change: Callable[[bytes], bytes]) -> Change:
    return lambda run, other: (run / name).write_bytes(change((run / name).read_bytes()))


def _trace(change: Callable[[bytes], bytes]) -> Change:
    return _file("trace.jsonl", change)


def _bodies(change: Callable[[Bodies], Bodies]) -> Change:
    """Changes records, and makes all hashes and pages new."""
    return lambda run, other: forge(run, change(bodies_of(run)))


def _first_turn(bodies: Bodies) -> Bodies:
    return bodies[: where(bodies, "turn_end") + 1]


def _cut_to_first_turn(run: Path, other: Path) -> None:
    _, kept = other, len(_first_turn(bodies_of(run)))
    edit(run, lambda lines: lines[:kept])


def _without_prompts(bodies: Bodies) -> Bodies:
    return [{**one, "messages": []} if one["record"] == "model_call" else one for one in bodies]


def _killed(run: Path, other: Path) -> None:
    """Cuts the end off, and says that the run was killed."""
    _info(ended_at=None, seal=None)(run, other)
    edit(run, lambda lines: lines[:-3])


def _unsealed(run: Path, other: Path) -> None:
    """Changes the result, and makes the run look like one of an older version."""
    info = json.loads((run / "run.json").read_text())
    _put(run, info | {"result": {"success": True}})
    before, lines = "", list[bytes]()
    for seq, body in enumerate(bodies_of(run)):
        text = to_json(body)  # short numbers as a trace has them
        before = sha256(f"{before}\n{seq}\n".encode() + text).hexdigest()
        lines.append(f'{{"v":2,"seq":{seq},"hash":"{before}","body":'.encode() + text + b"}\n")
    (run / "trace.jsonl").write_bytes(b"".join(lines))
    _info(seal={"records": len(lines), "hash": before})(run, other)


def _another_run(run: Path, other: Path) -> None:
    for name in ("run.json", "trace.jsonl"):
        shutil.copy(other / name, run / name)
    pages(run)


def _moved_away(name: str) -> Change:
    def change(run: Path, other: Path) -> None:
        del other
        away = run.parent / f"away-{Path(name).name}"
        (run / name).rename(away)
        (run / name).symlink_to(away)

    return change


def _page(name: str, text: str) -> Change:
    return lambda run, other: (run / "cycles" / name).write_text(text)


def _other_id(run: Path, other: Path) -> None:
    _info(id=other.name)(run, other)
    moved = run.rename(run.with_name("moving"))
    moved.rename(run)


_PAGE = "0001/4-evaluation.json"

_FOUND: dict[str, Change] = {
    **{f"trace: {it.name.replace('_', ' ')}": _lines(it.change) for it in EDITS},
    "trace: two equal keys in a line": _trace(
        lambda text: text.replace(b'"body":{', b'"body":{"record":"note",', 1)
    ),
    "trace: a byte order mark": _trace(lambda text: b"\xef\xbb\xbf" + text),
    "trace: a NUL at the end": _trace(lambda text: text + b"\0"),
    "trace: white space in a line": _trace(lambda text: text.replace(b'","', b'", "', 1)),
    "trace: other line ends": _trace(lambda text: text.replace(b"\n", b"\r\n")),
    "trace: the last newline taken away": _trace(lambda text: text[:-1]),
    "trace: a letter written as an escape": _trace(
        lambda text: text.replace(b"vase", rb"\u0076ase", 1)
    ),
    "trace: cut back to the first turn": _cut_to_first_turn,
    "trace: emptied": _trace(lambda text: b""),
    "trace: removed": lambda run, other: (run / "trace.jsonl").unlink(),
    "trace: that of another run": lambda run, other: shutil.copy(
        other / "trace.jsonl", run / "trace.jsonl"
    ),
    "trace: a link to a file elsewhere": _moved_away("trace.jsonl"),
    "run.json: another agent": _info(agent="somebody"),
    "run.json: another model": _info(model="large"),
    "run.json: another seed": _info(seed=4),
    "run.json: other settings": _info(configuration={}),
    "run.json: other versions": _info(versions={}),
    "run.json: another recipe": _info(recipe={"factory": "os:system", "arguments": {}}),
    "run.json: another beginning": _info(started_at="2020-01-01T00:00:00Z"),
    "run.json: another end": _info(ended_at="2020-01-01T00:00:00Z"),
    "run.json: another result": _info(result={"success": True, "summary": "flawless"}),
    "run.json: another result, the run called unfinished": _info(
        result={"success": True}, ended_at=None, seal=None
    ),
    "run.json: another id": _other_id,
    "run.json: the seal taken away": _info(seal=None),
    "run.json: that of another run": lambda run, other: shutil.copy(
        other / "run.json", run / "run.json"
    ),
    "run.json: two equal keys": _file(
        "run.json", lambda text: text.replace(b"{", b'{"model": "large",', 1)
    ),
    "run.json: a link to a file elsewhere": _moved_away("run.json"),
    "remembered.jsonl: put into the folder": lambda run, other: (
        run / "remembered.jsonl"
    ).write_text("{}\n"),
    "page: a word changed": _file(
        f"cycles/{_PAGE}", lambda text: text.replace(b"allowed", b"refused", 1)
    ),
    "page: white space changed": _file(f"cycles/{_PAGE}", lambda text: text + b" "),
    "page: no JSON any more": _page(_PAGE, ""),
    "page: removed": lambda run, other: (run / "cycles" / _PAGE).unlink(),
    "page: one added": _page("0001/7-afterthought.json", "{}"),
    "page: all removed": lambda run, other: shutil.rmtree(run / "cycles"),
    "page: a link to a file elsewhere": _moved_away(f"cycles/{_PAGE}"),
}
_HIDDEN: dict[str, Change] = {
    "run.json: white space changed": _file("run.json", lambda text: text + b"\n"),
    "run.json: order of keys changed": lambda run, other: _put(
        run, dict(reversed(json.loads((run / "run.json").read_text()).items()))
    ),
    "all hashes new: another model": _resealed(model="large"),
    "all hashes new: another result": _resealed(result={"success": True}),
    "all hashes new: the prompts taken out": _bodies(_without_prompts),
    "all hashes new: cut back to the first turn": _bodies(_first_turn),
    "all hashes new: made a run of an older version": _unsealed,
    "the end cut off, and the run called killed": _killed,
    "the whole folder: replaced by another run's": _another_run,
}

TAMPERINGS = (
    *(Tampering(name, True, change) for name, change in _FOUND.items()),
    *(Tampering(name, False, change) for name, change in _HIDDEN.items()),
)
