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


@dataclass(frozen=True)
class Tampering:
    """One way to change what a finished run has left, and what can find it."""

    name: str
    """As `docs/verify.md` has it, where an anchor is needed."""
    found: bool
    """Whether it is found by what lies in the folder alone."""
    change: Callable[[Path, Path], object]
    """Takes the run's folder and that of another run of the same agent."""


def _info(**fields: Any) -> Callable[[Path, Path], object]:
    def change(run: Path, other: Path) -> None:
        del other
        _put(run, json.loads((run / "run.json").read_text()) | fields)

    return change


def _put(run: Path, info: Body) -> None:
    (run / "run.json").write_text(json.dumps(info, indent=2))


def _resealed(**fields: Any) -> Callable[[Path, Path], object]:
    """Changes `run.json`, and makes all hashes new."""

    def change(run: Path, other: Path) -> None:
        _info(**fields)(run, other)
        forge(run, bodies_of(run))

    return change


def _lines(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path, Path], object]:
    return lambda run, other: edit(run, change)


def _file(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path, Path], object]:
    return lambda run, other: (run / name).write_bytes(change((run / name).read_bytes()))


def _bodies(change: Callable[[Bodies], Bodies]) -> Callable[[Path, Path], object]:
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


def _moved_away(name: str) -> Callable[[Path, Path], object]:
    def change(run: Path, other: Path) -> None:
        del other
        away = run.parent / f"away-{Path(name).name}"
        (run / name).rename(away)
        (run / name).symlink_to(away)

    return change


def _page(name: str, text: str) -> Callable[[Path, Path], object]:
    return lambda run, other: (run / "cycles" / name).write_text(text)


def _other_id(run: Path, other: Path) -> None:
    _info(id=other.name)(run, other)
    moved = run.rename(run.with_name("moving"))
    moved.rename(run)


_PAGE = "0001/4-evaluation.json"

TAMPERINGS = (
    *(Tampering(f"trace: {it.name.replace('_', ' ')}", True, _lines(it.change)) for it in EDITS),
    Tampering(
        "trace: two equal keys in a line",
        True,
        _file(
            "trace.jsonl", lambda text: text.replace(b'"body":{', b'"body":{"record":"note",', 1)
        ),
    ),
    Tampering(
        "trace: a byte order mark", True, _file("trace.jsonl", lambda text: b"\xef\xbb\xbf" + text)
    ),
    Tampering("trace: a NUL at the end", True, _file("trace.jsonl", lambda text: text + b"\0")),
    Tampering(
        "trace: white space in a line",
        True,
        _file("trace.jsonl", lambda text: text.replace(b'","', b'", "', 1)),
    ),
    Tampering(
        "trace: other line ends",
        True,
        _file("trace.jsonl", lambda text: text.replace(b"\n", b"\r\n")),
    ),
    Tampering(
        "trace: the last newline taken away", True, _file("trace.jsonl", lambda text: text[:-1])
    ),
    Tampering(
        "trace: a letter written as an escape",
        True,
        _file("trace.jsonl", lambda text: text.replace(b"vase", rb"\u0076ase", 1)),
    ),
    Tampering("trace: cut back to the first turn", True, _cut_to_first_turn),
    Tampering("trace: emptied", True, _file("trace.jsonl", lambda text: b"")),
    Tampering("trace: removed", True, lambda run, other: (run / "trace.jsonl").unlink()),
    Tampering(
        "trace: that of another run",
        True,
        lambda run, other: shutil.copy(other / "trace.jsonl", run / "trace.jsonl"),
    ),
    Tampering("trace: a link to a file elsewhere", True, _moved_away("trace.jsonl")),
    Tampering("run.json: another agent", True, _info(agent="somebody")),
    Tampering("run.json: another model", True, _info(model="large")),
    Tampering("run.json: another seed", True, _info(seed=4)),
    Tampering("run.json: other settings", True, _info(configuration={})),
    Tampering("run.json: other versions", True, _info(versions={})),
    Tampering(
        "run.json: another recipe", True, _info(recipe={"factory": "os:system", "arguments": {}})
    ),
    Tampering("run.json: another beginning", True, _info(started_at="2020-01-01T00:00:00Z")),
    Tampering("run.json: another end", True, _info(ended_at="2020-01-01T00:00:00Z")),
    Tampering(
        "run.json: another result", True, _info(result={"success": True, "summary": "flawless"})
    ),
    Tampering(
        "run.json: another result, the run called unfinished",
        True,
        _info(result={"success": True}, ended_at=None, seal=None),
    ),
    Tampering("run.json: another id", True, _other_id),
    Tampering("run.json: the seal taken away", True, _info(seal=None)),
    Tampering(
        "run.json: that of another run",
        True,
        lambda run, other: shutil.copy(other / "run.json", run / "run.json"),
    ),
    Tampering(
        "run.json: two equal keys",
        True,
        _file("run.json", lambda text: text.replace(b"{", b'{"model": "large",', 1)),
    ),
    Tampering("run.json: a link to a file elsewhere", True, _moved_away("run.json")),
    Tampering(
        "remembered.jsonl: put into the folder",
        True,
        lambda run, other: (run / "remembered.jsonl").write_text("{}\n"),
    ),
    Tampering(
        "page: a word changed",
        True,
        _file(f"cycles/{_PAGE}", lambda text: text.replace(b"allowed", b"refused", 1)),
    ),
    Tampering(
        "page: white space changed", True, _file(f"cycles/{_PAGE}", lambda text: text + b" ")
    ),
    Tampering("page: no JSON any more", True, _page(_PAGE, "")),
    Tampering("page: removed", True, lambda run, other: (run / "cycles" / _PAGE).unlink()),
    Tampering("page: one added", True, _page("0001/7-afterthought.json", "{}")),
    Tampering("page: all removed", True, lambda run, other: shutil.rmtree(run / "cycles")),
    Tampering("page: a link to a file elsewhere", True, _moved_away(f"cycles/{_PAGE}")),
    Tampering("run.json: white space changed", False, _file("run.json", lambda text: text + b"\n")),
    Tampering(
        "run.json: order of keys changed",
        False,
        lambda run, other: _put(
            run, dict(reversed(json.loads((run / "run.json").read_text()).items()))
        ),
    ),
    Tampering("all hashes new: another model", False, _resealed(model="large")),
    Tampering("all hashes new: another result", False, _resealed(result={"success": True})),
    Tampering("all hashes new: the prompts taken out", False, _bodies(_without_prompts)),
    Tampering("all hashes new: cut back to the first turn", False, _bodies(_first_turn)),
    Tampering("all hashes new: made a run of an older version", False, _unsealed),
    Tampering("the end cut off, and the run called killed", False, _killed),
    Tampering("the whole folder: replaced by another run's", False, _another_run),
)
