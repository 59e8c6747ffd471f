"""There is one version, and everything that names it agrees."""

import tomllib
from importlib.metadata import version
from pathlib import Path

import coag


def _declared(repository: Path) -> str:
    text = (repository / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]["version"]


def test_installed_version_is_the_declared_one(repository: Path) -> None:
    assert version("coag") == coag.__version__ == _declared(repository)


def test_changelog_has_a_heading_for_the_version(repository: Path) -> None:
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    declared = _declared(repository)
    heading = "Unreleased" if ".dev" in declared else declared
    assert f"\n## [{heading}]" in changelog


def test_no_line_of_the_changelog_is_longer_than_25_words(repository: Path) -> None:
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    lines = [line for line in changelog.splitlines() if line.startswith("- ")]
    assert [line for line in lines if len(line.split()) > 26] == []
