"""Commands on a stranger's run: nothing it names is imported or called, unless the user said so."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kits.foragers import calls, foraged
from kits.tills import refunded, touched

from coag.tracing import RunFolder

Say = Callable[..., Any]
COMMANDS = [
    ("replay", "latest"),
    ("fork", "latest", "--at", "1"),
    ("why", "latest", "1", "--counterfactual"),
    ("verify", "latest", "--hooks"),
]
HARMFUL = [
    "subprocess:check_output",
    "pip._internal.utils.subprocess:call_subprocess",
    "coag.cli:main",
    "strangers_file:build",
]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return asyncio.run(foraged(tmp_path))


def names(run: RunFolder, factory: str, **arguments: object) -> None:
    info = json.loads(run.info_path.read_text())
    values = arguments or info["recipe"]["arguments"]
    recipe = {"factory": factory, "arguments": values}
    run.info_path.write_text(json.dumps({**info, "recipe": recipe}))


@pytest.mark.broken_trace("what the run names is changed on purpose")
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("factory", HARMFUL)
def test_what_a_strangers_run_names_is_not_imported(
    words: tuple[str, ...], factory: str, run: RunFolder, say: Say, tmp_path: Path
) -> None:
    (tmp_path / "strangers_file.py").write_text("open('done', 'w')\n")
    names(run, factory, args=["touch", "done"], cmd=["touch", "done"], arguments=["--version"])
    result = say(*words)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert repr(factory) in result.err
    assert not (tmp_path / "done").exists()
    assert "strangers_file" not in sys.modules


@pytest.mark.broken_trace("what the run names is changed on purpose")
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_what_the_user_names_is_imported(
    words: tuple[str, ...], run: RunFolder, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COAG_TRUST")
    refused = say(*words)
    assert refused.code == 2
    assert "--trust kits.foragers" in refused.err
    assert say(*words, "--trust", "kits").code in (0, 1)
    monkeypatch.setenv("COAG_TRUST", "kits.foragers")
    assert say(*words).code in (0, 1)


@pytest.mark.broken_trace("what the run names is changed on purpose")
@pytest.mark.parametrize("agent", ["subprocess:check_output", "strangers_file:build"])
def test_a_hosted_agents_run_names_no_other_code_either(
    agent: str, run: RunFolder, say: Say, tmp_path: Path
) -> None:
    (tmp_path / "strangers_file.py").write_text("open('done', 'w')\n")
    names(run, "coag.distributed:build_again", agent=agent, type="t", key="k", logs=None)
    result = say("replay", "latest")
    assert result.code == 2
    assert repr(agent) in result.err
    assert not (tmp_path / "done").exists()


@pytest.mark.broken_trace("what the run names is changed on purpose")
def test_a_file_in_the_current_folder_cannot_pass_for_our_own(
    run: RunFolder, say: Say, tmp_path: Path
) -> None:
    names(run, "case_study.runner:build_agent")
    (tmp_path / "case_study").mkdir()
    (tmp_path / "case_study" / "__init__.py").write_text("open('done', 'w')\n")
    assert say("replay", "latest").code == 2
    assert not (tmp_path / "done").exists()


# ---- acting for real ----


def test_a_fork_may_act_for_real_only_after_a_yes(
    tmp_path: Path, say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind = asyncio.run(foraged(tmp_path, world=False))
    before = calls(tmp_path)
    words = ("fork", blind.path.name, "--at", "2", "--live")
    result = say(*words)
    assert result.code == 2
    assert "--yes" in result.err
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert "Nothing was forked" in say(*words).err
    assert calls(tmp_path) == before
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert say(*words).code == 0
    assert say(*words, "--yes").code == 0
    assert len(calls(tmp_path)) > len(before)


class Terminal:
    """Somebody at a keyboard who types one line."""

    def __init__(self, line: str) -> None:
        self.line = line

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.line


@pytest.mark.parametrize("copies", ["raises", "broken"])
@pytest.mark.parametrize("words", [("fork", "--at", "2"), ("why", "2", "--counterfactual")])
def test_a_factory_and_a_restore_that_raise_give_one_line(
    copies: str, words: tuple[str, ...], tmp_path: Path, say: Say
) -> None:
    folder, till = asyncio.run(refunded(tmp_path, copies))
    command, *rest = words
    result = say(command, folder.path.name, *rest)
    assert result.code == 2
    assert "raised" in result.err
    assert result.err.count("\n") == 1
    assert (till.refunds(), touched(till)) == (["7", "8", "9"], [])
