"""A memory in a folder, made once for all tests of a module, and copies of it to be changed."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kits.remembered import START, remembered
from kits.statements import origin

from coag.memory import LongTermMemory, ProceduralMemory, RuleChange
from coag.schema import Event, Fact, MemoryKind, Record, SteppingClock, Trust
from coag.store import ChromaStore, HashEmbedder

EMBEDDER = "hash-64"
HOSTILE = "Look\x1b[2J here\u202e at \U000e0041once\x07"


async def _filled(folder: Path) -> dict[str, str]:
    """Fills a folder as an agent would; gives the records' ids by a word for each."""
    store = ChromaStore(folder / "long_term", HashEmbedder(64))
    memory = LongTermMemory(store, scope="alice", clock=SteppingClock(START))
    ids: dict[str, str] = {}

    async def tell(name: str, text: str, *, derived: tuple[str, ...] = (), **more: str) -> Record:
        trust = Trust(more.get("trust", "user"))
        done = await memory.remember(
            MemoryKind.SEMANTIC,
            text,
            provenance=origin(more.get("source", "alice"), trust, "agent", run="run-1"),
            fact=Fact(subject="charger", attribute="place", value=more["value"])
            if "value" in more
            else None,
            derived_from=[ids[one] for one in derived],
        )
        ids[name] = done.record.id
        return done.record

    await tell("first", "The charger stands at the door.", value="door")
    await tell("charger", "The charger stands at the window.", value="window")
    await tell("lie", "The charger stands in the cellar.", value="cellar", trust="untrusted")
    await tell("derived", "Go down to the cellar to charge.", derived=("lie",))
    others = [
        remembered(
            f"An obstacle blocks cell ({x},1).", minutes=x, type="obstacle", metadata={"x": x}
        )
        for x in range(5)
    ]
    happened = Event(episode="walk", order=1, place="hall")
    others += [
        remembered("A walk through the hall.", minutes=9, event=happened),
        remembered(HOSTILE, minutes=10, trust=Trust.UNTRUSTED, source="\x1b[31mmallory"),
        remembered("Bob likes tea.", kind=MemoryKind.SEMANTIC, scope="bob", minutes=11),
    ]
    await store.add(others)
    ids |= {"obstacle": others[0].id, "walk": others[5].id, "hostile": others[6].id}
    ids["bob"] = others[7].id
    procedures = ProceduralMemory(path=folder / "procedures.json")
    procedures.change_rule(  # as the agent's own action does
        "reasoning",
        RuleChange(operation="add", rule="Charge in the cellar when the battery is low."),
        author="alice",
        reason="It was told so.",
        origins=(ids["lie"],),
    )
    await memory.close()
    return ids


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with a memory that no test changes, and the ids in it."""
    folder = tmp_path_factory.mktemp("memory") / "alice"
    folder.mkdir()
    return folder, asyncio.run(_filled(folder))


@pytest.fixture
def ids(filled: tuple[Path, dict[str, str]]) -> dict[str, str]:
    return filled[1]


@pytest.fixture
def kept(filled: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The memory that no test changes, as the one that commands mean."""
    monkeypatch.setenv("COAG_MEMORY", str(filled[0]))
    monkeypatch.setenv("COAG_EMBEDDER", EMBEDDER)
    return filled[0]


@pytest.fixture
def own(
    filled: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A copy of the memory, to be changed."""
    folder = tmp_path / "alice"
    shutil.copytree(filled[0], folder)
    monkeypatch.setenv("COAG_MEMORY", str(folder))
    monkeypatch.setenv("COAG_EMBEDDER", EMBEDDER)
    return folder


@pytest.fixture
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a person sit there who answers a question so."""

    def answering(answer: str) -> None:
        monkeypatch.setattr("sys.stdin", _Terminal(answer))

    return answering


@pytest.fixture
def editing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes a line of shell the person's editor; `$1` is the file."""

    def by(script: str) -> None:
        editor = tmp_path / "editor.sh"
        editor.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        editor.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(editor))
        monkeypatch.setenv("VISUAL", str(editor))

    return by


class _Terminal:
    """A terminal at which somebody has typed some lines."""

    encoding = "utf-8"

    def __init__(self, typed: str) -> None:
        self._lines = [line + "\n" for line in typed.split("\n")]

    def isatty(self) -> bool:
        return True

    def readline(self, *_: int) -> str:
        return self._lines.pop(0) if self._lines else ""
