"""Memories and tools as AutoGen components."""

from __future__ import annotations

import json
import runpy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from autogen_core import CancellationToken, ComponentModel
from autogen_core.code_executor import Alias, ImportFromModule
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType
from autogen_core.tools import (
    BaseTool,
    FunctionTool,
    StaticStreamWorkbench,
    StaticWorkbench,
    ToolOverride,
    Workbench,
)
from hypothesis import given
from hypothesis import strategies as st
from kits.importable import FixedClock, LengthEmbedder, triple
from pydantic import BaseModel

from coag.compat import (
    AutoGenMemory,
    ImportedTool,
    SourceTool,
    ToolRunner,
    load_tool,
    load_workbench,
    tool,
    tool_component,
    workbench_component,
)
from coag.errors import ConfigurationError
from coag.memory import LongTermMemory, LongTermMemoryConfig
from coag.schema import MemoryKind, SteppingClock
from coag.store import HashEmbedder, InMemoryStore, chroma_embedder, open_store


def as_text(component: ComponentModel) -> str:
    return component.model_dump_json(exclude_none=True)


def parsed(component: ComponentModel) -> ComponentModel:
    return ComponentModel.model_validate(json.loads(as_text(component)))


# ---- memories ----


@given(
    location=st.sampled_from([None, "memories/tank", Path("memories"), "https://memory:8001"]),
    embedder=st.sampled_from([None, HashEmbedder(16), LengthEmbedder()]),
    kind=st.sampled_from(MemoryKind),
    k=st.integers(1, 9),
    min_score=st.none() | st.floats(0, 1),
    clock=st.sampled_from([None, FixedClock()]),
)
def test_every_round_trip_of_a_memory_is_equal(
    location: Path | str | None, embedder: Any, kind: MemoryKind, clock: Any, **options: Any
) -> None:
    store = open_store(location, embedder=embedder)
    memory = AutoGenMemory(LongTermMemory(store, scope="clerk", clock=clock), kind=kind, **options)
    dumped = memory.dump_component()
    loaded = Memory.load_component(parsed(dumped))
    assert type(loaded) is AutoGenMemory
    assert as_text(loaded.dump_component()) == as_text(dumped)
    assert dumped.provider == "coag.compat.AutoGenMemory"


async def test_what_is_remembered_is_not_in_a_component() -> None:
    memory = AutoGenMemory(LongTermMemory(InMemoryStore(HashEmbedder()), scope="clerk"))
    before = as_text(memory.dump_component())
    await memory.add(MemoryContent(content="The door is red.", mime_type=MemoryMimeType.TEXT))
    assert as_text(memory.dump_component()) == before
    loaded = Memory.load_component(parsed(memory.dump_component()))
    assert (await loaded.query("door")).results == []


@pytest.mark.parametrize(
    "address", ["http://me@memory:8000", "http://me:word@memory:8000", "http://memory:80?key=word"]
)
def test_an_address_with_a_secret_is_refused_without_showing_it(address: str) -> None:
    memory = LongTermMemory(open_store(address), scope="clerk")
    with pytest.raises(ConfigurationError) as refused:
        LongTermMemoryConfig.of(memory)
    assert "word" not in str(refused.value).replace("password", "")


class OtherStore(InMemoryStore):
    """No store of ours."""


class Friend:
    """A source of recall that holds something."""

    def __init__(self) -> None:
        self.name = "friend"

    async def recall(self, query: str, k: int) -> list[Any]:
        return []


def _lengths(input: Any) -> Any:
    return [[float(len(text))] for text in input]


@pytest.mark.parametrize(
    ("memory", "error"),
    [
        (lambda: LongTermMemory(OtherStore(), scope="x"), "OtherStore cannot be written down"),
        (lambda: LongTermMemory(InMemoryStore(chroma_embedder(_lengths)), scope="x"), "_lengths"),
        (lambda: LongTermMemory(InMemoryStore(), scope="x", clock=SteppingClock()), "Stepping"),
        (lambda: LongTermMemory(InMemoryStore(), scope="x", sources=[Friend()]), "Friend"),
    ],
)
def test_a_memory_that_cannot_be_opened_again_is_refused(
    memory: Callable[[], LongTermMemory], error: str
) -> None:
    with pytest.raises(ConfigurationError, match=error):
        LongTermMemoryConfig.of(memory())


def test_an_embedder_that_nobody_knows_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'word2vec'"):
        LongTermMemoryConfig.model_validate(
            {"scope": "x", "store": {"embedder": "word2vec"}}
        ).open()


# ---- tools ----


async def used(tool: BaseTool[Any, Any], **arguments: Any) -> Any:
    return await tool.run_json(arguments, CancellationToken())


def quietly(component: ComponentModel) -> BaseTool[Any, Any]:
    """The tool; AutoGen warns of source that runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return load_tool(component)


@given(strict=st.booleans(), name=st.sampled_from([None, "thrice"]), text=st.text(max_size=9))
def test_every_round_trip_of_an_importable_function_is_equal(
    strict: bool, name: str | None, text: str
) -> None:
    dumped = tool_component(FunctionTool(triple, text, name=name, strict=strict))
    loaded = load_tool(parsed(dumped))
    assert isinstance(loaded, ImportedTool)
    assert tool_component(loaded) == dumped
    assert loaded.schema == FunctionTool(triple, text, name=name, strict=strict).schema


async def test_a_loaded_function_uses_the_names_of_its_module() -> None:
    component = tool_component(triple)
    assert component.provider == "coag.compat.ImportedTool"
    assert component.config["function"] == "kits.importable:triple"
    assert component.config["description"] == "Three times a number."
    assert await used(load_tool(parsed(component)), number=4) == 12


@pytest.mark.parametrize("strict", [None, True])
async def test_a_function_of_its_own_goes_by_its_source_and_can_be_dumped_again(
    strict: bool | None,
) -> None:
    def double(number: int) -> int:
        return 2 * number

    if strict is None:
        component = FunctionTool(double, "Doubles.").dump_component()  # as AutoGen writes it
    else:
        component = tool_component(FunctionTool(double, "Doubles.", strict=strict))
    loaded = quietly(parsed(component))
    assert isinstance(loaded, SourceTool)
    assert await used(loaded, number=4) == 8
    assert loaded.schema.get("strict") is bool(strict)
    assert tool_component(quietly(parsed(tool_component(loaded)))) == tool_component(loaded)


async def test_what_is_declared_of_a_function_is_known_of_the_loaded_tool() -> None:
    loaded = load_tool(tool_component(looks))
    (spec,) = await ToolRunner([loaded]).specs()
    assert spec.read_only


@tool(read_only=True)
def looks(number: int) -> int:
    """Looks."""
    return number


def _local_tools() -> list[tuple[Any, str]]:
    rate = 3

    def closing(number: int) -> int:
        return rate * number

    def leaning(number: int) -> str:
        return json.dumps(number)

    def outer(items: list[int]) -> list[int]:
        def inner(item: int) -> int:
            return item + len(json.dumps(items))

        return [inner(item) for item in items]

    from math import floor

    def lower(number: float) -> int:
        return floor(number)

    class Bound:
        def method(self, number: int) -> int:
            return number

    return [
        (FunctionTool(closing, "x"), "closes over rate"),
        (FunctionTool(leaning, "x"), "uses json of its module"),
        (FunctionTool(outer, "x"), "uses json of its module"),
        (
            FunctionTool(lower, "x", global_imports=[ImportFromModule("math", ("floor",))]),
            "closes over floor",
        ),
        (FunctionTool(Bound().method, "x"), "'method' is a method"),
        (FunctionTool(lambda: 1, "x", name="one"), "'one'"),
    ]


@pytest.mark.parametrize(("tool", "error"), _local_tools())
def test_a_tool_whose_source_does_not_stand_alone_is_refused(tool: Any, error: str) -> None:
    with pytest.raises(ConfigurationError, match=error):
        tool_component(tool)


SCRIPT = """
from coag.compat import tool_component
from coag.errors import ConfigurationError

RATE = 3

def thrice(number: int) -> int:
    return 3 * number

def rated(number: int) -> int:
    return RATE * number

alone = tool_component(thrice)
try:
    tool_component(rated)
except ConfigurationError as error:
    refused = str(error)
"""


def test_a_tool_of_the_script_that_runs_goes_by_its_source_if_that_is_complete(
    tmp_path: Path,
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    left = runpy.run_path(str(tmp_path / "script.py"), run_name="__main__")
    assert left["alone"].provider == "coag.compat.SourceTool"
    assert "uses RATE of its module" in left["refused"]


@pytest.mark.parametrize(
    "imports", [["json"], [Alias("json", "json")], [ImportFromModule("json", ("dumps", "loads"))]]
)
def test_listed_imports_make_a_source_stand_alone(imports: Any) -> None:
    def leaning(number: int) -> str:
        return json.dumps(number)

    def bound(number: int) -> str:
        return dumps(number)  # type: ignore[name-defined] # pyright: ignore # noqa: F821

    function = bound if isinstance(imports[0], ImportFromModule) else leaning
    tool = FunctionTool(function, "x", global_imports=imports)
    loaded = quietly(parsed(tool_component(tool)))
    assert as_text(tool_component(loaded)) == as_text(tool_component(tool))


def test_a_secret_in_a_source_is_refused() -> None:
    def fetch(page: int) -> str:
        return "Bearer 0123456789abcdef0123" + str(page)

    with pytest.raises(ConfigurationError, match=r"secret, at 'source_code'"):
        tool_component(FunctionTool(fetch, "x"))


class Undescribed(BaseTool[Any, Any]):
    """A tool that is no component."""

    def __init__(self) -> None:

        super().__init__(BaseModel, str, "undescribed", "x")

    async def run(self, args: Any, cancellation_token: CancellationToken) -> str:
        return ""


def test_a_tool_that_is_no_component_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="Tool 'undescribed'"):
        tool_component(Undescribed())


# ---- workbenches ----


@pytest.mark.parametrize("kind", [StaticWorkbench, StaticStreamWorkbench])
async def test_a_static_workbench_keeps_its_tools_and_can_be_dumped_again(
    kind: type[StaticWorkbench],
) -> None:
    overrides = {"triple": ToolOverride(name="thrice")}
    bench = kind([FunctionTool(triple, "x")], tool_overrides=overrides)
    dumped = workbench_component(bench)
    loaded = load_workbench(parsed(dumped))
    assert type(loaded) is kind
    assert [tool["name"] for tool in await loaded.list_tools()] == ["thrice"]
    assert workbench_component(loaded) == dumped
    stock = Workbench.load_component(parsed(dumped))
    assert (await stock.call_tool("thrice", {"number": 2})).to_text() == "6"


class Watched(StaticWorkbench):
    """A workbench that inherits its parent's provider."""


def test_a_workbench_that_inherits_its_provider_is_dumped_as_itself() -> None:
    assert workbench_component(Watched([])).provider.endswith("Watched")
