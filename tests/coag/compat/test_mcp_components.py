from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from autogen_core import ComponentModel
from autogen_core.tools import ToolOverride, Workbench
from kits.mcp_client import on_stdio

from coag.compat import ConstrainedWorkbench
from coag.compat.mcp import (
    McpLimits,
    PinnedMcpWorkbench,
    StdioServerParams,
    StreamableHttpServerParams,
)
from coag.errors import ConfigurationError

SECRET = "correct-horse-battery"


def described(workbench: PinnedMcpWorkbench) -> dict[str, Any]:
    return workbench.dump_component().config


def test_a_workbench_goes_through_a_component_and_back() -> None:
    workbench = PinnedMcpWorkbench(
        on_stdio("--other", TOKEN="${MY_TOKEN}"),
        pins=Path("pins.json"),
        trust_first_use=False,
        limits=McpLimits(call_seconds=7),
        tool_overrides={"add": ToolOverride(name="sum")},
    )
    component = ComponentModel.model_validate_json(workbench.dump_component().model_dump_json())
    assert component.provider == "coag.compat.mcp.PinnedMcpWorkbench"
    loaded = Workbench.load_component(component)
    assert isinstance(loaded, PinnedMcpWorkbench)
    assert loaded.dump_component() == workbench.dump_component()


def test_a_stock_workbench_with_the_shells_directory_can_be_written_down() -> None:
    variables = {"PATH": "/bin", "PWD": "/srv/agents", "HOME": "/srv/ann"}
    autogen_mcp = pytest.importorskip("autogen_ext.tools.mcp", exc_type=ImportError)
    params = autogen_mcp.StdioServerParams(command="x", env=variables)
    stock = autogen_mcp.McpWorkbench(params)
    component = ConstrainedWorkbench(stock).dump_component()
    assert "/srv/agents" in component.model_dump_json()


@pytest.mark.parametrize(
    ("params", "reference"),
    [
        (StdioServerParams(command="x", env={"pass_it": SECRET}), "${pass_it}"),
        (StdioServerParams(command="x", env={"A": f"{SECRET}${{B}}"}), "${A}"),
        (StreamableHttpServerParams(url="http://x/", headers={"X-Key": SECRET}), "${X_KEY}"),
        (
            StreamableHttpServerParams(url="http://x/", headers={"A": "Bearer ${KEY}"}),
            "Bearer ${KEY}",
        ),
    ],
)
def test_values_of_variables_and_headers_are_dumped_as_references(
    params: Any, reference: str
) -> None:
    dumped = str(described(PinnedMcpWorkbench(params)))
    assert SECRET not in dumped
    assert f"'{reference}'" in dumped


@pytest.mark.parametrize(
    "params",
    [
        StdioServerParams(command="x", args=["--token=abcdef123456"]),
        StdioServerParams(command="x", args=["--token", "abcdef123456"]),
        StdioServerParams(command="x", args=["--header", "X-Api-Key: abcdef123456"]),
        StdioServerParams(command="x", args=["--token", "${ONE}abcdef123456"]),
        StreamableHttpServerParams(url="http://me:abcdef123456@x/"),
        StreamableHttpServerParams(url="http://x/mcp?k=abcdef123456"),
        StreamableHttpServerParams(url="http://x/mcp?abcdef123456"),
        StreamableHttpServerParams(url="http://x/mcp#abcdef123456"),
    ],
)
def test_a_secret_in_an_argument_or_address_is_not_dumped_but_refused(
    params: Any,
) -> None:
    with pytest.raises(ConfigurationError, match="cannot be dumped") as caught:
        PinnedMcpWorkbench(params).dump_component()
    assert "abcdef123456" not in str(caught.value)


def test_the_value_of_a_secret_variable_is_not_dumped_as_an_argument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)
    with pytest.raises(ConfigurationError, match="cannot be dumped"):
        PinnedMcpWorkbench(StdioServerParams(command="x", args=["at", SECRET])).dump_component()


@pytest.mark.parametrize(
    "params",
    [
        StdioServerParams(command="x", args=["--token", "${KEY}", "--verbose"]),
        StdioServerParams(command="x", args=["--token=${KEY}", "--passes", "3"]),
        StdioServerParams(command="x", args=["--token", "--verbose"]),
        StreamableHttpServerParams(url="http://x:80/mcp?key=${KEY}&${MORE}"),
    ],
)
def test_references_in_arguments_and_addresses_are_dumped(params: Any) -> None:
    loaded = PinnedMcpWorkbench.load_component(PinnedMcpWorkbench(params).dump_component())
    assert described(loaded) == described(PinnedMcpWorkbench(params))


@pytest.mark.slow
async def test_references_are_filled_in_when_the_server_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dumped = PinnedMcpWorkbench(on_stdio(MY_TOKEN=SECRET)).dump_component()
    monkeypatch.setenv("MY_TOKEN", SECRET)
    async with PinnedMcpWorkbench.load_component(dumped) as workbench:
        variable = await workbench.call_tool("variable", {"name": "MY_TOKEN"})
        assert variable.to_text() == SECRET
        assert SECRET not in str(workbench.dump_component())


def test_a_read_timeout_that_was_given_is_the_time_of_a_call() -> None:
    stdio = StdioServerParams(command="x", read_timeout_seconds=9)
    http = StreamableHttpServerParams(url="http://x/", sse_read_timeout=8)
    plain = StdioServerParams(command="x")
    seconds = [
        described(PinnedMcpWorkbench(params))["limits"]["call_seconds"]
        for params in (stdio, http, plain)
    ]
    assert seconds == [9, 8, 60]


def test_another_transport_is_refused() -> None:
    autogen_mcp = pytest.importorskip("autogen_ext.tools.mcp", exc_type=ImportError)
    with pytest.raises(ConfigurationError, match="SseServerParams is no server"):
        PinnedMcpWorkbench(autogen_mcp.SseServerParams(url="http://x/"))


def test_parameters_of_autogen_are_taken_as_they_are() -> None:
    autogen_mcp = pytest.importorskip("autogen_ext.tools.mcp", exc_type=ImportError)
    fields: dict[str, Any] = {"command": "x", "args": ["y"], "env": {"A": "${B}"}}
    theirs = PinnedMcpWorkbench(autogen_mcp.StdioServerParams(**fields))
    assert described(theirs) == described(PinnedMcpWorkbench(StdioServerParams(**fields)))


IMPORTS = "import coag.compat\nimport coag.compat.mcp"


def imported(tmp_path: Path, code: str, imports: str = IMPORTS) -> str:
    """What a new interpreter says when it imports the module after this code."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{imports}"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.splitlines()[-1]


def other_mcp(folder: Path, version: str) -> None:
    """Puts an mcp package of another version first."""
    (folder / f"mcp-{version}.dist-info").mkdir()
    metadata = f"Metadata-Version: 2.1\nName: mcp\nVersion: {version}\n"
    (folder / f"mcp-{version}.dist-info" / "METADATA").write_text(metadata)


WITHOUT_MCP = (
    "import sys, importlib.metadata as m\n"
    "real = m.version\n"
    "def version(name):\n"
    "    if name == 'mcp': raise m.PackageNotFoundError(name)\n"
    "    return real(name)\n"
    "m.version, sys.modules['mcp'] = version, None"
)
EXAMPLE = Path(__file__).parents[3] / "examples" / "mcp_tools.py"


@pytest.mark.parametrize(
    "imports",
    [IMPORTS, f"import runpy\nrunpy.run_path({str(EXAMPLE)!r})"],
    ids=["module", "example"],
)
def test_without_the_mcp_package_the_extra_is_named(tmp_path: Path, imports: str) -> None:
    error = imported(tmp_path, WITHOUT_MCP, imports)
    assert error.startswith("coag.errors.ConfigurationError: Tools of MCP servers need the package")
    assert 'mcp>=1.21.2,<3. Run: pip install "coag[mcp]"' in error


def test_an_mcp_package_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    other_mcp(tmp_path, "2.3.0")
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").touch()
    error = imported(tmp_path, "")
    assert "ConfigurationError: mcp 2.3.0 is installed and cannot be used" in error


def test_a_version_that_was_not_tried_is_refused_even_if_it_can_be_imported(
    tmp_path: Path,
) -> None:
    other_mcp(tmp_path, "1.20.0")
    error = imported(tmp_path, "")
    assert "ConfigurationError: mcp 1.20.0 is installed and cannot be used" in error
