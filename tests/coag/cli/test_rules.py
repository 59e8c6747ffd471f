"""`coag rules`: check, explain and test, their exit codes and JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from kits.tampering import honest_run

from coag.cli import main

GOOD = """\
policy: till
rules:
  - {name: small, tools: pay, never: arguments.amount > 50, because: too much}
  - {name: asked, tools: pay, needs_approval: arguments.amount > 20}
tests:
  - {tool: pay, arguments: {amount: 60}, expect: forbid, by: small}
  - {tool: pay, arguments: {amount: 30}, expect: ask}
  - {tool: pay, arguments: {amount: 10}, expect: allow}
"""


TOOLS = """\
def pay(amount: float) -> str:
    return f"{amount}"


TOOLS = [pay]
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command: its exit code, and what it printed on standard output."""

    def call(*words: str | Path) -> tuple[int, str]:
        with pytest.raises(SystemExit) as ended:
            main(["rules", *map(str, words)])
        return int(ended.value.code or 0), capsys.readouterr().out

    return call


@pytest.fixture
def good(tmp_path: Path) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD)
    return tmp_path / "good.yaml"


def test_check_ends_with_one_and_each_place_where_something_is_wrong(
    run: Any, good: Path, tmp_path: Path
) -> None:
    assert run("check", good) == (0, "")
    bad = tmp_path / "bad.yaml"
    bad.write_text("rules:\n  - {name: a, tools: pay, nevr: true}\n")
    code, out = run("check", bad)
    assert (code, out) == (1, f"{bad}:2:27: there is no key 'nevr' here; did you mean 'never'?\n")
    code, out = run("check", bad, "--json")
    (problem,) = json.loads(out)["problems"]
    assert (code, problem["line"], problem["column"]) == (1, 2, 27)
    assert run("explain", bad)[0] == run("test", bad)[0] == 1


def test_check_holds_a_file_against_tools(
    run: Any, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools_of_a_till.py").write_text(TOOLS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    tools, package = "tools_of_a_till:TOOLS", "tools_of_a_till"
    assert run("check", good, "--tools", tools, "--trust", package)[0] == 0
    other = tmp_path / "other.yaml"
    other.write_text(GOOD.replace("tools: pay, never", "tools: [pay, payy], never"))
    other.write_text(other.read_text().replace("arguments.amount > 20", "arguments.amout > 20"))
    code, out = run("check", other, "--tools", tools, "--trust", package)
    assert code == 1
    assert "'payy', which no tool is; did you mean 'pay'?" in out
    assert "'amout', which 'pay' does not take; did you mean 'amount'?" in out
    assert run("check", good, "--tools", tools)[0] == 2  # importing runs code
    pattern = "has(arguments.amout) && arguments.amout > 20"
    other.write_text(f"rules:\n  - {{name: a, tools: 'pa*', never: {pattern}}}\n")
    code, out = run("check", other, "--tools", tools, "--trust", package)
    assert code == 1
    assert "'amout', which no tool of pa* takes; did you mean 'amount'?" in out


def test_what_is_trusted_may_be_a_module_of_the_current_folder(
    run: Any, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools_in_this_folder.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    words = ("check", good, "--tools", "tools_in_this_folder:TOOLS")
    assert run(*words)[0] == 2
    assert str(tmp_path) not in sys.path
    assert run(*words, "--trust", "tools_in_this_folder")[0] == 0


def test_explain_says_the_rules_of_one_tool(run: Any, good: Path) -> None:
    code, out = run("explain", good)
    assert code == 0
    assert out.splitlines() == [
        "small: Never pay when arguments.amount > 50, because too much.",
        "asked: pay needs approval when arguments.amount > 20.",
    ]
    assert run("explain", good, "--tool", "look") == (0, "")
    said = json.loads(run("explain", good, "--tool", "pay", "--json")[1])
    assert [one["kind"] for one in said["rules"]] == ["never", "needs_approval"]


def test_test_judges_the_cases_of_the_file_or_of_another(
    run: Any, good: Path, tmp_path: Path
) -> None:
    code, out = run("test", good)
    assert code == 0
    assert "line 6: pay(amount=60): forbid by small: too much" in out
    cases = tmp_path / "cases.yaml"
    cases.write_text("tests:\n- {tool: pay, arguments: {amount: 60}, expect: allow}\n")
    code, out = run("test", good, "--cases", cases, "--json")
    said = json.loads(out)
    assert (code, said["failed"], said["cases"][0]["got"]) == (1, 1, "forbid")
    cases.write_text("tests: []")
    assert run("test", good, "--cases", cases)[0] == 2


@pytest.mark.broken_trace("it empties a trace")
async def test_check_takes_the_tools_of_a_run_or_of_one_function_and_refuses_others(
    run: Any, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one_tool.py").write_text(TOOLS + "NONE = 5\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for tools, code in (("one_tool:pay", 0), ("one_tool:NONE", 2)):
        assert run("check", good, "--tools", tools, "--trust", "one_tool")[0] == code

    folder = await honest_run(tmp_path / "logs", depth="compact")
    code, out = run("check", good, "--tools", folder, "--json")
    (problem, _) = json.loads(out)["problems"]
    assert (code, "'pay', which no tool is" in problem["text"]) == (1, True)
    (folder / "trace.jsonl").write_text("")
    assert run("check", good, "--tools", folder)[0] == 2
