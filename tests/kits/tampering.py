"""Ways to lie in a trace, and honest runs to lie about.

A clumsy hand edits the lines of the file. An informed one rewrites records and then makes the
whole chain and the seal anew; only what the records say of each other can give it away.
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

from coag import CoagAgent, Verdict
from coag.proof import Rule
from coag.schema import Candidate
from coag.tracing import PhasePages, closing_hash, file_hash, opening_hash, read_lines

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
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
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
    made = PhasePages(run / "cycles")
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
