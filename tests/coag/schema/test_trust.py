"""What a run may have imported: what the user named, and of our own packages two functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kits import importable

import case_study.runner
from coag.errors import ConfigurationError
from coag.schema import from_run

STRANGE = [
    "subprocess:check_output",
    "os:system",
    "antigravity:fly",
    "pip._internal.utils.subprocess:call_subprocess",
    "pip._internal.utils.misc:rmtree",
    "pydantic.deprecated.tools:parse_obj_as",
    "coag.schema:from_import_name",
    "coag.models:open_model",
    "coag.cli:main",
    "coag:CoagAgent",
    "coag.agent.recipes:build_from",
    "case_study.runner:run_case",
    "case_study.runner:CaseFolder.create",
    "case_study.runner.building:build_agent",
    "case_study.runner:build_agent.__globals__",
    "vacuum_world.server:serve",
    "kitsch:build",
]


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("programs_own", [False, True])
def test_what_nobody_named_is_refused_before_it_is_imported(name: str, programs_own: bool) -> None:
    before = set(sys.modules)
    with pytest.raises(ConfigurationError) as refused:
        from_run(name, programs_own=programs_own)
    assert repr(name) in str(refused.value)
    assert set(sys.modules) == before


def test_a_refusal_names_the_option_that_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COAG_TRUST")
    with pytest.raises(ConfigurationError) as refused:
        from_run("kits.importable:triple")
    for way in ("--trust kits.importable", "trust=['kits.importable']", "COAG_TRUST="):
        assert way in str(refused.value)


@pytest.mark.parametrize("trust", ["kits", "kits.importable"])
def test_a_module_is_named_by_itself_or_by_its_package(
    trust: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COAG_TRUST")
    assert from_run("kits.importable:triple", [trust]) is importable.triple
    assert from_run("kits.importable:triple", trust) is importable.triple
    monkeypatch.setenv("COAG_TRUST", f"shop, {trust}")
    assert from_run("kits.importable:triple") is importable.triple


@given(st.from_regex(r"[a-z]{1,6}(\.[a-z]{1,6}){0,2}", fullmatch=True))
def test_a_name_that_only_begins_alike_is_not_named(name: str) -> None:
    with pytest.raises(ConfigurationError):
        from_run(f"shop{name}:build", ["shop"])


@pytest.mark.parametrize("trust", ["", "*", "shop:build", "../shop", "shop."])
def test_what_is_no_name_of_a_module_cannot_be_trusted(trust: str) -> None:
    with pytest.raises(ConfigurationError, match="no name of a module"):
        from_run("shop:build", [trust])


def shop(where: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A module `trusted_shop` with this text."""
    (where / "trusted_shop.py").write_text(text)
    monkeypatch.setattr(sys, "path", [str(where), *sys.path])
    monkeypatch.delitem(sys.modules, "trusted_shop", raising=False)


@pytest.mark.parametrize("name", ["check_output", "sub.check_output", "parse_obj_as", "open_model"])
def test_what_a_trusted_module_has_only_imported_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import subprocess as sub\nfrom subprocess import check_output\n"
        "from pydantic.deprecated.tools import parse_obj_as\nfrom coag.models import open_model\n"
    )
    shop(tmp_path, monkeypatch, text)
    with pytest.raises(ConfigurationError, match=r"no part of an agent|did not name"):
        from_run(f"trusted_shop:{name}", ["trusted_shop"])


def test_a_module_that_raises_is_reported_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop(tmp_path, monkeypatch, "raise ValueError('no key')\n")
    with pytest.raises(ConfigurationError, match="trusted_shop raised ValueError: no key"):
        from_run("trusted_shop:build", ["trusted_shop"])


def test_the_case_studys_factories_are_trusted() -> None:
    for name in ("build_agent", "build_plain_agent"):
        assert from_run(f"case_study.runner:{name}") is getattr(case_study.runner, name)


def test_a_resuming_program_has_named_what_it_imported_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COAG_TRUST")
    assert from_run("kits.importable:triple", programs_own=True) is importable.triple
    with pytest.raises(ConfigurationError, match=r"--trust kits\.nowhere"):
        from_run("kits.nowhere:build", programs_own=True)


_SCRIPT = """
import sys
from coag.errors import ConfigurationError
from coag.schema import from_run

def build():
    return "built"

if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            print(from_run(name, programs_own=True)())
        except ConfigurationError as error:
            print("refused" if "is not imported" in str(error) else error)
"""


@pytest.mark.parametrize("how", [["shop.py"], ["-m", "shop"], ["./shop.py"]])
def test_a_resuming_program_has_named_the_script_it_was_started_with(
    how: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COAG_TRUST")
    (tmp_path / "shop.py").write_text(_SCRIPT)
    (tmp_path / "other.py").write_text(_SCRIPT)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    names = ["other:build", "gone:build", "shop:build"]
    command = [sys.executable, *how, *names]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.stdout.split() == ["refused", "refused", "built"], ended.stderr
