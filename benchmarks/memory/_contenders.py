"""Who takes part in which measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from coag.store import Embedder, open_store

from ._contender import Contender, Correctable, Findable, Item
from ._locomo import LocomoStore, locomo_store_assistant
from ._others import AutoGenMemory, BareChroma, LangGraphStore, Mem0, Vectors
from ._ours import WORDS_ALONE, FactMemory

OURS = "coag"
_MEM0 = "mem0 (infer=False)"
_LANGMEM = "LangMem's store"


class WithDetails:
    """A memory that sees only texts, with what else is known put into the text."""

    def __init__(self, memory: Findable) -> None:
        self._memory = memory

    def add(self, turns: Sequence[Item]) -> None:
        """With speaker, date and caption before and after the words."""
        self._memory.add([(name, _detailed(text, known), known) for name, text, known in turns])

    def query(self, text: str, k: int) -> list[str]:
        """See `Findable.query`."""
        return self._memory.query(text, k)

    def close(self) -> None:
        """See `Findable.close`."""
        self._memory.close()


def finders(embedder: Embedder | None = None) -> list[Contender]:
    """Who finds turns of conversations; each but the last gets what fields it has room for."""
    vectors = Vectors(embedder)

    def autogen(folder: Path) -> AutoGenMemory:
        return AutoGenMemory(folder, vectors)

    return [
        Contender(
            name=f"{OURS}, RAM", make=lambda _: LocomoStore(open_store(None, embedder=embedder))
        ),
        Contender(
            name=f"{OURS}, assistant", make=lambda _: locomo_store_assistant(embedder=embedder)
        ),
        Contender(
            name=f"{OURS}, Chroma folder",
            make=lambda folder: LocomoStore(open_store(folder, embedder=embedder)),
        ),
        Contender(
            name=f"{OURS}, dense alone",
            make=lambda _: LocomoStore(open_store(None, embedder=embedder), None),
        ),
        Contender(
            name=f"{OURS}, words alone",
            make=lambda _: LocomoStore(open_store(None, embedder=embedder), WORDS_ALONE),
        ),
        Contender(name="ChromaDBVectorMemory", make=autogen),
        Contender(
            name="ChromaDBVectorMemory, details", make=lambda folder: WithDetails(autogen(folder))
        ),
        *_if_installed(vectors),
        Contender(
            name=f"{_MEM0}, details",
            make=(lambda folder: WithDetails(Mem0(folder, vectors))) if find_spec("mem0") else None,
        ),
    ]


def keepers(embedder: Embedder | None = None) -> list[Contender]:
    """Who keeps facts straight; all of them are `Correctable`."""
    vectors = Vectors(embedder)
    return [
        Contender(name=f"{OURS}, facts", make=lambda _: FactMemory(embedder=embedder)),
        Contender(
            name=f"{OURS}, text alone",
            make=lambda _: FactMemory(embedder=embedder, as_facts=False),
        ),
        Contender(name="ChromaDBVectorMemory", make=lambda folder: AutoGenMemory(folder, vectors)),
        Contender(
            name="Chroma, a key a fact",
            make=lambda folder: BareChroma(folder, vectors, keyed=True),
        ),
        *_if_installed(vectors),
    ]


def chosen(contenders: Sequence[Contender], words: Sequence[str]) -> list[Contender]:
    """Those whose name has one of the words in it."""
    return [one for one in contenders if any(word in one.name for word in words)]


def open_keeper(contender: Contender, folder: Path) -> Correctable:
    """A keeper in its folder.

    Raises:
        ValueError: It is not installed, or cannot take anything back.
    """
    if contender.make is None:
        raise ValueError(f"{contender.name!r} is not installed.")
    memory: Any = contender.make(folder)
    if not hasattr(memory, "retract"):
        raise ValueError(f"{contender.name!r} cannot be asked to take something back.")
    return memory


def _if_installed(vectors: Vectors) -> list[Contender]:
    makers: Mapping[str, tuple[str, Callable[[Path], Findable]]] = {
        _MEM0: ("mem0", lambda folder: Mem0(folder, vectors)),
        _LANGMEM: ("langgraph", lambda _: LangGraphStore(vectors)),
    }
    return [
        Contender(name=name, make=make if find_spec(module) else None)
        for name, (module, make) in makers.items()
    ]


def _detailed(text: str, known: Mapping[str, Any]) -> str:
    caption = f" [shares a photo: {known['caption']}]" if known.get("caption") else ""
    return f"[{known.get('date', '')}] {known.get('speaker', '')}: {text}{caption}"
